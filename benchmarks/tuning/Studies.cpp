//===- Studies.cpp - What each part of the search is worth ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Studies.h"

#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <algorithm>
#include <cstdio>
#include <random>

using namespace sandwich;
using namespace sandwich::benchmark;

static std::string describe(const Schedule &schedule) {
  auto [bM, bN, bK] = schedule.slice;
  auto [tM, tN, tK] = schedule.threads;
  std::array<char, 160> text;
  std::snprintf(text.data(), text.size(),
                "%s %ldx%ldx%ld on %ldx%ldx%ld, prefetch %ld at %ld",
                schedule.microKernel.name().c_str(), bM, bN, bK, tM, tN, tK,
                schedule.prefetchLines, schedule.prefetchDistance);
  return text.data();
}

Studies::Studies(const StudyOptions &options, Target target)
    : options(options), target(std::move(target)),
      model(CostModelParameters::of(this->target, options.threads)) {}

Result<std::unique_ptr<Studies>> Studies::create(const StudyOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget("host"));
  MeasuringOptions measuring;
  measuring.threads = static_cast<unsigned>(options.threads);
  measuring.cpus = options.cpus;
  measuring.maxRows = options.mostRows;
  std::unique_ptr<Studies> studies(new Studies(options, std::move(target)));
  SANDWICH_ASSIGN_OR_RETURN(
      studies->evaluator,
      MeasuringEvaluator::create(studies->target, measuring));
  return studies;
}

std::vector<MicroKernel> Studies::menuFor(const MatmulShape &shape) const {
  std::vector<MicroKernel> menu = microKernelMenu(shape, target);
  std::erase_if(menu, [&](const MicroKernel &kernel) {
    return !reads(kernel, packingFor(shape, kernel.isa));
  });
  return menu;
}

/// Searches from nothing, with a session of its own.
Result<Choice> Studies::search(Strategy strategy, const Payload &payload,
                               TuningOptions tuning, int64_t &measurements,
                               SearchLog &log) {
  MeasuringSession session(*evaluator);
  std::vector<MicroKernel> menu = menuFor(payload.shape);
  // Only what the search finds by itself counts.
  ScheduleTable untuned;
  tuning.considersModel = false;
  TuningContext context{session, tuning, menu, model, untuned, log};
  Result<Choice> choice = makeStrategy(strategy)->choose(payload, context);
  measurements += session.measurements();
  return choice;
}

//===----------------------------------------------------------------------===//
// Ablation
//===----------------------------------------------------------------------===//

Result<Schedule> Studies::fastStartOnly(const Payload &payload,
                                        MeasuringSession &session) {
  SearchOptions search;
  SearchLog log;
  Schedule best;
  double fastest = 0;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menuFor(payload.shape))) {
    SANDWICH_ASSIGN_OR_RETURN(
        FastStart start,
        fastStart(payload, members.back(), session, search, log));
    if (start.flopsPerSecond <= fastest)
      continue;
    fastest = start.flopsPerSecond;
    best = {.microKernel = members.back(), .slice = start.slice};
  }
  best.threads = {1, payload.threads, 1};
  best.slice = clipSlice(payload, best.microKernel, best.slice, best.threads);
  return completeByRule(best, payload.shape, payload.rows);
}

Result<Schedule> Studies::finetuned(const Payload &payload,
                                    MeasuringSession &session) {
  SearchOptions search;
  SearchLog log;
  std::vector<MicroKernel> kernels;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menuFor(payload.shape)))
    kernels.push_back(members.back());
  SANDWICH_ASSIGN_OR_RETURN(
      kernels, probeKernels(payload, kernels, session, search, log));
  std::vector<FinetuneCandidate> candidates;
  for (const MicroKernel &kernel : kernels) {
    SANDWICH_ASSIGN_OR_RETURN(FastStart start,
                              fastStart(payload, kernel, session, search, log));
    candidates.push_back({kernel, start.slice});
  }
  SANDWICH_ASSIGN_OR_RETURN(
      Choice choice,
      finetune(payload, candidates, {}, true, session, search, log));
  SANDWICH_RETURN_IF_ERROR(finetuneWalk(payload, choice, session, search, log));
  SANDWICH_ASSIGN_OR_RETURN(
      choice, chooseFinally(payload, choice, {}, 0, session, search, log));
  return choice.schedule;
}

Status Studies::ablation(const std::vector<MatmulShape> &shapes,
                         const std::vector<int64_t> &rows) {
  std::printf(
      "Speed of what is found, the cost model's choice being 1, and the "
      "measurements it took\n");
  std::printf("%6s %6s %5s %11s %18s %18s %18s  %s\n", "N", "K", "M",
              "cost model", "+ fast start", "+ finetune", "+ split-k", "found");
  for (const MatmulShape &shape : shapes)
    for (int64_t row : rows) {
      Payload payload{shape, row, options.threads};
      SANDWICH_ASSIGN_OR_RETURN(Choice modelled,
                                chooseByModel(payload, menuFor(shape), model));
      std::vector<Schedule> found = {modelled.schedule};
      std::vector<int64_t> counts = {0};
      for (int step = 1; step <= 3; ++step) {
        MeasuringSession session(*evaluator);
        payload.splitK = step == 3;
        SANDWICH_ASSIGN_OR_RETURN(Schedule schedule,
                                  step == 1 ? fastStartOnly(payload, session)
                                            : finetuned(payload, session));
        // Each step adds to those before it, so that what they found has
        // another chance, as it has in the search itself; the model's choice is
        // what they are compared with.
        size_t winner = 1;
        if (step > 1) {
          SANDWICH_ASSIGN_OR_RETURN(
              winner, session.fastest(payload, {found.back(), schedule}));
        }
        found.push_back(winner == 0 ? found.back() : schedule);
        counts.push_back(session.measurements());
      }
      SANDWICH_ASSIGN_OR_RETURN(
          std::vector<double> shares,
          evaluator->compare(payload, found, options.rounds));
      std::printf("%6ld %6ld %5ld %11.2f", shape.n, shape.k, row, 1.0);
      for (size_t i = 1; i < found.size(); ++i)
        std::printf(" %10.2f (%5ld)", 1 / shares[i], counts[i]);
      std::printf("  %s\n", describe(found.back()).c_str());
      std::fflush(stdout);
    }
  return {};
}

//===----------------------------------------------------------------------===//
// Exhaustive search
//===----------------------------------------------------------------------===//

Status Studies::sample(const std::vector<MatmulShape> &shapes, int64_t maxRows,
                       int64_t points, int64_t mostSchedules, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  TuningOptions tuning;
  tuning.exhaustiveLimit = mostSchedules;
  tuning.exhaustiveSeed = seed;
  std::printf("Time of what is found, that of the best of all schedules being "
              "1 (of %ld drawn at random where there are more), and the "
              "measurements it took\n",
              mostSchedules);
  std::printf("%6s %6s %5s %12s %18s %18s\n", "N", "K", "M", "exhaustive",
              "sandwich", "scale-up-and-out");
  double worst = 0;
  int64_t bySandwich = 0, byScaling = 0, byExhaustive = 0;
  double sandwichTotal = 0, scalingTotal = 0;
  for (int64_t point = 0; point < points; ++point) {
    const MatmulShape &shape =
        shapes[between(0, static_cast<int64_t>(shapes.size()) - 1)];
    Payload payload{shape, between(1, maxRows), options.threads};
    SearchLog log;
    int64_t measurements = 0;
    Result<Choice> best =
        search(Strategy::Exhaustive, payload, tuning, measurements, log);
    SANDWICH_ASSIGN_OR_RETURN(Choice checked, std::move(best));
    // Of thousands of noisy measurements the least is not the fastest.
    std::ranges::stable_sort(log, {}, &SearchStep::seconds);
    constexpr size_t finalists = 8;
    std::vector<Schedule> schedules = {checked.schedule};
    for (const SearchStep &step : log)
      if (schedules.size() <= finalists)
        schedules.push_back(step.schedule);
    int64_t sandwichCount = 0, scalingCount = 0;
    SearchLog ignored;
    SANDWICH_ASSIGN_OR_RETURN(
        Choice sandwich,
        search(Strategy::Sandwich, payload, tuning, sandwichCount, ignored));
    SANDWICH_ASSIGN_OR_RETURN(Choice scaling,
                              search(Strategy::ScaleUpAndOut, payload, tuning,
                                     scalingCount, ignored));
    schedules.push_back(sandwich.schedule);
    schedules.push_back(scaling.schedule);
    SANDWICH_ASSIGN_OR_RETURN(
        std::vector<double> shares,
        evaluator->compare(payload, schedules, options.rounds));
    double least = *std::min_element(shares.begin(), shares.end() - 2);
    double sandwichShare = shares[shares.size() - 2] / least;
    double scalingShare = shares[shares.size() - 1] / least;
    std::printf("%6ld %6ld %5ld %4.2f (%5ld) %10.3f (%5ld) %10.3f (%5ld)\n",
                payload.shape.n, payload.shape.k, payload.rows, 1.0,
                measurements, sandwichShare, sandwichCount, scalingShare,
                scalingCount);
    size_t bestOfAll =
        std::min_element(shares.begin(), shares.end() - 2) - shares.begin();
    std::printf("%20s best %s, sandwich %s, scale-up-and-out %s\n", "",
                describe(schedules[bestOfAll]).c_str(),
                describe(sandwich.schedule).c_str(),
                describe(scaling.schedule).c_str());
    std::fflush(stdout);
    worst = std::max(worst, sandwichShare);
    sandwichTotal += sandwichShare;
    scalingTotal += scalingShare;
    bySandwich += sandwichCount;
    byScaling += scalingCount;
    byExhaustive += measurements;
  }
  auto count = static_cast<double>(points);
  std::printf("\nsandwich: %.3f of the best on average, %.3f at worst, %ld "
              "measurements\nscale-up-and-out: %.3f on average, %ld "
              "measurements (%.1f times as many)\nexhaustive: %ld "
              "measurements\n",
              sandwichTotal / count, worst, bySandwich, scalingTotal / count,
              byScaling,
              static_cast<double>(byScaling) / static_cast<double>(bySandwich),
              byExhaustive);
  return {};
}

//===----------------------------------------------------------------------===//
// Sliding window and reuse
//===----------------------------------------------------------------------===//

Status Studies::window(const std::vector<MatmulShape> &shapes, int64_t maxRows,
                       const std::vector<int64_t> &windows,
                       const std::vector<double> &thresholds) {
  struct Setting {
    int64_t window;
    double threshold;
    double seconds = 0;
    int64_t measurements = 0;
    size_t ranges = 0;
    /// Of the matmuls of all prompts, and what each takes as a share of the
    /// first setting's time.
    double promptSeconds = 0, shares = 0;
  };
  std::vector<Setting> settings;
  for (int64_t window : windows)
    for (double threshold : thresholds)
      settings.push_back({window, threshold});
  // Prompts of all lengths, few of each order of magnitude.
  std::vector<int64_t> prompts;
  for (int64_t rows = 1; rows <= maxRows;
       rows += std::max<int64_t>(rows / 2, 1))
    prompts.push_back(rows);
  size_t compared = 0;
  for (const MatmulShape &given : shapes) {
    MatmulShape shape = given;
    std::vector<MicroKernel> menu = menuFor(shape);
    std::vector<ScheduleTable> tables;
    for (Setting &setting : settings) {
      TuningOptions tuning;
      tuning.considersModel = false;
      tuning.window = setting.window;
      tuning.reuseThreshold = setting.threshold;
      MeasuringSession session(*evaluator);
      double compiling = evaluator->programs().compileSeconds();
      SANDWICH_ASSIGN_OR_RETURN(ScheduleTable untuned,
                                chooseByRule(shape, target, options.threads));
      SANDWICH_ASSIGN_OR_RETURN(
          TunedGroup tuned,
          tuneGroup({shape, options.threads, std::move(untuned)},
                    allRows(maxRows), *makeStrategy(Strategy::Sandwich), menu,
                    model, session, tuning));
      // Code that the settings before compiled is there already.
      setting.seconds += session.elapsedSeconds() -
                         (evaluator->programs().compileSeconds() - compiling);
      setting.measurements += session.measurements();
      setting.ranges += tuned.table.size();
      tables.push_back(std::move(tuned.table));
    }
    for (int64_t rows : prompts) {
      std::vector<Schedule> schedules;
      for (const ScheduleTable &table : tables)
        schedules.push_back(scheduleFor(table, rows));
      Payload payload{shape, rows, options.threads};
      SANDWICH_ASSIGN_OR_RETURN(
          std::vector<double> shares,
          evaluator->compare(payload, schedules, options.rounds));
      SANDWICH_ASSIGN_OR_RETURN(double first,
                                evaluator->seconds(payload, schedules.front()));
      for (size_t i = 0; i < settings.size(); ++i) {
        settings[i].promptSeconds += first * shares[i];
        settings[i].shares += shares[i];
      }
      ++compared;
    }
  }
  std::printf("Tuning time (without compiling) against the time of these "
              "matmuls, once for each, for prompts of");
  for (int64_t rows : prompts)
    std::printf(" %ld", rows);
  std::printf(" tokens: the sum, and the mean of the times as shares of the "
              "first line's\n");
  std::printf("%6s %9s %10s %13s %7s %11s %8s\n", "sigma", "threshold",
              "seconds", "measurements", "ranges", "prompts, ms", "share");
  for (const Setting &setting : settings)
    std::printf("%6ld %9.2f %10.1f %13ld %7zu %11.2f %8.3f\n", setting.window,
                setting.threshold, setting.seconds, setting.measurements,
                setting.ranges, 1e3 * setting.promptSeconds,
                setting.shares / static_cast<double>(compared));
  return {};
}

//===----------------------------------------------------------------------===//
// More rows than were tuned
//===----------------------------------------------------------------------===//

Status Studies::extension(const std::vector<MatmulShape> &shapes,
                          int64_t maxRows) {
  std::printf(
      "Time of the last tuned schedule, which repeats its slice on each "
      "division, the untuned rule's being 1\n");
  std::printf("%6s %6s %7s %7s %7s\n", "N", "K", "tuned", "M", "time");
  for (const MatmulShape &shape : shapes) {
    std::vector<MicroKernel> menu = menuFor(shape);
    MeasuringSession session(*evaluator);
    SANDWICH_ASSIGN_OR_RETURN(ScheduleTable untuned,
                              chooseByRule(shape, target, options.threads));
    SANDWICH_ASSIGN_OR_RETURN(
        TunedGroup tuned,
        tuneGroup({shape, options.threads, untuned}, allRows(maxRows),
                  *makeStrategy(Strategy::Sandwich), menu, model, session, {}));
    for (int64_t rows = maxRows; rows <= options.mostRows; rows *= 2) {
      Payload payload{shape, rows, options.threads};
      const Schedule &rule = scheduleFor(untuned, rows);
      Schedule last = tuned.table.back().schedule;
      SANDWICH_ASSIGN_OR_RETURN(
          std::vector<double> shares,
          evaluator->compare(payload, {rule, last}, options.rounds));
      std::printf("%6ld %6ld %7ld %7ld %7.3f\n", shape.n, shape.k, maxRows,
                  rows, shares.back());
      std::fflush(stdout);
    }
  }
  return {};
}
