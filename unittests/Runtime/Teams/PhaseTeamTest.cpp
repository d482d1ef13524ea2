//===- PhaseTeamTest.cpp - The threads that run phases --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/PhaseTeam.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

using namespace sandwich;

static std::unique_ptr<PhaseTeam> makeTeam(unsigned threads,
                                           bool oversubscribed = false) {
  PhaseTeamOptions options;
  options.threads = threads;
  options.oversubscribed = oversubscribed;
  Result<std::unique_ptr<PhaseTeam>> team = PhaseTeam::create(options);
  EXPECT_TRUE(team);
  return std::move(*team);
}

namespace {
/// Passes a number around: in each round every thread writes its slot, and
/// after a barrier adds up all slots.
struct Ring {
  PhaseTeam *team;
  unsigned threads;
  int rounds;
  std::vector<uint64_t> slots;
  std::vector<uint64_t> sums;

  Ring(PhaseTeam &team, unsigned threads, int rounds)
      : team(&team), threads(threads), rounds(rounds), slots(threads, 0),
        sums(threads, 0) {}

  static void work(void *context, int32_t thread) {
    auto &ring = *static_cast<Ring *>(context);
    auto own = static_cast<size_t>(thread);
    for (int round = 0; round < ring.rounds; ++round) {
      ring.slots[own] = static_cast<uint64_t>(round) * 1000 + own + 1;
      ring.team->barrier();
      ring.sums[own] +=
          std::accumulate(ring.slots.begin(), ring.slots.end(), uint64_t{0});
      ring.team->barrier();
    }
  }

  uint64_t expected() const {
    uint64_t sum = 0;
    for (int round = 0; round < rounds; ++round)
      for (unsigned thread = 0; thread < threads; ++thread)
        sum += static_cast<uint64_t>(round) * 1000 + thread + 1;
    return sum;
  }
};
} // namespace

static void runRing(PhaseTeam &team, unsigned threads, int rounds) {
  Ring ring(team, threads, rounds);
  team.run(threads, Ring::work, &ring);
  for (uint64_t sum : ring.sums)
    ASSERT_EQ(sum, ring.expected());
}

TEST(PhaseTeamTest, BarrierSeparatesWritesFromReads) {
  for (unsigned threads = 1; threads <= 4; ++threads) {
    std::unique_ptr<PhaseTeam> team = makeTeam(threads);
    runRing(*team, threads, 200);
  }
}

TEST(PhaseTeamTest, WorksWithManyMoreThreadsThanCores) {
  std::unique_ptr<PhaseTeam> team = makeTeam(17, /*oversubscribed=*/true);
  runRing(*team, 17, 20);
}

TEST(PhaseTeamTest, RunsOfDifferentSizesTakeTurns) {
  std::unique_ptr<PhaseTeam> team = makeTeam(3);
  for (int i = 0; i < 50; ++i)
    for (unsigned threads : {2u, 3u, 1u, 3u, 2u})
      runRing(*team, threads, 2);
}

TEST(PhaseTeamTest, EveryThreadRunsOnceWithItsNumber) {
  std::unique_ptr<PhaseTeam> team = makeTeam(3);
  std::vector<int> calls(3, 0);
  for (int i = 0; i < 100; ++i)
    team->run(
        3,
        [](void *context, int32_t thread) {
          ++(*static_cast<std::vector<int> *>(
              context))[static_cast<size_t>(thread)];
        },
        &calls);
  EXPECT_EQ(calls, std::vector<int>(3, 100));
}

TEST(PhaseTeamTest, WakesAfterSleeping) {
  std::unique_ptr<PhaseTeam> team = makeTeam(2);
  for (int i = 0; i < 3; ++i) {
    runRing(*team, 2, 3);
    // Longer than the threads spin.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(PhaseTeamTest, SleepsWithoutBurningTime) {
  std::unique_ptr<PhaseTeam> team = makeTeam(4);
  runRing(*team, 4, 3);
  // The spinning ends by itself; CPU time counts only this
  // process, so other programs do not disturb it.
  auto cpuSeconds = [] {
    timespec time;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_nsec) * 1e-9;
  };
  double before = 0;
  double after = 1;
  for (int attempt = 0; attempt < 50 && after - before > 0.001; ++attempt) {
    before = cpuSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    after = cpuSeconds();
  }
  EXPECT_LE(after - before, 0.001);
}

TEST(PhaseTeamTest, KeepsThreadsOnTheirCpusAndGivesTheMaskBack) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  PhaseTeamOptions options;
  options.threads = 2;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && options.cpus.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &before))
      options.cpus.push_back(cpu);
  if (options.cpus.size() < 2)
    GTEST_SKIP() << "this process may use one CPU only";
  Result<std::unique_ptr<PhaseTeam>> team = PhaseTeam::create(options);
  ASSERT_TRUE(team);
  std::vector<int> cpus(2, -1);
  (*team)->run(
      2,
      [](void *context, int32_t thread) {
        (*static_cast<std::vector<int> *>(
            context))[static_cast<size_t>(thread)] = ::sched_getcpu();
      },
      &cpus);
  EXPECT_EQ(cpus[0], static_cast<int>(options.cpus[0]));
  EXPECT_EQ(cpus[1], static_cast<int>(options.cpus[1]));
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

/// CPUs that this process may use, at most `most` of them.
static std::vector<unsigned> allowedCpus(size_t most) {
  cpu_set_t allowed;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && cpus.size() < most; ++cpu)
    if (CPU_ISSET(cpu, &allowed))
      cpus.push_back(cpu);
  return cpus;
}

static std::vector<std::unique_ptr<PhaseTeam>>
makeTeams(std::vector<PhaseTeamOptions> options) {
  Result<std::vector<std::unique_ptr<PhaseTeam>>> teams =
      PhaseTeam::createSharing(options);
  EXPECT_TRUE(teams);
  return std::move(*teams);
}

static size_t countListedThreads() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

/// The threads of this process: one that was joined is listed for a while.
static size_t countThreads() {
  size_t threads = countListedThreads();
  for (size_t before = 0; before != threads;) {
    before = threads;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    threads = countListedThreads();
  }
  return threads;
}

TEST(PhaseTeamTest, SwitchesAtRandomWithoutNewThreads) {
  auto teams = makeTeams({{.threads = 4, .cpus = {}, .oversubscribed = true},
                          {.threads = 2, .cpus = {}, .oversubscribed = true},
                          {.threads = 1, .cpus = {}, .oversubscribed = true}});
  const size_t threads = countThreads();
  std::mt19937 random(1);
  // The steps of all teams read and write the same numbers.
  struct Steps {
    PhaseTeam *team;
    uint64_t values[4] = {};
    uint64_t steps = 0;
    std::atomic<uint64_t> wrong = 0;
  } steps;
  constexpr int switches = 10000;
  for (int i = 0; i < switches; ++i) {
    steps.team = teams[random() % teams.size()].get();
    steps.team->run(
        steps.team->size(),
        [](void *context, int32_t thread) {
          auto &steps = *static_cast<Steps *>(context);
          for (size_t at = static_cast<size_t>(thread); at < 4;
               at += steps.team->size())
            steps.wrong += ++steps.values[at] != steps.steps + 1;
          steps.team->barrier();
          if (thread == 0)
            ++steps.steps;
        },
        &steps);
  }
  EXPECT_EQ(steps.wrong, 0U);
  EXPECT_EQ(steps.steps, uint64_t{switches});
  EXPECT_EQ(countThreads(), threads);
}

TEST(PhaseTeamTest, EachTeamKeepsItsOwnCpus) {
  const std::vector<unsigned> cpus = allowedCpus(2);
  if (cpus.size() < 2)
    GTEST_SKIP() << "this process may use one CPU only";
  const size_t before = countThreads();
  auto teams = makeTeams(
      {{.threads = 2, .cpus = cpus, .oversubscribed = false},
       {.threads = 1, .cpus = {cpus[1]}, .oversubscribed = false},
       {.threads = 2, .cpus = {cpus[1], cpus[0]}, .oversubscribed = false}});
  using Placement = std::vector<std::vector<unsigned>>;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(teams[0]->readPlacement(), (Placement{{cpus[0]}, {cpus[1]}}));
    EXPECT_EQ(teams[1]->readPlacement(), (Placement{{cpus[1]}}));
    EXPECT_EQ(teams[2]->readPlacement(), (Placement{{cpus[1]}, {cpus[0]}}));
  }
  // One thread for each CPU, beside the calling one.
  EXPECT_EQ(countThreads(), before + 2);
}

TEST(PhaseTeamTest, GoesOnWhereACpuIsForbidden) {
  // No machine has this one.
  auto teams = makeTeams(
      {{.threads = 2, .cpus = {100000, 100001}, .oversubscribed = false}});
  runRing(*teams[0], 2, 3);
  for (const std::vector<unsigned> &cpus : teams[0]->readPlacement())
    EXPECT_EQ(cpus, allowedCpus(CPU_SETSIZE));
}

TEST(PhaseTeamTest, IsRefusedInAFork) {
  std::unique_ptr<PhaseTeam> team = makeTeam(2);
  std::unique_ptr<PhaseTeam> alone = makeTeam(1);
  EXPECT_TRUE(team->checkProcess());
  pid_t child = ::fork();
  if (child == 0) {
    // Should destroying it wait for threads that do not exist, this ends it.
    ::alarm(20);
    bool refused = !team->checkProcess() && alone->checkProcess();
    team.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  runRing(*team, 2, 3);
}

TEST(PhaseTeamTest, LeavesFaultsOfItsThreadsToTheProgram) {
  std::unique_ptr<PhaseTeam> team = makeTeam(2);
  sigset_t masks[2];
  team->run(
      2,
      [](void *context, int32_t thread) {
        ::pthread_sigmask(SIG_SETMASK, nullptr,
                          &static_cast<sigset_t *>(context)[thread]);
      },
      masks);
  EXPECT_FALSE(::sigismember(&masks[1], SIGBUS));
  EXPECT_TRUE(::sigismember(&masks[1], SIGINT));
}
