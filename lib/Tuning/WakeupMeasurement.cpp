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

} // namespace

Result<SystemWork>
sandwich::measureSystemWork(const std::vector<unsigned> &cpus,
                            const MeasurementProgress &progress) {
  constexpr std::string_view stage = "watching the system's own work";
  SANDWICH_RETURN_IF_ERROR(report(progress, stage, 0));
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<PhaseTeam> team,
                            createPinnedTeam(cpus));
  constexpr int slices = 20;
  Watch watch{0.1, std::vector<Gaps>(cpus.size())};
  for (int slice = 0; slice < slices; ++slice) {
    team->run(
        static_cast<unsigned>(cpus.size()),
        [](void *context, int32_t thread) {
          static_cast<Watch *>(context)->run(static_cast<size_t>(thread));
        },
        &watch);
    SANDWICH_RETURN_IF_ERROR(
        report(progress, stage, static_cast<double>(slice + 1) / slices));
  }
  Gaps all;
  for (const Gaps &each : watch.gaps) {
    all.count += each.count;
    all.seconds += each.seconds;
  }
  const double watched =
      static_cast<double>(cpus.size()) * slices * watch.seconds;
  return SystemWork{all.count / watched,
                    all.count > 0 ? all.seconds / all.count : 0};
}
