//===- HostCommunicator.h - What hosts exchange -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_HOSTCOMMUNICATOR_H
#define SANDWICH_RUNTIME_COMMUNICATION_HOSTCOMMUNICATOR_H

#include "sandwich/Runtime/Communication/Communicator.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandwich {

/// How far the hosts are in their collectives. Broadcasts do not count: those
/// who wait for one may do so for as long as there is nothing to run.
struct HostProgress {
  /// What each of the others has begun at least, as was heard of last.
  uint64_t others = 0;
  /// How long ago the last of them began one, at most.
  std::chrono::milliseconds othersStand{0};
  /// What this host has begun, and that with broadcasts.
  uint64_t own = 0, ownCalls = 0;
  /// Whether a thread of this host is in a collective, and may wait for others.
  bool waits = false;
};

/// Collectives of one process of each host: `rank` is the number of the host,
/// `ranks` how many there are.
class HostCommunicator : public Communicator {
public:
  static constexpr size_t keptReasonBytes = 1000;

  int32_t rankOnHost() const override { return 0; }
  int32_t ranksOnHost() const override { return 1; }

  /// What lane `lane` does in an all-gather, with its part cut out: the `part`,
  /// [count], of each host becomes a row of `all`, [ranks, count]. `part` may
  /// be that row already.
  virtual void gatherPart(int32_t lane, const float *part, float *all,
                          int64_t count) = 0;

  /// What `lanes` lanes use besides what they exchange, in bytes.
  virtual uint64_t bytesFor(int32_t lanes) const = 0;
  /// Gets that memory, without which no collective runs. Error: there is none.
  virtual Status prepare(int32_t lanes) = 0;

  /// For any thread.
  virtual HostProgress progress() const = 0;

  virtual std::string nameOf(int32_t host) const = 0;

  /// Ends all collectives on all hosts, now and later. The other hosts' failure
  /// is this host's name and `reason`, of which `keptReasonBytes` are kept. The
  /// first failure counts.
  virtual void fail(std::string_view reason) = 0;

  /// Whether the failure is that a host does not answer, as this one found.
  virtual bool lostContact() const = 0;

  /// Called once, when all was exchanged that there was, and returns when all
  /// hosts have called it. Errors: a host failed before. Without it, the end of
  /// a host is a failure to the others.
  virtual Status leave() = 0;

protected:
  using Communicator::Communicator;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_HOSTCOMMUNICATOR_H
