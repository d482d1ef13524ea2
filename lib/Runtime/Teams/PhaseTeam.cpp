//===- PhaseTeam.cpp - The threads that run phases ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/PhaseTeam.h"

#include "sandwich/Runtime/Teams/ThreadBinding.h"
#include "sandwich/Support/Process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

using namespace sandwich;

/// The CPU that thread `thread` of a team is kept on.
static std::optional<unsigned> cpuOf(const PhaseTeamOptions &options,
                                     unsigned thread) {
  if (thread >= options.cpus.size())
    return std::nullopt;
  return options.cpus[thread];
}

//===----------------------------------------------------------------------===//
// TeamThreads
//===----------------------------------------------------------------------===//

/// The threads of teams that take turns. They sleep until a team calls them.
class sandwich::TeamThreads {
public:
  TeamThreads() : process(::getpid()) {}
  ~TeamThreads();

  /// Starts one more thread; throws what std::thread throws.
  void add(std::optional<unsigned> cpu, WaitableCounter::Patience patience);
  size_t size() const { return workers.size(); }
  std::optional<unsigned> cpu(size_t worker) const {
    return workers[worker]->cpu;
  }

  /// Lets a worker be thread `thread` of the current run of `team`. It reads
  /// the plain members, here and of the team, once it has acquired `runs`, and
  /// once it has arrived at the run's last barrier only those that never
  /// change: it still waits there with the team's `patience`.
  void call(size_t worker, PhaseTeam &team, int32_t thread) {
    workers[worker]->team = &team;
    workers[worker]->number = thread;
    workers[worker]->runs.advance();
  }

  /// Returns once a worker has left the last run it was called to: after a
  /// barrier others go on while the last to come still wakes who sleeps.
  void awaitIdle(size_t worker) const {
    while (workers[worker]->left.load(std::memory_order_acquire) !=
           workers[worker]->runs.value())
      std::this_thread::yield();
  }

  // Relaxed: who sees it late spins for longer, and no data comes with it.
  void rest() { resting.store(1, std::memory_order_relaxed); }
  /// Before a run: its end is to find threads that spin for the next one.
  void endRest() {
    // Read first, as every thread that waits reads it.
    if (resting.load(std::memory_order_relaxed) != 0)
      resting.store(0, std::memory_order_relaxed);
  }

  bool isOfThisProcess() const {
    return workers.empty() || ::getpid() == process;
  }

private:
  // Adjacent cache lines are fetched in pairs, so what different threads write
  // stays 128 bytes apart.
  struct alignas(128) Worker {
    /// Runs handed to this worker; a thread that is not in a run sleeps on.
    WaitableCounter runs;
    /// Those of them that it has left.
    std::atomic<uint32_t> left{0};
    /// The run: its team, and the worker's number in it. No team ends it.
    PhaseTeam *team = nullptr;
    int32_t number = 0;
    std::optional<unsigned> cpu;
    WaitableCounter::Patience patience;
    std::thread thread;
  };
  void serve(Worker &worker) const;

  /// Not 0: who waits for a run sleeps.
  alignas(128) std::atomic<uint32_t> resting{0};
  const pid_t process;
  std::vector<std::unique_ptr<Worker>> workers;
};

void TeamThreads::add(std::optional<unsigned> cpu,
                      WaitableCounter::Patience patience) {
  auto worker = std::make_unique<Worker>();
  worker->cpu = cpu;
  worker->patience = patience;
  workers.reserve(workers.size() + 1);
  worker->thread = std::thread([this, &own = *worker] { this->serve(own); });
  workers.push_back(std::move(worker));
}

TeamThreads::~TeamThreads() {
  if (!isOfThisProcess()) {
    // There is nothing to join, and nobody waits for the memory.
    for (std::unique_ptr<Worker> &worker : workers)
      (void)worker.release();
    return;
  }
  for (const std::unique_ptr<Worker> &worker : workers) {
    worker->team = nullptr;
    worker->runs.advance();
    worker->thread.join();
  }
}

void TeamThreads::serve(Worker &worker) const {
  ScopedBinding binding(worker.cpu);
  for (uint32_t seen = 0;; ++seen) {
    worker.runs.waitWhile(seen, worker.patience, &resting);
    PhaseTeam *team = worker.team;
    if (!team)
      return;
    team->currentWork(team->currentContext, worker.number);
    team->barrier();
    worker.left.store(seen + 1, std::memory_order_release);
  }
}

//===----------------------------------------------------------------------===//
// PhaseTeam
//===----------------------------------------------------------------------===//

PhaseTeam::PhaseTeam(const PhaseTeamOptions &options,
                     std::shared_ptr<TeamThreads> threads,
                     std::vector<unsigned> members)
    : options(options),
      patience(WaitableCounter::patienceBetweenSteps(options.oversubscribed)),
      threads(std::move(threads)), members(std::move(members)) {}

PhaseTeam::~PhaseTeam() {
  // Threads that other teams have, too, go on, but not with this one.
  if (threads->isOfThisProcess())
    for (unsigned member : members)
      threads->awaitIdle(member);
}

/// The workers that are threads 1 and up of a team; starts those that are
/// missing.
static std::vector<unsigned> findMembers(TeamThreads &threads,
                                         const PhaseTeamOptions &options) {
  std::vector<unsigned> members;
  for (unsigned thread = 1; thread < options.threads; ++thread) {
    std::optional<unsigned> cpu = cpuOf(options, thread);
    unsigned worker = 0;
    while (worker < threads.size() &&
           (threads.cpu(worker) != cpu ||
            std::ranges::find(members, worker) != members.end()))
      ++worker;
    if (worker == threads.size())
      threads.add(
          cpu, WaitableCounter::patienceBetweenSteps(options.oversubscribed));
    members.push_back(worker);
  }
  return members;
}

Result<std::vector<std::unique_ptr<PhaseTeam>>>
PhaseTeam::createSharing(std::span<const PhaseTeamOptions> options) {
  const sigset_t before = blockSignals();
  auto threads = std::make_shared<TeamThreads>();
  std::vector<std::unique_ptr<PhaseTeam>> teams;
  std::optional<Error> failure;
  for (const PhaseTeamOptions &each : options)
    try {
      teams.emplace_back(
          new PhaseTeam(each, threads, findMembers(*threads, each)));
    } catch (const std::exception &exception) {
      failure = makeError("cannot start ", each.threads,
                          " threads: ", exception.what());
    }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure)
    return *failure;
  return teams;
}

Result<std::unique_ptr<PhaseTeam>>
PhaseTeam::create(const PhaseTeamOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PhaseTeam>> teams,
                            createSharing({&options, 1}));
  return std::move(teams.front());
}

Status PhaseTeam::checkProcess() const {
  if (threads->isOfThisProcess())
    return {};
  return makeError("this process is a fork of the one that loaded the model, "
                   "and has none of its threads; load the model after forking");
}

void PhaseTeam::rest() { threads->rest(); }

void PhaseTeam::run(unsigned count, Work work, void *context) {
  ScopedBinding binding(cpuOf(options, 0));
  threads->endRest();
  activeThreads = count;
  currentWork = work;
  currentContext = context;
  for (unsigned thread = 1; thread < count; ++thread)
    threads->call(members[thread - 1], *this, static_cast<int32_t>(thread));
  work(context, 0);
  barrier();
}

void PhaseTeam::barrier() {
  unsigned count = activeThreads;
  if (count == 1)
    return;
  // Acquire, so that it is read before this thread counts as arrived: later it
  // may be the next barrier's, which never changes while this thread waits.
  uint32_t current = barriers.value();
  // By arriving a thread releases what it wrote, and what it read may be
  // written again; the last acquires that of all, and releases it to all by
  // `barriers`.
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
    // Nobody arrives again before it has seen `barriers`.
    arrived.store(0, std::memory_order_relaxed);
    barriers.advance();
  } else {
    barriers.waitWhile(current, patience);
  }
}

std::vector<std::vector<unsigned>> PhaseTeam::readPlacement() {
  std::vector<std::vector<unsigned>> placement(size());
  run(
      size(),
      [](void *context, int32_t thread) {
        (*static_cast<std::vector<std::vector<unsigned>> *>(
            context))[static_cast<size_t>(thread)] = readThreadBinding();
      },
      &placement);
  return placement;
}
