//===- CoreSharing.h - Who of several models runs when ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decides whose step runs next where several models of one process want the
/// same cores: a team's threads wait for each other, so two teams that share a
/// core and run at once each take far more than twice as long. Without threads
/// and clocks: `CoreArbiter` is what engines ask.
///
/// The rule is start-time fair queueing (Goyal, Vin, Cheng, 1997) with the core
/// time that a step took, by the member's weight, as its length. The length is
/// known only afterwards, so who comes next is decided by what each has used
/// before. What a member left unused while it had nothing to run is not owed
/// to it: it is owed at most one step of each other.
///
/// A member does not ask for its next step as soon as one has ended: its tokens
/// are told first. If cores went to whoever waits then, members would take
/// turns however long their steps are, and one that decodes beside another's
/// prompts would get a step for each of theirs. So cores are kept free for a
/// moment for one that has used less ("deceptive idleness": Iyer, Druschel,
/// 2001).
///
/// So who has used no more than its share waits for the step under way, and for
/// one step of each other at most; who has used more waits until others have
/// caught up, which is about what its last step took, but never longer than
/// `longestWait` and then one step of each other.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_CORESHARING_H
#define SANDWICH_RUNTIME_TEAMS_CORESHARING_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace sandwich {

/// The cores that a step runs on.
struct CoreDemand {
  /// Those that threads are kept on, as the operating system counts them:
  /// ascending, each once.
  std::vector<unsigned> cpus = {};
  /// Threads that go where the system puts them.
  unsigned floating = 0;

  uint64_t count() const { return cpus.size() + floating; }

  /// Adds a team that runs at the same time; `placement` says for each thread
  /// which CPUs it may run on. One that may run on a single CPU is kept there.
  void add(const std::vector<std::vector<unsigned>> &placement);
  /// Adds what takes turns with what is there, as the teams of two phases do.
  void addTakingTurns(const CoreDemand &other);
};

struct CoreSharingOptions {
  /// Cores that the process may keep busy at a time. They limit threads that
  /// are kept nowhere; kept ones are limited by each other.
  uint64_t cores = 1;
  /// Seconds after which a member that waits comes before all that have waited
  /// for less, whatever was used before.
  double longestWait = 1;
  /// Seconds for which cores are kept for a member that has just ended a step,
  /// but no longer than that step took.
  double longestPause = 0.001;
};

/// Used by one thread at a time. Times are seconds of one clock, which does not
/// go back.
class CoreSharing {
public:
  using Member = uint64_t;

  /// What a member got so far.
  struct Use {
    /// How often it held cores, and how often it had to wait for them.
    uint64_t steps = 0;
    uint64_t waits = 0;
    double secondsWaited = 0;
    /// Seconds held, by the number of cores.
    double coreSeconds = 0;
  };

  struct Grant {
    Member member;
    /// Members that hold nothing now and held cores of these since the last
    /// time that they were displaced, so that their threads may still be awake
    /// there.
    std::vector<Member> displaced;
  };

  explicit CoreSharing(const CoreSharingOptions &options) : options(options) {}

  /// A member of weight `weight`, more than 0: of two that always have
  /// something to run, one of weight 2 gets twice the core time of one of
  /// weight 1.
  Member join(double weight);
  /// Who neither waits nor holds any more.
  void leave(Member member);

  /// `member`, which neither waits nor holds, wants cores.
  void request(Member member, const CoreDemand &demand, double now);
  /// `member` holds its cores no more.
  void release(Member member, double now);
  /// Who holds what it asked for from now on. To be called after `request` and
  /// `release`, and at `retryAt`.
  std::vector<Grant> grant(double now);
  /// When cores that the last `grant` kept for somebody are not kept any more.
  std::optional<double> retryAt() const { return retry; }

  const Use &useOf(Member member) const { return members.at(member).use; }

private:
  enum class State { Idle, Waiting, Holding };

  struct Entry {
    double weight = 1;
    State state = State::Idle;
    /// Of the last request.
    CoreDemand demand = {};
    double requestedAt = 0;
    /// Requests are numbered.
    uint64_t request = 0;
    double grantedAt = 0;
    /// Until when cores are kept for its next step, if others wait.
    double keptUntil = 0;
    /// Core seconds used, by the weight, and what is not owed to it added; and
    /// what its last step added.
    double attained = 0;
    double lastStep = 0;
    /// Whether its threads may be awake between two steps, and on which cores.
    bool awake = false;
    CoreDemand awakeOn = {};
    Use use = {};
  };

  /// What holders, and those before in the queue, keep from others.
  class Taken;

  bool conflict(const CoreDemand &one, const CoreDemand &other) const;
  /// Whether `one` comes before `other`, both waiting.
  bool isBefore(const Entry &one, const Entry &other, double now) const;
  bool isOverdue(const Entry &entry, double now) const {
    return now - entry.requestedAt > options.longestWait;
  }
  /// Until when the cores that `entry` waits for are kept for another, if they
  /// are.
  std::optional<double> keptFromUntil(const Entry &entry, double now) const;

  const CoreSharingOptions options;
  std::map<Member, Entry> members;
  Member nextMember = 0;
  uint64_t nextRequest = 0;
  std::optional<double> retry;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_CORESHARING_H
