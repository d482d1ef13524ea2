//===- WakeupMeasurement.cpp - What the system takes of busy CPUs ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every CPU asks for the time again and again, and counts the gaps in its
/// answers: the "selfish detour" benchmark of Beckman, Iskra, Yoshii and
/// Coghlan ("The influence of operating systems on the performance of
/// collective operations at extreme scale", 2006).
///
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"

#include <algorithm>
#include <thread>
#include <utility>

using namespace sandwich;
using namespace sandwich::measuring;

namespace {

/// What one CPU saw. Apart from its neighbours, as it is written all the time.
struct alignas(128) Gaps {
  double count = 0;
  double seconds = 0;
};

struct Watch {
  double seconds;
  std::vector<Gaps> gaps;

  void run(size_t thread) {
    // Interrupts that only count the time take a few microseconds; who is put
    // aside for another thread is away for longer.
    constexpr double shortest = 20e-6;
    const Clock::time_point begin = Clock::now();
    Gaps seen;
    for (Clock::time_point last = begin;;) {
      const Clock::time_point now = Clock::now();
      const double gap = std::chrono::duration<double>(now - last).count();
      if (gap > shortest) {
        ++seen.count;
        seen.seconds += gap;
      }
      if (std::chrono::duration<double>(now - begin).count() >= seconds)
        break;
      last = now;
    }
    gaps[thread].count += seen.count;
    gaps[thread].seconds += seen.seconds;
  }
};

/// What gaps take of a CPU, as shares of time, and how often they come.
struct GapRates {
  double share = 0, perSecond = 0;
};

/// A team that watches for some time now and then.
class Watcher {
public:
  static Result<Watcher> create(const std::vector<unsigned> &cpus) {
    Watcher watcher;
    SANDWICH_ASSIGN_OR_RETURN(watcher.team, createPinnedTeam(cpus));
    watcher.watch.gaps.resize(cpus.size());
    return watcher;
  }

  void run() {
    team->run(
        static_cast<unsigned>(watch.gaps.size()),
        [](void *context, int32_t thread) {
          static_cast<Watch *>(context)->run(static_cast<size_t>(thread));
        },
        &watch);
    watched += static_cast<double>(watch.gaps.size()) * watch.seconds;
    // A team without work keeps its cores for a millisecond.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  GapRates rates() const {
    GapRates rates;
    for (const Gaps &each : watch.gaps) {
      rates.share += each.seconds / watched;
      rates.perSecond += each.count / watched;
    }
    return rates;
  }

private:
  std::unique_ptr<PhaseTeam> team;
  Watch watch{0.1, {}};
  double watched = 0;
};

} // namespace

Result<SystemWork>
sandwich::measureSystemWork(const std::vector<unsigned> &cpus,
                            const MeasurementProgress &progress) {
  constexpr std::string_view stage = "watching the system's own work";
  SANDWICH_RETURN_IF_ERROR(report(progress, stage, 0));
  if (cpus.size() < 2)
    return makeError("one CPU cannot be watched while another is idle");
  SANDWICH_ASSIGN_OR_RETURN(Watcher all, Watcher::create(cpus));
  SANDWICH_ASSIGN_OR_RETURN(Watcher butOne,
                            Watcher::create({cpus.begin(), cpus.end() - 1}));
  constexpr int rounds = 15;
  for (int round = 0; round < rounds; ++round) {
    all.run();
    butOne.run();
    SANDWICH_RETURN_IF_ERROR(
        report(progress, stage, static_cast<double>(round + 1) / rounds));
  }
  const GapRates busy = all.rates(), spared = butOne.rates();
  if (busy.share <= spared.share)
    return SystemWork{};
  // As many gaps of the usual length as make the difference.
  return SystemWork{busy.perSecond * (1 - spared.share / busy.share),
                    busy.share / busy.perSecond};
}
