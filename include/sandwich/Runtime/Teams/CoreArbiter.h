//===- CoreArbiter.h - Cores that several models use ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Engines of one process ask the arbiter for the cores of each step, and wait
/// where others run on them. `CoreSharing` decides who is next; here are the
/// lock and the clock.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_COREARBITER_H
#define SANDWICH_RUNTIME_TEAMS_COREARBITER_H

#include "sandwich/Runtime/Teams/CoreSharing.h"
#include "sandwich/Support/Result.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sandwich {

class CoreMember;

/// All calls may come from any thread. A fork of the process has no use of it.
class CoreArbiter {
public:
  /// For the cores that this process may use. Error: they cannot be read.
  static Result<std::shared_ptr<CoreArbiter>> create();

  explicit CoreArbiter(const CoreSharingOptions &options) : sharing(options) {}
  CoreArbiter(const CoreArbiter &) = delete;
  CoreArbiter &operator=(const CoreArbiter &) = delete;

  /// What a member is called, and what it got.
  struct MemberUse {
    std::string name;
    CoreSharing::Use use;
  };
  std::vector<MemberUse> uses() const;

private:
  friend class CoreMember;

  /// Members to be woken once the mutex is free: who wakes needs it first. They
  /// may end before they are woken.
  using Wakes = std::vector<std::shared_ptr<std::condition_variable>>;

  double now() const;
  /// Lets members know what they got. Under the mutex.
  [[nodiscard]] Wakes grant(double time);
  static void wake(const Wakes &wakes);
  /// Waits for what may let `member` have its cores, and looks then.
  void await(CoreMember &member, std::unique_lock<std::mutex> &lock);
  CoreMember &memberOf(CoreSharing::Member number) const;

  mutable std::mutex mutex;
  CoreSharing sharing;
  std::vector<CoreMember *> members;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

/// Cores that are held until this ends. Moves, never copies; an empty one holds
/// nothing.
class CoreLease {
public:
  CoreLease() = default;
  CoreLease(CoreLease &&other) noexcept
      : member(std::exchange(other.member, nullptr)),
        waited(std::exchange(other.waited, 0)) {}
  CoreLease &operator=(CoreLease &&other) noexcept;
  ~CoreLease() { release(); }

  void release();
  /// Seconds that it took to get them.
  double secondsWaited() const { return waited; }

private:
  friend class CoreMember;
  CoreLease(CoreMember &member, double waited)
      : member(&member), waited(waited) {}

  CoreMember *member = nullptr;
  double waited = 0;
};

/// An engine, as the arbiter knows it. Used by one thread at a time.
class CoreMember {
public:
  /// `weight` as in `CoreSharing::join`.
  static Result<std::unique_ptr<CoreMember>>
  join(std::shared_ptr<CoreArbiter> arbiter, std::string name, double weight);

  CoreMember(const CoreMember &) = delete;
  CoreMember &operator=(const CoreMember &) = delete;
  ~CoreMember();

  /// Called, by threads of others, when they begin to use cores that this
  /// member has used last: its threads that stay awake between steps are to
  /// sleep. It must not call the arbiter, nor wait. Returns when no call is
  /// under way any more.
  void onDisplaced(std::function<void()> callback);

  /// Waits until nobody else holds any of the cores. To be called while this
  /// member holds none.
  CoreLease acquire(const CoreDemand &demand);
  bool holds() const { return held; }

private:
  friend class CoreArbiter;
  friend class CoreLease;

  CoreMember(std::shared_ptr<CoreArbiter> arbiter, std::string name)
      : arbiter(std::move(arbiter)), name(std::move(name)) {}
  void release();

  const std::shared_ptr<CoreArbiter> arbiter;
  const std::string name;
  const pid_t process = ::getpid();
  /// Of the thread that uses it.
  bool held = false;
  // Under the arbiter's mutex.
  CoreSharing::Member number = 0;
  bool granted = false;
  /// Whether it sleeps until it gets what it asked for.
  bool waits = false;
  const std::shared_ptr<std::condition_variable> changed =
      std::make_shared<std::condition_variable>();
  std::function<void()> displaced;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_COREARBITER_H
