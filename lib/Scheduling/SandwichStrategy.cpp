//===- SandwichStrategy.cpp - The search of the Sandwich paper ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrategyFamilies.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

using namespace sandwich;

namespace {

class SandwichStrategy : public SearchStrategy {
public:
  Result<Choice> choose(const Payload &payload,
                        TuningContext &context) override;
  void remember(const Payload &payload, const Choice &choice,
                const TuningContext &context) override;

private:
  /// What was chosen for one payload.
  struct Chosen {
    /// All micro-kernels that behaved as the chosen one.
    std::vector<MicroKernel> members;
    Choice choice;
    /// The slice in sizes of the payload, and whether it held all of a part.
    std::array<int64_t, 3> slice;
    std::array<bool, 3> whole;
  };

  /// A search over `menu`, fixed slices and grids as they are.
  Result<Choice> search(const Payload &payload,
                        const std::vector<MicroKernel> &menu,
                        TuningContext &context);
  Result<std::optional<Choice>> goOnNearLimit(const Payload &payload,
                                              TuningContext &context);
  /// The share of the machine's limit that is not worth a search.
  double enoughShare(const Payload &payload,
                     const TuningOptions &options) const;
  /// The micro-kernels of the window.
  std::vector<MicroKernel> windowMenu(const TuningContext &context) const;

  /// What the untuned rule says, where it fits.
  static std::optional<Schedule> untuned(const Payload &payload,
                                         const TuningContext &context);
  /// The schedule of the last payload, for `payload`.
  Schedule derive(const Payload &payload, const MicroKernel &kernel) const;
  /// Its prefetch parameters, as far as they differ from the rule's.
  Schedule applyPrefetch(const Payload &payload, Schedule schedule) const;
  void record(const Payload &payload, const Choice &choice,
              const TuningContext &context);

  std::deque<Chosen> window;
  int64_t payloads = 0;
  bool sliceFixed = false, gridFixed = false;
  /// Of the last search with every micro-kernel; the share is that of the
  /// machine's limit that it reached.
  int64_t searchedRows = 0;
  double searchedSeconds = 0;
  double searchedShare = 1;
  /// Whether it found nothing better than the schedule before.
  bool searchedInVain = false;
  /// Rows and seconds of all searches with every micro-kernel.
  std::vector<std::pair<int64_t, double>> searches;
  /// Whether the last took hardly longer than one for far fewer rows.
  bool flat = false;
  /// Payloads in a row whose derived schedule was near the limit, and the rows
  /// of the last of them.
  int64_t nearLimit = 0, comparedRows = 0;
  /// The last measured speed, what derived schedules are thought to reach.
  double flopsPerSecond = 0;
};

Schedule SandwichStrategy::applyPrefetch(const Payload &payload,
                                         Schedule schedule) const {
  const Choice &last = window.back().choice;
  schedule = completePrefetch(schedule, payload.shape, payload.rows);
  Schedule rule = completePrefetch(last.schedule, payload.shape, last.rows);
  if ((rule.prefetchDistance > 0) != (schedule.prefetchDistance > 0))
    return schedule;
  if (last.schedule.prefetchLines == 0)
    schedule.prefetchLines = 0;
  else if (last.schedule.prefetchLines == 2 * rule.prefetchLines)
    schedule.prefetchLines *= 2;
  if (schedule.prefetchDistance > 0)
    schedule.prefetchDistance = last.schedule.prefetchDistance;
  schedule.prefetchStreams = last.schedule.prefetchStreams;
  schedule.prefetchHint = last.schedule.prefetchHint;
  return schedule;
}

std::optional<Schedule>
SandwichStrategy::untuned(const Payload &payload,
                          const TuningContext &context) {
  if (context.untuned.empty())
    return std::nullopt;
  const Schedule &schedule = scheduleFor(context.untuned, payload.rows);
  Packing packing = packingFor(payload.shape, schedule.microKernel.isa);
  std::vector<std::array<int64_t, 3>> possible = threadGrids(payload, packing);
  if (!reads(schedule.microKernel, packing) ||
      !verify(schedule, payload.shape) ||
      std::ranges::find(possible, schedule.threads) == possible.end())
    return std::nullopt;
  return schedule;
}

Schedule SandwichStrategy::derive(const Payload &payload,
                                  const MicroKernel &kernel) const {
  const Chosen &last = window.back();
  Schedule schedule = last.choice.schedule;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part = largestPart(payload, packing, schedule.threads);
  schedule.microKernel = kernel;
  for (int d = 0; d < 3; ++d)
    if (last.whole[d])
      schedule.slice[d] = std::max(schedule.slice[d], part[d]);
  schedule.slice = clipSlice(payload, kernel, schedule.slice, schedule.threads);
  return applyPrefetch(payload, schedule);
}

std::vector<MicroKernel>
SandwichStrategy::windowMenu(const TuningContext &context) const {
  std::vector<MicroKernel> menu;
  for (const MicroKernel &kernel : context.menu)
    if (std::ranges::any_of(window, [&](const Chosen &chosen) {
          return std::ranges::find(chosen.members, kernel) !=
                 chosen.members.end();
        }))
      menu.push_back(kernel);
  return menu;
}

double SandwichStrategy::enoughShare(const Payload &payload,
                                     const TuningOptions &options) const {
  bool alike = static_cast<double>(payload.rows) <
               static_cast<double>(searchedRows) * options.searchedShareHolds;
  return alike ? std::min(options.nearLimit,
                          searchedShare - (searchedInVain
                                               ? options.searchedInVainDoubt
                                               : options.searchedShareDoubt))
               : options.nearLimit;
}

/// The last schedule, or at first the untuned one, where it does what the
/// machine can do: there is nothing to search for.
Result<std::optional<Choice>>
SandwichStrategy::goOnNearLimit(const Payload &payload,
                                TuningContext &context) {
  const TuningOptions &options = context.options;
  if (!window.empty() && payload.rows <= window.back().choice.rows)
    return std::optional<Choice>();
  std::optional<Schedule> first = untuned(payload, context);
  if (window.empty() && !first)
    return std::optional<Choice>();
  Schedule before =
      window.empty()
          ? *first
          : derive(payload, window.back().choice.schedule.microKernel);
  std::vector<std::array<int64_t, 3>> possible =
      threadGrids(payload, packingFor(payload.shape, before.microKernel.isa));
  if (std::ranges::find(possible, before.threads) == possible.end())
    return std::optional<Choice>();
  // Time and again so: then a few more rows change nothing.
  if (nearLimit >= options.window &&
      static_cast<double>(payload.rows) <=
          static_cast<double>(comparedRows) * (1 + options.trustedGrowth)) {
    Choice choice{payload.rows, before, payload.flops() / flopsPerSecond,
                  false};
    context.log.push_back(
        {SearchPhase::Derived, payload.rows, before, choice.seconds, true});
    return std::optional(choice);
  }
  SANDWICH_ASSIGN_OR_RETURN(ScheduleEvaluator::Limit limit,
                            context.session.compareToLimit(payload, before));
  const double enough = enoughShare(payload, options);
  if (limit.share < enough && limit.share >= enough - options.nearLimitDoubt) {
    SANDWICH_ASSIGN_OR_RETURN(limit,
                              context.session.compareToLimit(payload, before));
  }
  if (limit.share < enough) {
    nearLimit = 0;
    return std::optional<Choice>();
  }
  ++nearLimit;
  comparedRows = payload.rows;
  context.log.push_back(
      {SearchPhase::Limit, payload.rows, before, limit.seconds, true});
  return std::optional(Choice{payload.rows, before, limit.seconds});
}

Result<Choice> SandwichStrategy::choose(const Payload &payload,
                                        TuningContext &context) {
  const TuningOptions &options = context.options;
  // Far from the last full search, slices and grids are searched again with
  // every micro-kernel, and so are they where the matmul begins to be limited
  // by something else than before.
  bool full = payloads < options.window || window.empty() ||
              payload.rows >= options.searchAgainAt * searchedRows;
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Choice> good,
                            goOnNearLimit(payload, context));
  if (good) {
    record(payload, *good, context);
    return *good;
  }
  Choice best;
  if (!full) {
    SANDWICH_ASSIGN_OR_RETURN(best,
                              search(payload, windowMenu(context), context));
    full = flat && best.seconds > searchedSeconds * (1 + options.flatWithin);
  }
  if (full) {
    sliceFixed = gridFixed = false;
    SANDWICH_ASSIGN_OR_RETURN(best, search(payload, context.menu, context));
    searchedRows = payload.rows;
    searchedSeconds = best.seconds;
    flat = true;
    for (auto [rows, seconds] : searches) {
      if (2 * payload.rows < 3 * rows)
        break;
      double growth = static_cast<double>(payload.rows) / rows - 1;
      flat = best.seconds <= seconds * (1 + 0.3 * growth);
    }
    searches.emplace_back(payload.rows, best.seconds);
    SANDWICH_ASSIGN_OR_RETURN(
        ScheduleEvaluator::Limit reached,
        context.session.compareToLimit(payload, best.schedule));
    searchedInVain =
        !window.empty() &&
        best.schedule ==
            derive(payload, window.back().choice.schedule.microKernel);
    // Models know no limit.
    searchedShare = reached.share > 0 ? reached.share : 1;
  }
  record(payload, best, context);
  return best;
}

Result<Choice> SandwichStrategy::search(const Payload &payload,
                                        const std::vector<MicroKernel> &menu,
                                        TuningContext &context) {
  const TuningOptions &options = context.options;
  size_t begin = context.log.size();
  std::vector<std::vector<MicroKernel>> classes =
      microKernelClasses(payload, menu);
  if (classes.empty())
    return noMicroKernel(payload);
  std::vector<MicroKernel> kernels;
  for (const std::vector<MicroKernel> &members : classes) {
    kernels.push_back(members.back());
    if (!window.empty() &&
        std::ranges::find(members, window.back().choice.schedule.microKernel) !=
            members.end())
      kernels.back() = window.back().choice.schedule.microKernel;
  }

  if (sliceFixed && gridFixed && kernels.size() == 1 && !flat &&
      flopsPerSecond > 0) {
    Choice choice{payload.rows, derive(payload, kernels.front()),
                  payload.flops() / flopsPerSecond, false};
    context.log.push_back({SearchPhase::Derived, payload.rows, choice.schedule,
                           choice.seconds, true});
    return choice;
  }

  std::vector<FinetuneCandidate> candidates;
  if (sliceFixed) {
    for (const MicroKernel &kernel : kernels)
      candidates.push_back({kernel, derive(payload, kernel).slice});
  } else {
    SANDWICH_ASSIGN_OR_RETURN(
        kernels,
        probeKernels(payload, kernels, context.session, options, context.log));
    for (const MicroKernel &kernel : kernels) {
      SANDWICH_ASSIGN_OR_RETURN(
          FastStart start,
          fastStart(payload, kernel, context.session, options, context.log));
      candidates.push_back({kernel, start.slice});
    }
  }
  std::vector<std::array<int64_t, 3>> grids;
  if (gridFixed)
    grids.push_back(window.back().choice.schedule.threads);
  SANDWICH_ASSIGN_OR_RETURN(Choice best,
                            finetune(payload, candidates, grids, !sliceFixed,
                                     context.session, options, context.log));
  if (sliceFixed) {
    best.schedule = applyPrefetch(payload, best.schedule);
    SANDWICH_ASSIGN_OR_RETURN(best.seconds,
                              context.session.seconds(payload, best.schedule));
  } else {
    SANDWICH_RETURN_IF_ERROR(
        finetuneWalk(payload, best, context.session, options, context.log));
  }
  // What served the payload before, and what the untuned rule says, have
  // another chance; the former goes on unless there is something to gain:
  // fewer ranges, and less code.
  std::vector<Schedule> others;
  Packing packing = packingFor(payload.shape, best.schedule.microKernel.isa);
  std::vector<std::array<int64_t, 3>> possible = threadGrids(payload, packing);
  auto consider = [&](const Schedule &schedule) {
    if (reads(schedule.microKernel, packing) &&
        std::ranges::find(possible, schedule.threads) != possible.end())
      others.push_back(schedule);
  };
  if (!window.empty())
    consider(derive(payload, window.back().choice.schedule.microKernel));
  size_t kept = others.size();
  if (!sliceFixed) {
    if (std::optional<Schedule> rule = untuned(payload, context))
      consider(*rule);
    SANDWICH_ASSIGN_OR_RETURN(Choice modelled,
                              chooseByModel(payload, menu, context.model));
    consider(modelled.schedule);
    SANDWICH_ASSIGN_OR_RETURN(best, chooseFinally(payload, best, others, begin,
                                                  context.session, options,
                                                  context.log));
  }
  if (kept > 0) {
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              context.session.seconds(payload, others.front()));
    context.log.push_back(
        {SearchPhase::Finetune, payload.rows, others.front(), seconds, false});
    if (seconds <= best.seconds * (1 + options.reuseWithin)) {
      context.log.back().accepted = true;
      best = {payload.rows, others.front(), seconds};
    }
  }
  return best;
}

void SandwichStrategy::record(const Payload &payload, const Choice &choice,
                              const TuningContext &context) {
  const TuningOptions &options = context.options;
  const MicroKernel &kernel = choice.schedule.microKernel;
  Chosen chosen;
  chosen.choice = choice;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, context.menu))
    if (std::ranges::find(members, kernel) != members.end())
      chosen.members = members;
  Packing packing = packingFor(payload.shape, kernel.isa);
  std::array<int64_t, 3> part =
      largestPart(payload, packing, choice.schedule.threads);
  for (int d = 0; d < 3; ++d) {
    chosen.slice[d] = std::min(choice.schedule.slice[d], part[d]);
    chosen.whole[d] = choice.schedule.slice[d] >= part[d];
  }

  auto average = [&](auto sizeOf) {
    double sum = 0;
    for (const Chosen &earlier : window)
      sum += static_cast<double>(sizeOf(earlier));
    return sum / static_cast<double>(window.size());
  };
  if (static_cast<int64_t>(window.size()) >= options.window) {
    bool sliceStable = true, gridStable = true;
    for (int d = 0; d < 3; ++d) {
      bool alwaysWhole =
          chosen.whole[d] && std::ranges::all_of(window, [&](const Chosen &c) {
            return c.whole[d];
          });
      double size = average([&](const Chosen &c) { return c.slice[d]; });
      if (!alwaysWhole &&
          std::abs(chosen.slice[d] - size) > options.reuseThreshold * size)
        sliceStable = false;
      double threads = average(
          [&](const Chosen &c) { return c.choice.schedule.threads[d]; });
      if (std::abs(choice.schedule.threads[d] - threads) >
          options.reuseThreshold * threads)
        gridStable = false;
    }
    sliceFixed |= sliceStable;
    gridFixed |= gridStable;
  }
  if (choice.measured)
    flopsPerSecond = payload.flops() / choice.seconds;
  ++payloads;
  window.push_back(std::move(chosen));
  while (static_cast<int64_t>(window.size()) >
         std::max<int64_t>(options.window, 1))
    window.pop_front();
}

void SandwichStrategy::remember(const Payload &payload, const Choice &choice,
                                const TuningContext &context) {
  record(payload, choice, context);
}

} // namespace

std::unique_ptr<SearchStrategy> sandwich::makeSandwichStrategy() {
  return std::make_unique<SandwichStrategy>();
}
