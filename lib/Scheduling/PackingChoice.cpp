//===- PackingChoice.cpp - One packing for each weight --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleTuner.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace sandwich;

/// At most `count` rows that stand for `trace`, with the runs of the rows whose
/// nearest they are.
static RowTrace sampleTrace(const RowTrace &trace, size_t count) {
  if (trace.size() <= count)
    return trace;
  double total = 0;
  for (auto [rows, runs] : trace)
    total += rows * runs;
  std::set<int64_t> picked = {trace.begin()->first, trace.rbegin()->first};
  double seen = 0;
  size_t taken = 0;
  for (auto [rows, runs] : trace) {
    seen += rows * runs;
    if (seen >= total * static_cast<double>(taken + 1) / (count - 1)) {
      picked.insert(rows);
      ++taken;
    }
  }
  RowTrace sample;
  for (auto [rows, runs] : trace) {
    auto above = picked.lower_bound(rows);
    if (above == picked.end() ||
        (above != picked.begin() && rows - *std::prev(above) < *above - rows))
      --above;
    // As much work as the rows that it stands for.
    sample[*above] += runs * static_cast<double>(rows) / *above;
  }
  return sample;
}

namespace {

/// A packing, and the schedules that it is judged by.
struct Contestant {
  Packing packing;
  /// By rows.
  std::map<int64_t, Choice> choices;
  /// Seconds of the matmuls of the trace.
  double total = 0;
};

/// Compares the packings of one weight.
class PackingContest {
public:
  PackingContest(const TuningGroup &group, const RowTrace &trace,
                 const std::vector<MicroKernel> &menu, const CostModel &model,
                 MeasuringSession &session, const TuningOptions &options,
                 SearchLog &log)
      : group(group), sample(sampleTrace(trace, sampledRows)), menu(menu),
        model(model), session(session), options(options), log(log) {}

  Result<Packing> run();

private:
  static constexpr size_t sampledRows = 4;

  Payload payloadFor(const Packing &packing, int64_t rows) const;
  Status judgeByModel(Contestant &contestant);
  std::vector<Contestant> finalistsOf(std::vector<Contestant> all,
                                      const Packing &usual) const;
  Status tune(const Payload &payload, Choice &choice);
  Status judgeSideBySide(std::vector<Contestant> &finalists);

  const TuningGroup &group;
  const RowTrace sample;
  const std::vector<MicroKernel> &menu;
  const CostModel &model;
  MeasuringSession &session;
  const TuningOptions &options;
  SearchLog &log;
};

} // namespace

Payload PackingContest::payloadFor(const Packing &packing, int64_t rows) const {
  Payload payload{group.shape, rows, group.threads};
  payload.shape.packing = packing;
  return payload;
}

/// Measures what the model thinks best of some widths of micro-kernels.
Status PackingContest::judgeByModel(Contestant &contestant) {
  std::map<int64_t, std::vector<MicroKernel>> byWidth;
  for (const MicroKernel &kernel : menu)
    if (reads(kernel, contestant.packing))
      byWidth[kernel.columns].push_back(kernel);
  for (auto [rows, runs] : sample) {
    Payload payload = payloadFor(contestant.packing, rows);
    std::vector<Choice> choices;
    for (const auto &[width, kernels] : byWidth) {
      SANDWICH_ASSIGN_OR_RETURN(Choice choice,
                                chooseByModel(payload, kernels, model));
      choices.push_back(choice);
    }
    if (choices.empty())
      return makeError("no micro-kernel reads panels of ",
                       contestant.packing.panel, " columns");
    std::ranges::stable_sort(choices, {}, &Choice::seconds);
    choices.resize(std::min(choices.size(), options.packingCandidates));
    for (Choice &choice : choices) {
      SANDWICH_ASSIGN_OR_RETURN(choice.seconds,
                                session.seconds(payload, choice.schedule));
      log.push_back({SearchPhase::Polymerize, rows, choice.schedule,
                     choice.seconds, false});
    }
    const Choice &best =
        *std::ranges::min_element(choices, {}, &Choice::seconds);
    contestant.choices[rows] = best;
    contestant.total += best.seconds * runs;
  }
  return {};
}

/// Those that tuning may yet make the best, the usual one first.
std::vector<Contestant>
PackingContest::finalistsOf(std::vector<Contestant> all,
                            const Packing &usual) const {
  std::ranges::stable_sort(all, {}, &Contestant::total);
  std::erase_if(all, [&, least = all.front().total](const Contestant &each) {
    return each.total > least * (1 + options.promisingWithin);
  });
  // The usual one stays unless another gains.
  std::ranges::stable_partition(
      all, [&](const Contestant &each) { return each.packing == usual; });
  all.resize(std::min(all.size(), options.packingFinalists));
  return all;
}

/// Searches for a better schedule than `choice`, where there is anything to
/// gain.
Status PackingContest::tune(const Payload &payload, Choice &choice) {
  SANDWICH_ASSIGN_OR_RETURN(ScheduleEvaluator::Limit limit,
                            session.compareToLimit(payload, choice.schedule));
  if (limit.share >= options.nearLimit)
    return {};
  std::vector<MicroKernel> kernels;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menu))
    kernels.push_back(members.back());
  TuningOptions few = options;
  few.probedKernels = std::min(few.probedKernels, options.packingKernels);
  SANDWICH_ASSIGN_OR_RETURN(kernels,
                            probeKernels(payload, kernels, session, few, log));
  std::vector<FinetuneCandidate> candidates;
  for (const MicroKernel &kernel : kernels) {
    SANDWICH_ASSIGN_OR_RETURN(FastStart start,
                              fastStart(payload, kernel, session, few, log));
    candidates.push_back({kernel, start.slice});
  }
  SANDWICH_ASSIGN_OR_RETURN(Choice found,
                            finetune(payload, candidates, {},
                                     /*growSlices=*/true, session, few, log));
  if (found.seconds < choice.seconds)
    choice = found;
  return {};
}

/// What one packing's schedules took minutes, or moments, before another's says
/// less than both in turn.
Status PackingContest::judgeSideBySide(std::vector<Contestant> &finalists) {
  for (Contestant &finalist : finalists)
    finalist.total = 0;
  for (auto [rows, runs] : sample) {
    std::vector<ScheduledPayload> tuned;
    for (const Contestant &finalist : finalists)
      tuned.push_back({payloadFor(finalist.packing, rows),
                       finalist.choices.at(rows).schedule});
    SANDWICH_ASSIGN_OR_RETURN(std::vector<double> seconds,
                              session.secondsSideBySide(tuned));
    for (size_t i = 0; i < finalists.size(); ++i) {
      finalists[i].total += seconds[i] * runs;
      log.push_back(
          {SearchPhase::Final, rows, tuned[i].schedule, seconds[i], false});
    }
  }
  return {};
}

Result<Packing> PackingContest::run() {
  MatrixISA isa = menu.front().isa;
  const Packing usual = packingOf(isa);
  std::vector<Contestant> all;
  for (const Packing &packing : packingsOf(isa)) {
    all.push_back({packing, {}, 0});
    SANDWICH_RETURN_IF_ERROR(judgeByModel(all.back()));
  }
  std::vector<Contestant> finalists = finalistsOf(std::move(all), usual);
  if (finalists.size() > 1) {
    for (Contestant &finalist : finalists)
      for (auto &[rows, choice] : finalist.choices)
        SANDWICH_RETURN_IF_ERROR(
            tune(payloadFor(finalist.packing, rows), choice));
    SANDWICH_RETURN_IF_ERROR(judgeSideBySide(finalists));
  }
  const Contestant *best = &finalists.front();
  for (const Contestant &finalist : finalists) {
    double needed = best->packing == usual ? 1 + options.packingGain : 1;
    if (finalist.total * needed < best->total)
      best = &finalist;
  }
  return best->packing;
}

Result<Packing>
sandwich::choosePacking(const TuningGroup &group, const RowTrace &trace,
                        const std::vector<MicroKernel> &menu,
                        const CostModel &model, MeasuringSession &session,
                        const TuningOptions &options, SearchLog &log) {
  if (menu.empty() || trace.empty())
    return makeError("no micro-kernel, or no rows, to choose a packing for");
  return PackingContest(group, trace, menu, model, session, options, log).run();
}
