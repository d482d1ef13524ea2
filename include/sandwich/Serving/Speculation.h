//===- Speculation.h - Whether proposed tokens pay --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_SPECULATION_H
#define SANDWICH_SERVING_SPECULATION_H

#include <cstdint>

namespace sandwich {

struct SpeculationOptions {
  /// The largest `maxTokens`.
  static constexpr uint64_t mostTokens = 64;

  /// Tokens that may be proposed for a text in one step; 0: none.
  uint64_t maxTokens = 0;
  /// Takes all that is proposed and has room, whether it pays or not: to
  /// measure what it costs, and for tests.
  bool always = false;
};

struct SpeculationStatistics {
  /// Steps with proposed tokens, these, and those of them that were drawn.
  uint64_t steps = 0;
  uint64_t proposedTokens = 0;
  uint64_t acceptedTokens = 0;
  /// Seconds in which tokens were proposed.
  double seconds = 0;
};

/// How probable it is that a proposed token is the one that is drawn, if those
/// before it were: what Leviathan et al. (2023) call alpha. Recent proposals
/// count more.
class AcceptanceRate {
public:
  /// `memory`: about so many tokens are remembered.
  explicit AcceptanceRate(double memory) : keep(1 - 1 / memory) {}

  /// So many proposed tokens were drawn, and then, if `refused`, another one
  /// than was proposed.
  void observe(uint64_t accepted, bool refused);

  /// An estimate, where `prior` counts as much as `priorTrials` tokens.
  double estimate(double prior, double priorTrials) const {
    return (accepted + prior * priorTrials) / (trials + priorTrials);
  }

private:
  void observeOne(double outcome);

  double keep;
  double accepted = 0;
  double trials = 0;
};

/// How many of `count` proposed tokens are drawn in the mean, where each is
/// with probability `rate` if those before it are.
double expectedAccepted(double rate, uint64_t count);

/// When proposals are tried that do not seem to pay, as nothing else tells that
/// they would by now: more and more seldom as long as they do not.
class ProbeSchedule {
public:
  /// Steps between two probes, the least and the most.
  static constexpr uint64_t least = 32, most = 1024;

  /// A step was run without proposals; whether the next one is to have some.
  bool skip() { return ++skipped >= interval; }
  /// A step had proposals, as a probe or since they seemed to pay, and so many
  /// of them were drawn.
  void observe(bool probed, uint64_t proposed, uint64_t accepted);

private:
  uint64_t interval = least;
  uint64_t skipped = 0;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_SPECULATION_H
