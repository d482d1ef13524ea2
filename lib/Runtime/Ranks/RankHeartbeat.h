//===- RankHeartbeat.h - A rank's life ends with rank 0's -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_RANKS_RANKHEARTBEAT_H
#define SANDWICH_LIB_RUNTIME_RANKS_RANKHEARTBEAT_H

#include "sandwich/Runtime/Communication/SharedMemorySegment.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <thread>

namespace sandwich {

/// The thread of a rank, not 0, that beats, and that ends this process as soon
/// as rank 0's process is gone, whatever is between the two.
class RankHeartbeat {
public:
  /// Errors: rank 0 has ended; the system gives no thread.
  static Result<std::unique_ptr<RankHeartbeat>>
  start(SharedMemorySegment &segment, int32_t rank);

  RankHeartbeat(const RankHeartbeat &) = delete;
  RankHeartbeat &operator=(const RankHeartbeat &) = delete;
  ~RankHeartbeat();

private:
  RankHeartbeat(SharedMemorySegment &segment, int32_t rank)
      : segment(segment), rank(rank) {}
  void run();

  SharedMemorySegment &segment;
  const int32_t rank;
  int stopEvent = -1;
  /// The process of rank 0; -1 if the system has no such handles.
  int firstProcess = -1;
  std::thread thread;
};

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_RANKS_RANKHEARTBEAT_H
