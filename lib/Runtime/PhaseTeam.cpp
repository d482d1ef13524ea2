//===- PhaseTeam.cpp - The threads that run phases ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/PhaseTeam.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <optional>
#include <system_error>
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

void WaitableCounter::advance() {
  // Sequentially consistent, as are the accesses in waitWhile: either this
  // thread sees the sleeper, or the sleeper sees the new value.
  counter.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    ::syscall(SYS_futex, &counter, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
              nullptr, 0);
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
void WaitableCounter::waitWhile(uint32_t old, const Patience &patience) {
  // Reading the clock takes about as long as this many relaxations.
  constexpr int relaxationsBetweenClockReads = 32;
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  std::chrono::microseconds limit = patience.contended;
  while (limit.count() > 0) {
    for (int i = 0; i < relaxationsBetweenClockReads; ++i) {
      if (value() != old)
        return;
      relaxCore();
    }
    if (Clock::now() - start < limit)
      continue;
    if (limit == patience.alone || coreIsContended())
      break;
    limit = patience.alone;
  }
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (counter.load(std::memory_order_seq_cst) == old)
    ::syscall(SYS_futex, &counter, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr,
              0);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

/// Keeps the calling thread on one CPU while it lives. Pinning is a matter of
/// speed only: where the system refuses it, the thread runs unpinned.
namespace {
class ScopedPin {
public:
  ScopedPin(const std::vector<unsigned> &cpus, unsigned thread) {
    if (thread >= cpus.size() || cpus[thread] >= CPU_SETSIZE)
      return;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpus[thread], &own);
    if (::sched_getaffinity(0, sizeof(before), &before) != 0 ||
        CPU_EQUAL(&before, &own))
      return;
    pinned = ::sched_setaffinity(0, sizeof(own), &own) == 0;
  }
  ~ScopedPin() {
    if (pinned)
      ::sched_setaffinity(0, sizeof(before), &before);
  }
  ScopedPin(const ScopedPin &) = delete;
  ScopedPin &operator=(const ScopedPin &) = delete;

private:
  cpu_set_t before;
  bool pinned = false;
};
} // namespace

PhaseTeam::PhaseTeam(const PhaseTeamOptions &options)
    : options(options), process(::getpid()),
      // Alone, a thread may spin through the imbalance of a matmul and
      // through the choosing of a token between two steps.
      patience(
          options.oversubscribed
              ? WaitableCounter::Patience{std::chrono::microseconds(0),
                                          std::chrono::microseconds(0)}
              : WaitableCounter::Patience{std::chrono::microseconds(50),
                                          std::chrono::microseconds(1000)}) {}

Result<std::unique_ptr<PhaseTeam>>
PhaseTeam::create(const PhaseTeamOptions &options) {
  std::unique_ptr<PhaseTeam> team(new PhaseTeam(options));
  // Signals are for the threads of the program, not for those of the team; but
  // a fault that is blocked would end the process whatever its handler is.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  for (int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<Error> failure;
  try {
    team->workers.reserve(options.threads - 1);
    for (unsigned thread = 1; thread < options.threads; ++thread) {
      auto worker = std::make_unique<Worker>();
      worker->thread =
          std::thread(&PhaseTeam::serve, team.get(), std::ref(*worker), thread);
      team->workers.push_back(std::move(worker));
    }
  } catch (const std::exception &exception) {
    failure = makeError("cannot start ", options.threads,
                        " threads: ", exception.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure)
    return *failure;
  return team;
}

Status PhaseTeam::checkProcess() const {
  if (workers.empty() || ::getpid() == process)
    return {};
  return makeError("this process is a fork of the one that loaded the model, "
                   "and has none of its threads; load the model after forking");
}

PhaseTeam::~PhaseTeam() {
  if (!checkProcess()) {
    // There is nothing to join, and nobody waits for the memory.
    for (std::unique_ptr<Worker> &worker : workers)
      (void)worker.release();
    return;
  }
  stopping = true;
  for (const std::unique_ptr<Worker> &worker : workers) {
    worker->runs.advance();
    worker->thread.join();
  }
}

void PhaseTeam::serve(Worker &worker, unsigned thread) {
  ScopedPin pin(options.cpus, thread);
  for (uint32_t seen = 0;; ++seen) {
    worker.runs.waitWhile(seen, patience);
    if (stopping)
      return;
    currentWork(currentContext, static_cast<int32_t>(thread));
    barrier();
  }
}

void PhaseTeam::run(unsigned threads, Work work, void *context) {
  ScopedPin pin(options.cpus, 0);
  activeThreads = threads;
  currentWork = work;
  currentContext = context;
  for (unsigned thread = 1; thread < threads; ++thread)
    workers[thread - 1]->runs.advance();
  work(context, 0);
  barrier();
}

void PhaseTeam::barrier() {
  unsigned threads = activeThreads;
  if (threads == 1)
    return;
  uint32_t current = barriers.value();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    barriers.advance();
  } else {
    barriers.waitWhile(current, patience);
  }
}
