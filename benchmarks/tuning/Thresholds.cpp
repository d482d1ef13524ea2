//===- Thresholds.cpp - What each threshold of the search is worth --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Thresholds.h"

#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/Strategies.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

/// The cost model as a machine whose measurements are noisy.
class NoisyModel : public ScheduleEvaluator {
public:
  NoisyModel(const CostModel &model, std::vector<MicroKernel> menu,
             double noise, double limitShare, int64_t seed)
      : model(model), menu(std::move(menu)),
        random(static_cast<unsigned>(seed)), noise(0, noise),
        limitShare(limitShare) {}

  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override {
    SANDWICH_ASSIGN_OR_RETURN(double time, model.sliceSeconds(shape, schedule));
    return disturb(time);
  }
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override {
    SANDWICH_ASSIGN_OR_RETURN(double time, model.seconds(payload, schedule));
    return disturb(time);
  }
  Result<Limit> compareToLimit(const Payload &payload,
                               const Schedule &schedule) override {
    SANDWICH_ASSIGN_OR_RETURN(double time, model.seconds(payload, schedule));
    SANDWICH_ASSIGN_OR_RETURN(Choice best, chooseByModel(payload, menu, model));
    return Limit{time, disturb(limitShare * best.seconds / time)};
  }

private:
  double disturb(double time) {
    return time * std::max(1 + noise(random), 0.5);
  }

  CostModel model;
  std::vector<MicroKernel> menu;
  std::mt19937 random;
  std::normal_distribution<> noise;
  double limitShare;
};

struct Variant {
  const char *name;
  void (*change)(TuningOptions &);
};

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Each takes one threshold out of the search.
constexpr Variant variants[] = {
    {"as it is", [](TuningOptions &) {}},
    {"window (all micro-kernels)",
     [](TuningOptions &o) { o.searchAgainAt = 0; }},
    {"reuseThreshold", [](TuningOptions &o) { o.reuseThreshold = -1; }},
    {"reuseWithin", [](TuningOptions &o) { o.reuseWithin = 0; }},
    {"searchAgainAt", [](TuningOptions &o) { o.searchAgainAt = infinity; }},
    {"flatWithin", [](TuningOptions &o) { o.flatWithin = infinity; }},
    {"flatJudgedAt", [](TuningOptions &o) { o.flatJudgedAt = 1; }},
    {"flatGrowth (never flat)", [](TuningOptions &o) { o.flatGrowth = -1; }},
    {"nearLimit", [](TuningOptions &o) { o.nearLimit = infinity; }},
    {"nearLimitDoubt", [](TuningOptions &o) { o.nearLimitDoubt = 0; }},
    {"searchedShareHolds", [](TuningOptions &o) { o.searchedShareHolds = 0; }},
    {"searchedShareDoubt", [](TuningOptions &o) { o.searchedShareDoubt = 0; }},
    {"trustedGrowth", [](TuningOptions &o) { o.trustedGrowth = 0; }},
    {"minimumGain", [](TuningOptions &o) { o.minimumGain = 0; }},
    {"promisingWithin", [](TuningOptions &o) { o.promisingWithin = 0; }},
    {"probedKernels", [](TuningOptions &o) { o.probedKernels = 1000; }},
    {"finalCandidates", [](TuningOptions &o) { o.finalCandidates = 0; }},
};

} // namespace

Status sandwich::benchmark::studyThresholds(
    const Target &target, const std::vector<MatmulShape> &shapes,
    int64_t threads, int64_t maxRows, double noise, double limitShare,
    int64_t runs) {
  CostModel model(CostModelParameters::of(target, threads));
  std::printf("%-28s %13s %7s %9s %9s\n", "without", "measurements", "ranges",
              "time", "worst");
  for (const Variant &variant : variants) {
    TuningOptions options;
    // The model is the machine here: its choice would give the answer away.
    options.considersModel = false;
    variant.change(options);
    int64_t measurements = 0;
    size_t ranges = 0, compared = 0;
    double total = 0, worst = 0;
    for (int64_t run = 0; run < runs * static_cast<int64_t>(shapes.size());
         ++run) {
      const MatmulShape &shape = shapes[run % shapes.size()];
      std::vector<MicroKernel> menu = microKernelMenu(shape, target);
      std::erase_if(menu, [&](const MicroKernel &kernel) {
        return !reads(kernel, packingFor(shape, kernel.isa));
      });
      NoisyModel machine(model, menu, noise, limitShare, run);
      MeasuringSession session(machine);
      SANDWICH_ASSIGN_OR_RETURN(ScheduleTable untuned,
                                chooseByRule(shape, target, threads));
      SANDWICH_ASSIGN_OR_RETURN(TunedGroup tuned,
                                tuneGroup({shape, threads, std::move(untuned)},
                                          allRows(maxRows),
                                          *makeStrategy(Strategy::Sandwich),
                                          menu, model, session, options));
      measurements += session.measurements();
      ranges += tuned.table.size();
      // What was found is judged without noise, by all prompts alike.
      for (int64_t rows = 1; rows <= maxRows; ++rows) {
        Payload payload{shape, rows, threads};
        SANDWICH_ASSIGN_OR_RETURN(
            double time,
            model.seconds(payload, scheduleFor(tuned.table, rows)));
        SANDWICH_ASSIGN_OR_RETURN(Choice best,
                                  chooseByModel(payload, menu, model));
        double share = time / best.seconds;
        total += share;
        worst = std::max(worst, share);
        ++compared;
      }
    }
    std::printf("%-28s %13ld %7zu %9.4f %9.3f\n", variant.name,
                measurements / runs, ranges / static_cast<size_t>(runs),
                total / static_cast<double>(compared), worst);
    std::fflush(stdout);
  }
  return {};
}
