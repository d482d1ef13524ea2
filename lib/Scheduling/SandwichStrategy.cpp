//===- SandwichStrategy.cpp - The search of the Sandwich paper ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlidingWindow.h"
#include "StrategyFamilies.h"

#include <algorithm>
#include <optional>

using namespace sandwich;

namespace {

using ThreadGridShape = std::array<int64_t, 3>;

/// Section 5 of the paper: fast start and finetune on the micro-kernels of a
/// sliding window, until reuse fixes what they find and extends it to larger
/// payloads. docs/RationaleScheduling.md says where it departs.
class SandwichStrategy : public SearchStrategy {
public:
  explicit SandwichStrategy(bool splitK) : splitK(splitK) {}

  Result<Choice> choose(const Payload &asked, TuningContext &context) override;
  void remember(const Payload &asked, const Choice &choice,
                const TuningContext &context) override;

private:
  /// `payload` with the grids that this strategy has.
  Payload limited(Payload payload) const {
    payload.splitK = payload.splitK && splitK;
    return payload;
  }
  /// Fast start and finetune on `menu`; fixed slices and grids are kept.
  Result<Choice> search(const Payload &payload,
                        const std::vector<MicroKernel> &menu,
                        TuningContext &context);
  /// With all of the menu, and nothing fixed.
  Result<Choice> searchAgain(const Payload &payload, TuningContext &context);
  /// The first slice of each micro-kernel of `kernels`: fixed, or grown.
  Result<std::vector<FinetuneCandidate>>
  startSlices(const Payload &payload, std::vector<MicroKernel> kernels,
              TuningContext &context);
  /// The best of `best`, what was measured from entry `begin` of the log on and
  /// what others say: the untuned rule, the cost model.
  Result<Choice> compareFinally(const Payload &payload, const Choice &best,
                                const std::vector<MicroKernel> &menu,
                                size_t begin, TuningContext &context);
  /// The extension of the last schedule instead of `best`, where it is hardly
  /// slower: fewer ranges, less code.
  Result<Choice> preferExtension(const Payload &payload, const Choice &best,
                                 TuningContext &context);

  /// The schedule of the payload before, or at first the untuned one, where it
  /// does what the machine can do: there is nothing to search for.
  Result<std::optional<Choice>> goOnNearLimit(const Payload &payload,
                                              TuningContext &context);
  /// The untuned schedule instead of `choice`, which is near the limit, where
  /// it is faster side by side: the limit was measured in another moment.
  Result<Choice> preferUntuned(const Payload &payload, const Choice &choice,
                               TuningContext &context);
  /// The share of the machine's limit that is not worth a search, where code
  /// that finds all in cache reaches `attainable`.
  double enoughShare(const Payload &payload, double attainable,
                     const TuningOptions &options) const;
  /// How `schedule` compares with the limit, and whether it is near enough.
  struct Comparison {
    double seconds = 0;
    bool enough = false;
  };
  Result<Comparison> compareToLimit(const Payload &payload,
                                    const Schedule &schedule,
                                    TuningContext &context);

  /// The schedule of the payload before, for `payload`; nothing at first, or
  /// where its grid does not fit.
  std::optional<Schedule> extension(const Payload &payload) const;
  /// What the untuned rule says, where it fits.
  static std::optional<Schedule> untuned(const Payload &payload,
                                         const TuningContext &context);
  void record(const Payload &payload, const Choice &choice,
              const TuningContext &context);

  const bool splitK;
  SlidingWindow window;
  ScheduleReuse reuse;
  int64_t payloads = 0;
  /// The last measured speed, what extended schedules are thought to reach.
  double flopsPerSecond = 0;

  /// Of the last search with all of the menu.
  struct {
    int64_t rows = 0;
    double seconds = 0;
    /// Of the machine's limit, and what of it reading takes.
    double share = 1;
    double readShare = 1;
  } searched;
  /// Rows and seconds of all of them.
  std::vector<std::pair<int64_t, double>> searches;
  /// Whether the last took hardly longer than one for far fewer rows.
  bool flat = false;
  /// Payloads in a row whose extended schedule was near the limit, and the rows
  /// of the last of them.
  int64_t nearLimit = 0, comparedRows = 0;
};

/// Whether the team can be divided as `schedule` says.
bool fits(const Payload &payload, const Schedule &schedule) {
  Packing packing = packingFor(payload.shape, schedule.microKernel.isa);
  std::vector<ThreadGridShape> possible = threadGrids(payload, packing);
  return reads(schedule.microKernel, packing, payload.shape.storage) &&
         std::ranges::find(possible, schedule.threads) != possible.end();
}

std::optional<Schedule>
SandwichStrategy::untuned(const Payload &payload,
                          const TuningContext &context) {
  if (context.untuned.empty())
    return std::nullopt;
  const Schedule &schedule = scheduleFor(context.untuned, payload.rows);
  if (!verify(schedule, payload.shape) || !fits(payload, schedule))
    return std::nullopt;
  return schedule;
}

std::optional<Schedule>
SandwichStrategy::extension(const Payload &payload) const {
  if (window.empty())
    return std::nullopt;
  Schedule schedule =
      extend(window.last(), payload, window.last().choice.schedule.microKernel);
  if (!verify(schedule, payload.shape) || !fits(payload, schedule))
    return std::nullopt;
  return schedule;
}

//===----------------------------------------------------------------------===//
// The machine's limit
//===----------------------------------------------------------------------===//

double SandwichStrategy::enoughShare(const Payload &payload, double attainable,
                                     const TuningOptions &options) const {
  const double near = options.nearLimit * attainable;
  const double holds = searched.readShare <= options.readingMattersLittle
                           ? options.searchedShareHoldsLonger
                           : options.searchedShareHolds;
  const bool alike = static_cast<double>(payload.rows) <
                     static_cast<double>(searched.rows) * holds;
  return alike ? std::min(near, searched.share - options.searchedShareDoubt)
               : near;
}

Result<SandwichStrategy::Comparison> SandwichStrategy::compareToLimit(
    const Payload &payload, const Schedule &schedule, TuningContext &context) {
  const TuningOptions &options = context.options;
  SANDWICH_ASSIGN_OR_RETURN(ScheduleEvaluator::Limit limit,
                            context.session.compareToLimit(payload, schedule));
  const double enough = enoughShare(payload, limit.attainable, options);
  if (limit.share < enough && limit.share >= enough - options.nearLimitDoubt) {
    SANDWICH_ASSIGN_OR_RETURN(
        limit, context.session.compareToLimit(payload, schedule));
  }
  return Comparison{limit.seconds, limit.share >= enough};
}

Result<std::optional<Choice>>
SandwichStrategy::goOnNearLimit(const Payload &payload,
                                TuningContext &context) {
  const TuningOptions &options = context.options;
  if (!window.empty() && payload.rows <= window.last().choice.rows)
    return std::optional<Choice>();
  std::optional<Schedule> before =
      window.empty() ? untuned(payload, context) : extension(payload);
  if (!before)
    return std::optional<Choice>();
  // Time and again so: then a few more rows change nothing.
  if (nearLimit >= options.window &&
      static_cast<double>(payload.rows) <=
          static_cast<double>(comparedRows) * (1 + options.trustedGrowth)) {
    Choice choice{payload.rows, *before, payload.flops() / flopsPerSecond,
                  false};
    context.log.push_back(
        {SearchPhase::Extension, payload.rows, *before, choice.seconds, true});
    return std::optional(choice);
  }
  SANDWICH_ASSIGN_OR_RETURN(Comparison compared,
                            compareToLimit(payload, *before, context));
  if (!compared.enough) {
    nearLimit = 0;
    // What was best for fewer rows may have too few for these.
    const std::optional<Schedule> rule = untuned(payload, context);
    if (!rule ||
        reducedSchedule(payload, *rule) == reducedSchedule(payload, *before))
      return std::optional<Choice>();
    SANDWICH_ASSIGN_OR_RETURN(compared,
                              compareToLimit(payload, *rule, context));
    if (!compared.enough)
      return std::optional<Choice>();
    context.log.push_back(
        {SearchPhase::Limit, payload.rows, *rule, compared.seconds, true});
    return std::optional(Choice{payload.rows, *rule, compared.seconds});
  }
  ++nearLimit;
  comparedRows = payload.rows;
  const Choice near{payload.rows, *before, compared.seconds};
  SANDWICH_ASSIGN_OR_RETURN(Choice better,
                            preferUntuned(payload, near, context));
  context.log.push_back({SearchPhase::Limit, payload.rows, *before,
                         compared.seconds, better.schedule == *before});
  return std::optional(better);
}

Result<Choice> SandwichStrategy::preferUntuned(const Payload &payload,
                                               const Choice &choice,
                                               TuningContext &context) {
  std::optional<Schedule> rule = untuned(payload, context);
  if (!rule)
    return choice;
  // A tie goes to the first. Of the log nothing else takes part.
  return chooseFinally(payload, choice, {choice.schedule, *rule},
                       context.log.size(), context.session, context.options,
                       context.log);
}

//===----------------------------------------------------------------------===//
// The steps of the paper
//===----------------------------------------------------------------------===//

Result<Choice> SandwichStrategy::choose(const Payload &asked,
                                        TuningContext &context) {
  const Payload payload = limited(asked);
  const TuningOptions &options = context.options;
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Choice> good,
                            goOnNearLimit(payload, context));
  if (good) {
    record(payload, *good, context);
    return *good;
  }
  // Far from the last full search everything is searched again, and so it is
  // where the matmul begins to be limited by something else than before.
  bool again = payloads < options.window || window.empty() ||
               payload.rows >= options.searchAgainAt * searched.rows;
  Choice best;
  if (!again) {
    SANDWICH_ASSIGN_OR_RETURN(
        best, search(payload, window.menu(context.menu), context));
    again = flat && best.seconds > searched.seconds * (1 + options.flatWithin);
  }
  if (again) {
    SANDWICH_ASSIGN_OR_RETURN(best, searchAgain(payload, context));
  }
  record(payload, best, context);
  return best;
}

Result<Choice> SandwichStrategy::searchAgain(const Payload &payload,
                                             TuningContext &context) {
  reuse.reset();
  SANDWICH_ASSIGN_OR_RETURN(Choice best,
                            search(payload, context.menu, context));
  flat = true;
  const TuningOptions &options = context.options;
  for (auto [rows, seconds] : searches) {
    double times = static_cast<double>(payload.rows) / rows;
    if (times < options.flatJudgedAt)
      break;
    flat = best.seconds <= seconds * (1 + options.flatGrowth * (times - 1));
  }
  searches.emplace_back(payload.rows, best.seconds);
  SANDWICH_ASSIGN_OR_RETURN(
      ScheduleEvaluator::Limit reached,
      context.session.compareToLimit(payload, best.schedule));
  // Models know no limit.
  searched = {payload.rows, best.seconds, reached.share > 0 ? reached.share : 1,
              reached.readShare};
  return best;
}

Result<Choice> SandwichStrategy::search(const Payload &payload,
                                        const std::vector<MicroKernel> &menu,
                                        TuningContext &context) {
  const TuningOptions &options = context.options;
  size_t begin = context.log.size();
  std::vector<MicroKernel> kernels;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menu)) {
    kernels.push_back(members.back());
    if (!window.empty() &&
        std::ranges::find(members, window.last().choice.schedule.microKernel) !=
            members.end())
      kernels.back() = window.last().choice.schedule.microKernel;
  }
  if (kernels.empty())
    return noMicroKernel(payload);

  // All is fixed: the payload is divided as the last one was.
  if (reuse.fixesSlice() && reuse.fixesGrid() && kernels.size() == 1 && !flat &&
      flopsPerSecond > 0) {
    Choice choice{payload.rows, extend(window.last(), payload, kernels.front()),
                  payload.flops() / flopsPerSecond, false};
    context.log.push_back({SearchPhase::Extension, payload.rows,
                           choice.schedule, choice.seconds, true});
    return choice;
  }

  SANDWICH_ASSIGN_OR_RETURN(std::vector<FinetuneCandidate> candidates,
                            startSlices(payload, std::move(kernels), context));
  std::vector<ThreadGridShape> grids;
  if (reuse.fixesGrid())
    grids.push_back(window.last().choice.schedule.threads);
  SANDWICH_ASSIGN_OR_RETURN(Choice best,
                            finetune(payload, candidates, grids,
                                     /*growSlices=*/!reuse.fixesSlice(),
                                     context.session, options, context.log));
  if (reuse.fixesSlice()) {
    best.schedule = extendPrefetch(window.last(), payload, best.schedule);
    SANDWICH_ASSIGN_OR_RETURN(best.seconds,
                              context.session.seconds(payload, best.schedule));
  } else {
    SANDWICH_RETURN_IF_ERROR(
        finetuneWalk(payload, best, context.session, options, context.log));
    SANDWICH_ASSIGN_OR_RETURN(
        best, compareFinally(payload, best, menu, begin, context));
  }
  return preferExtension(payload, best, context);
}

Result<std::vector<FinetuneCandidate>>
SandwichStrategy::startSlices(const Payload &payload,
                              std::vector<MicroKernel> kernels,
                              TuningContext &context) {
  const TuningOptions &options = context.options;
  std::vector<FinetuneCandidate> candidates;
  if (reuse.fixesSlice()) {
    for (const MicroKernel &kernel : kernels)
      candidates.push_back(
          {kernel, extend(window.last(), payload, kernel).slice});
    return candidates;
  }
  SANDWICH_ASSIGN_OR_RETURN(
      kernels,
      probeKernels(payload, kernels, context.session, options, context.log));
  for (const MicroKernel &kernel : kernels) {
    SANDWICH_ASSIGN_OR_RETURN(
        FastStart start,
        fastStart(payload, kernel, context.session, options, context.log));
    candidates.push_back({kernel, start.slice});
  }
  return candidates;
}

Result<Choice>
SandwichStrategy::compareFinally(const Payload &payload, const Choice &best,
                                 const std::vector<MicroKernel> &menu,
                                 size_t begin, TuningContext &context) {
  std::vector<Schedule> others;
  if (std::optional<Schedule> before = extension(payload))
    others.push_back(*before);
  if (std::optional<Schedule> rule = untuned(payload, context))
    others.push_back(*rule);
  if (context.options.considersModel) {
    SANDWICH_ASSIGN_OR_RETURN(Choice modelled,
                              chooseByModel(payload, menu, context.model));
    if (fits(payload, modelled.schedule))
      others.push_back(modelled.schedule);
  }
  return chooseFinally(payload, best, others, begin, context.session,
                       context.options, context.log);
}

Result<Choice> SandwichStrategy::preferExtension(const Payload &payload,
                                                 const Choice &best,
                                                 TuningContext &context) {
  std::optional<Schedule> before = extension(payload);
  if (!before)
    return best;
  SANDWICH_ASSIGN_OR_RETURN(double seconds,
                            context.session.seconds(payload, *before));
  bool accepted = seconds <= best.seconds * (1 + context.options.reuseWithin);
  context.log.push_back(
      {SearchPhase::Finetune, payload.rows, *before, seconds, accepted});
  return accepted ? Choice{payload.rows, *before, seconds} : best;
}

void SandwichStrategy::record(const Payload &payload, const Choice &choice,
                              const TuningContext &context) {
  SlidingWindow::Entry entry =
      SlidingWindow::describe(payload, choice, context.menu);
  reuse.update(window, entry, context.options);
  window.add(std::move(entry), context.options);
  if (choice.measured)
    flopsPerSecond = payload.flops() / choice.seconds;
  ++payloads;
}

void SandwichStrategy::remember(const Payload &asked, const Choice &choice,
                                const TuningContext &context) {
  record(limited(asked), choice, context);
}

} // namespace

std::unique_ptr<SearchStrategy> sandwich::makeSandwichStrategy(bool splitK) {
  return std::make_unique<SandwichStrategy>(splitK);
}
