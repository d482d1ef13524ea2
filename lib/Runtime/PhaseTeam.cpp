//===- PhaseTeam.cpp - The threads that run phases ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/PhaseTeam.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

using namespace sandwich;

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
      patience(WaitableCounter::patienceBetweenSteps(options.oversubscribed)) {}

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
