//===- Main.cpp - What it costs to start, switch and synchronize teams ----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times steps that do nothing: what remains is the cost of handing a step to a
/// team and of waiting for all of it, in a row on one team or in turn on the
/// teams of two phases, and the cost of a barrier within a step. oneTBB and
/// OpenMP do the same beside it, round by round.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <CLI/CLI.hpp>
#ifdef SANDWICH_HAS_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

/// Something that is timed: `run` returns microseconds of one operation.
struct Contestant {
  std::string test, who;
  std::function<double()> run;
  std::vector<double> samples = {};

  double quantile(double share) const {
    std::vector<double> sorted = samples;
    std::ranges::sort(sorted);
    return sorted[static_cast<size_t>(share *
                                      static_cast<double>(sorted.size() - 1))];
  }
};

/// Barriers in one step, enough to forget what the step costs.
constexpr int barriers = 1000;

void doNothing(void * /*context*/, int32_t /*thread*/) {}

double timeStep(PhaseTeam &team) {
  Clock::time_point start = Clock::now();
  team.run(team.size(), doNothing, nullptr);
  return microsecondsSince(start);
}

double timeBarriers(PhaseTeam &team) {
  Clock::time_point start = Clock::now();
  team.run(
      team.size(),
      [](void *context, int32_t) {
        for (int i = 0; i < barriers; ++i)
          static_cast<PhaseTeam *>(context)->barrier();
      },
      &team);
  return microsecondsSince(start) / barriers;
}

std::vector<Contestant> ours(PhaseTeam &prefill, PhaseTeam &decode) {
  return {
      {"step after step of one phase", "sandwich",
       [&] {
         timeStep(prefill);
         return timeStep(prefill);
       }},
      {"switch from prefill to decode", "sandwich",
       [&] {
         timeStep(prefill);
         return timeStep(decode);
       }},
      {"switch from decode to prefill", "sandwich",
       [&] {
         timeStep(decode);
         return timeStep(prefill);
       }},
      {"barrier", "sandwich", [&] { return timeBarriers(prefill); }},
  };
}

std::vector<Contestant> theirs([[maybe_unused]] int threads) {
  std::vector<Contestant> contestants;
#ifdef SANDWICH_HAS_TBB
  contestants.push_back({"step after step of one phase", "oneTBB", [threads] {
                           // Nothing makes oneTBB use more than one thread, but
                           // a body that waits for the others.
                           auto step = [&] {
                             std::atomic<int> arrived = 0;
                             tbb::parallel_for(
                                 0, threads,
                                 [&](int) {
                                   ++arrived;
                                   while (arrived < threads)
                                     ;
                                 },
                                 tbb::static_partitioner());
                           };
                           step();
                           Clock::time_point start = Clock::now();
                           step();
                           return microsecondsSince(start);
                         }});
#endif
#ifdef _OPENMP
  contestants.push_back({"step after step of one phase", "OpenMP", [threads] {
                           double time = 0;
                           for (int i = 0; i < 2; ++i) {
                             Clock::time_point start = Clock::now();
#pragma omp parallel num_threads(threads)
                             {
                               asm volatile("" ::: "memory");
                             }
                             time = microsecondsSince(start);
                           }
                           return time;
                         }});
  contestants.push_back({"barrier", "OpenMP", [threads] {
                           Clock::time_point start = Clock::now();
#pragma omp parallel num_threads(threads)
                           for (int i = 0; i < barriers; ++i) {
#pragma omp barrier
                           }
                           return microsecondsSince(start) / barriers;
                         }});
#endif
  return contestants;
}

Status run(unsigned threads, unsigned decodeThreads, int rounds, bool json) {
  SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
  if (threads == 0)
    threads = budget.threads();
  if (decodeThreads == 0)
    decodeThreads = threads;
  PhaseTeamOptions prefill{.threads = threads,
                           .cpus = budget.cpusFor(threads),
                           .oversubscribed = threads > budget.threads()};
  PhaseTeamOptions decode = prefill;
  decode.threads = decodeThreads;
  const PhaseTeamOptions options[] = {prefill, decode};
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<PhaseTeam>> teams,
                            PhaseTeam::createSharing(options));
  std::vector<Contestant> contestants = ours(*teams[0], *teams[1]);
  for (Contestant &peer : theirs(static_cast<int>(threads)))
    contestants.push_back(std::move(peer));
  // Threads of the one before still spin for a while; a few runs are not
  // counted.
  constexpr int batch = 50, uncounted = 10;
  for (int round = 0; round < rounds; ++round)
    for (Contestant &contestant : contestants)
      for (int i = 0; i < batch + uncounted; ++i)
        if (double time = contestant.run(); i >= uncounted)
          contestant.samples.push_back(time);

  std::string text;
  Json results = Json::array();
  for (const Contestant &contestant : contestants) {
    const double middle = contestant.quantile(0.5);
    const double high = contestant.quantile(0.9);
    char line[160];
    std::snprintf(line, sizeof(line), "%-32s %-10s %8.2f us, 90%%: %8.2f us\n",
                  contestant.test.c_str(), contestant.who.c_str(), middle,
                  high);
    text += line;
    results.push_back({{"test", contestant.test},
                       {"who", contestant.who},
                       {"median_us", middle},
                       {"quantile90_us", high}});
  }
  if (json)
    text = Json{{"prefill_threads", threads},
                {"decode_threads", decodeThreads},
                {"results", results}}
               .dump(2) +
           "\n";
  return writeStandardOutput(text);
}

} // namespace

int main(int argc, char **argv) try {
  CLI::App app{"Times steps and barriers of phase teams, in turn with oneTBB "
               "and OpenMP.\n\n  sandwich-benchmark-teams --decode-threads=1"};
  unsigned threads = 0, decodeThreads = 0;
  int rounds = 40;
  bool json = false;
  app.add_option("--threads", threads,
                 "Threads of the prefill team (default: what this machine "
                 "allows)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--decode-threads", decodeThreads,
                 "Threads of the decode team (default: as --threads)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", rounds, "Rounds of 50 samples each")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_flag("--json", json, "Print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\n", wrong.what());
    return 2;
  }
  if (Status status = run(threads, decodeThreads, rounds, json); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
