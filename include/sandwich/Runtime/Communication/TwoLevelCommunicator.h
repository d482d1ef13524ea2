//===- TwoLevelCommunicator.h - Ranks of several hosts ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives of ranks on several hosts, as many on each: over shared memory
/// on a host, and between the first ranks of the hosts over whatever connects
/// these.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_TWOLEVELCOMMUNICATOR_H
#define SANDWICH_RUNTIME_COMMUNICATION_TWOLEVELCOMMUNICATOR_H

#include "sandwich/Runtime/Communication/HostCommunicator.h"
#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

#include <memory>
#include <vector>

namespace sandwich {

/// A sum over ranks is that of the hosts' sums, in the order of hosts, each of
/// which is that of its ranks, in their order: all ranks get the same bits,
/// which are those of a single host where each host has one rank.
class TwoLevelCommunicator final : public Communicator {
public:
  /// For collectives of up to `local.lanes()` lanes. This process is a rank of
  /// `local`, which sums within the host as its segment says, and whose first
  /// is rank `firstRank` of `ranks`. `hosts` is null but on the first. Both
  /// live longer than this.
  TwoLevelCommunicator(SharedMemoryCommunicator &local, HostCommunicator *hosts,
                       int32_t firstRank, int32_t ranks);
  /// What a rank gathers logits in, in bytes.
  static uint64_t bytesFor(int32_t lanes);

  int32_t rankOnHost() const override { return local.rank(); }
  int32_t ranksOnHost() const override { return local.ranks(); }

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override;
  void allGather(int32_t lane, int32_t lanes, const float *part, float *whole,
                 int64_t rows, int64_t columns) override;
  void broadcast(void *data, size_t bytes, int32_t root) override;
  void barrier() override;
  Status failure() const override;

private:
  /// Whether the next part of a collective is between hosts, and this rank's. A
  /// rank that failed leaves its host without what the others wait for, who may
  /// not hear of it before they would have used whatever was sent instead.
  bool meetsHosts() const { return hosts && !local.hasFailed(); }

  SharedMemoryCommunicator &local;
  HostCommunicator *const hosts;
  /// [lane] What it gathers. Nothing is allocated in a collective, where
  /// compiled code and other ranks cannot be told of it.
  std::vector<std::unique_ptr<float[]>> buffers;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_TWOLEVELCOMMUNICATOR_H
