//===- PingPong.h - A cache line from core to core --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TUNING_PINGPONG_H
#define SANDWICH_LIB_TUNING_PINGPONG_H

#include "sandwich/Support/ElapsedTime.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sandwich::measuring {

/// A cache line that two threads write in turn.
struct PingPong {
  static constexpr uint32_t returns = 1000;

  /// Pairs of lines are fetched together.
  alignas(128) std::atomic<uint32_t> ball{0};
  /// What one way took, once thread 0 has played.
  alignas(128) double seconds = 0;

  /// Of threads 0 and 1, which begin at the same time.
  void play(int32_t thread) {
    const auto begin = std::chrono::steady_clock::now();
    // No pause while waiting: it would take longer than the line does.
    for (uint32_t i = 0; i < returns; ++i) {
      const uint32_t thrown = 2 * i + 1;
      if (thread == 0)
        ball.store(thrown, std::memory_order_release);
      const uint32_t awaited = thread == 0 ? thrown + 1 : thrown;
      while (ball.load(std::memory_order_acquire) != awaited) {
      }
      if (thread == 1)
        ball.store(thrown + 1, std::memory_order_release);
    }
    if (thread == 0)
      seconds = secondsSince(begin) / (2 * returns);
  }
};

} // namespace sandwich::measuring

#endif // SANDWICH_LIB_TUNING_PINGPONG_H
