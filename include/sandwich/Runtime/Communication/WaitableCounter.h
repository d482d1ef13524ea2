//===- WaitableCounter.h - Numbers to wait for ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A number that only grows, and threads that wait for it: of one process, or
/// of all that map the memory it lies in. Who waits spins for a bounded time
/// and then sleeps, which leaves the core to whoever wants it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_WAITABLECOUNTER_H
#define SANDWICH_RUNTIME_COMMUNICATION_WAITABLECOUNTER_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sandwich {

/// Counts modulo 2^32; what is waited for is less than 2^31 ahead.
class WaitableCounter {
public:
  /// Whose threads meet at the counter.
  enum class Scope : uint32_t {
    Process,
    /// Those of every process that maps its memory.
    Machine,
  };

  /// How long a waiting thread keeps its core.
  struct Patience {
    /// While others want the core.
    std::chrono::microseconds contended;
    /// While nobody does.
    std::chrono::microseconds alone;
  };

  /// The patience of threads that meet several times in each step, so that one
  /// may spin through the imbalance of a matmul and through the choosing of a
  /// token between two steps; where there are more threads than CPUs
  /// (`oversubscribed`), whoever waits lets go of its core at once.
  static Patience patienceBetweenSteps(bool oversubscribed) {
    using std::chrono::microseconds;
    if (oversubscribed)
      return {microseconds(0), microseconds(0)};
    return {microseconds(50), microseconds(1000)};
  }

  explicit WaitableCounter(Scope scope = Scope::Process) : scope(scope) {}

  /// Who has seen a value, as by waiting for it, also sees all that was written
  /// before the counter was made that value; and what was read before may be
  /// written.
  uint32_t value() const { return counter.load(std::memory_order_acquire); }
  /// Whether the value is `target` or beyond.
  bool reached(uint32_t target) const {
    return static_cast<int32_t>(value() - target) >= 0;
  }

  /// Adds one and wakes those who wait.
  void advance();
  /// Makes the value `target` and wakes those who wait. For a counter that one
  /// thread alone changes.
  void raiseTo(uint32_t target);
  /// Lets those who wait look at what may have stopped their waiting.
  void wake();

  /// Returns once the value is not `old`. Sleeps at once where, and as soon as,
  /// `resting` is not 0, if there is one.
  void waitWhile(uint32_t old, const Patience &patience,
                 const std::atomic<uint32_t> *resting = nullptr);
  /// Returns true once the value is `target` or beyond; or false, a tenth of a
  /// second after `stopped` is no longer 0 at the latest.
  bool waitUntil(uint32_t target, const Patience &patience,
                 const std::atomic<uint32_t> &stopped);

private:
  void wakeSleepers();
  /// Sleeps until woken; the shared kind for a tenth of a second at most.
  void sleepWhile(uint32_t old);

  std::atomic<uint32_t> counter{0};
  std::atomic<uint32_t> sleepers{0};
  const Scope scope;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_WAITABLECOUNTER_H
