//===- WaitableCounter.cpp - Numbers to wait for --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/WaitableCounter.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <utility>

using namespace sandwich;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "a futex is a plain 32-bit word");

/// Tells the core that this is a spin loop.
static inline void relaxCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Whether another thread has taken this thread's core from it since the last
/// call from this thread.
static bool coreIsContended() {
  thread_local long before = 0;
  rusage usage;
  if (::getrusage(RUSAGE_THREAD, &usage) != 0)
    return true;
  return std::exchange(before, usage.ru_nivcsw) != usage.ru_nivcsw;
}

// Sleeping at once costs a wakeup of some 50 microseconds for each barrier
// whose threads arrive apart. Spinning for long holds up the thread that all
// wait for, if that one needs this core. sched_yield is no way out: the
// scheduler charges the thread a whole time slice for it, so that on a busy
// machine a step took twice as long as with sleeping.

/// Spins until `done()`, as long as `patience` has it; whether it is done.
template <typename Done>
static bool spinUntil(const WaitableCounter::Patience &patience, Done done) {
  if (done())
    return true;
  // Reading the clock takes about as long as this many relaxations.
  constexpr int relaxationsBetweenClockReads = 32;
  using Clock = std::chrono::steady_clock;
  std::chrono::microseconds limit = patience.contended;
  if (limit.count() == 0)
    return false;
  Clock::time_point start = Clock::now();
  while (true) {
    for (int i = 0; i < relaxationsBetweenClockReads; ++i) {
      relaxCore();
      if (done())
        return true;
    }
    if (Clock::now() - start < limit)
      continue;
    if (limit == patience.alone || coreIsContended())
      return false;
    limit = patience.alone;
  }
}

static int operation(int futexOperation, WaitableCounter::Scope scope) {
  return scope == WaitableCounter::Scope::Process
             ? futexOperation | FUTEX_PRIVATE_FLAG
             : futexOperation;
}

void WaitableCounter::wake() {
  ::syscall(SYS_futex, &counter, operation(FUTEX_WAKE, scope), INT_MAX, nullptr,
            nullptr, 0);
}

void WaitableCounter::wakeSleepers() {
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    wake();
}

// Sequentially consistent, as are the accesses of those who wait: either this
// thread sees the sleeper, or the sleeper sees the new value. Release and
// acquire let both miss it on ARM.
void WaitableCounter::advance() {
  counter.fetch_add(1, std::memory_order_seq_cst);
  wakeSleepers();
}

// As above, but here they may miss it on x86-64, too: a plain store may wait in
// the core until after the load that follows, the locked addition may not.
void WaitableCounter::raiseTo(uint32_t target) {
  counter.store(target, std::memory_order_seq_cst);
  wakeSleepers();
}

void WaitableCounter::sleepWhile(uint32_t old) {
  // Another process can end without a word to those who wait for it.
  constexpr timespec tenthOfASecond{0, 100'000'000};
  ::syscall(SYS_futex, &counter, operation(FUTEX_WAIT, scope), old,
            scope == Scope::Machine ? &tenthOfASecond : nullptr, nullptr, 0);
}

void WaitableCounter::waitWhile(uint32_t old, const Patience &patience,
                                const std::atomic<uint32_t> *resting) {
  auto rests = [&] {
    return resting && resting->load(std::memory_order_relaxed) != 0;
  };
  spinUntil(patience, [&] { return value() != old || rests(); });
  if (value() != old)
    return;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (counter.load(std::memory_order_seq_cst) == old)
    sleepWhile(old);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool WaitableCounter::waitUntil(uint32_t target, const Patience &patience,
                                const std::atomic<uint32_t> &stopped) {
  auto isStopped = [&] { return stopped.load(std::memory_order_acquire) != 0; };
  bool ended =
      spinUntil(patience, [&] { return reached(target) || isStopped(); });
  if (ended)
    return reached(target);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (!isStopped()) {
    uint32_t current = counter.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(current - target) >= 0)
      break;
    sleepWhile(current);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return reached(target);
}
