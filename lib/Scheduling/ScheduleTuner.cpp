//===- ScheduleTuner.cpp - Schedules for every token count ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {

/// Consecutive choices that one schedule serves.
struct Range {
  Schedule schedule;
  size_t first, last;
};

} // namespace

ScheduleTable sandwich::makeTable(const MatmulShape &shape, int64_t threads,
                                  const std::vector<Choice> &choices) {
  auto same = [&](size_t choice, const Schedule &a, const Schedule &b) {
    Payload payload{shape, choices[choice].rows, threads};
    return reducedSchedule(payload, a) == reducedSchedule(payload, b);
  };
  std::vector<Range> ranges;
  for (size_t i = 0; i < choices.size(); ++i) {
    Schedule schedule = choices[i].schedule;
    if (schedule.slice[0] >= divideUp(choices[i].rows, schedule.threads[0]))
      schedule.slice[0] = choices.back().rows;
    if (!ranges.empty() && same(i, ranges.back().schedule, schedule))
      ranges.back().last = i;
    else
      ranges.push_back({schedule, i, i});
  }
  // What a later schedule serves as well needs none of its own.
  std::vector<Range> merged;
  for (size_t r = ranges.size(); r-- > 0;) {
    bool serves = !merged.empty();
    for (size_t i = ranges[r].first; serves && i <= ranges[r].last; ++i)
      serves = same(i, merged.back().schedule, ranges[r].schedule);
    if (serves)
      merged.back().first = ranges[r].first;
    else
      merged.push_back(ranges[r]);
  }
  std::ranges::reverse(merged);
  ScheduleTable table;
  for (const Range &range : merged) {
    bool last = range.last + 1 == choices.size();
    table.push_back(
        {last ? INT64_MAX : choices[range.last + 1].rows - 1, range.schedule});
  }
  return table;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

Result<TunedGroup> sandwich::tuneGroup(
    const TuningGroup &group, const std::vector<int64_t> &rows,
    SearchStrategy &strategy, const std::vector<MicroKernel> &menu,
    const CostModel &model, MeasuringSession &session,
    const TuningOptions &options, const std::vector<Choice> &known,
    const std::function<void(const Choice &)> &progress) {
  if (rows.empty() || rows.front() < 1 || group.threads < 1)
    return makeError("tuning needs at least one number of rows, each at least "
                     "1, and at least one thread");
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] <= rows[i - 1])
      return makeError("rows to tune must ascend; ", rows[i], " follows ",
                       rows[i - 1]);
  std::map<int64_t, Choice> earlier;
  for (const Choice &choice : known)
    earlier.emplace(choice.rows, choice);

  TunedGroup tuned;
  tuned.group = group;
  int64_t measured = session.measurements();
  double begin = session.elapsedSeconds();
  TuningContext context{session, options,       menu,
                        model,   group.untuned, tuned.log};
  for (int64_t row : rows) {
    Payload payload{group.shape, row, group.threads, group.splitK};
    Choice choice;
    if (auto entry = earlier.find(row); entry != earlier.end()) {
      choice = entry->second;
      SANDWICH_RETURN_IF_ERROR(verify(choice.schedule, group.shape));
      strategy.remember(payload, choice, context);
    } else {
      Result<Choice> chosen = strategy.choose(payload, context);
      if (!chosen && !session.ended())
        return chosen.error();
      if (!chosen) {
        tuned.complete = false;
        continue;
      }
      choice = *chosen;
    }
    tuned.choices.push_back(choice);
    if (progress)
      progress(choice);
  }
  if (!tuned.choices.empty())
    tuned.table = makeTable(group.shape, group.threads, tuned.choices);
  tuned.measurements = session.measurements() - measured;
  tuned.seconds = session.elapsedSeconds() - begin;
  return tuned;
}

std::vector<int64_t> sandwich::allRows(int64_t maxRows) {
  std::vector<int64_t> rows;
  for (int64_t row = 1; row <= maxRows; ++row)
    rows.push_back(row);
  return rows;
}

//===----------------------------------------------------------------------===//
// Traces and packings
//===----------------------------------------------------------------------===//

static void addPrompt(RowTrace &trace, int64_t prompt, int64_t generated,
                      int64_t maxRows) {
  if (int64_t fullSteps = prompt / maxRows; fullSteps > 0)
    trace[maxRows] += static_cast<double>(fullSteps);
  if (prompt % maxRows != 0)
    trace[prompt % maxRows] += 1;
  if (generated > 0)
    trace[1] += static_cast<double>(generated);
}

RowTrace sandwich::countRows(const ServingTrace &requests, int64_t maxRows) {
  RowTrace trace;
  for (const ServingRequest &request : requests)
    addPrompt(trace, request.promptTokens, request.outputTokens, maxRows);
  return trace;
}

RowTrace sandwich::defaultTrace(int64_t maxRows) {
  RowTrace trace;
  for (int64_t prompt = 1; prompt <= maxRows; prompt *= 2)
    addPrompt(trace, prompt, prompt / 4, maxRows);
  return trace;
}

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

Result<Packing>
sandwich::choosePacking(const TuningGroup &group, const RowTrace &trace,
                        const std::vector<MicroKernel> &menu,
                        const CostModel &model, MeasuringSession &session,
                        const TuningOptions &options, SearchLog &log) {
  if (menu.empty() || trace.empty())
    return makeError("no micro-kernel, or no rows, to choose a packing for");
  MatrixISA isa = menu.front().isa;
  std::set<int64_t> widths;
  for (const MicroKernel &kernel : menu)
    widths.insert(kernel.columns);
  constexpr size_t sampledRows = 4;
  RowTrace sample = sampleTrace(trace, sampledRows);

  auto totalSeconds = [&](const Packing &packing) -> Result<double> {
    double total = 0;
    Payload payload{group.shape, 1, group.threads, group.splitK};
    payload.shape.packing = packing;
    for (auto [rows, runs] : sample) {
      payload.rows = rows;
      // What the model thinks best of each width of micro-kernel.
      std::vector<Choice> choices;
      for (int64_t width : widths) {
        std::vector<MicroKernel> ofWidth;
        for (const MicroKernel &kernel : menu)
          if (kernel.columns == width)
            ofWidth.push_back(kernel);
        if (microKernelClasses(payload, ofWidth).empty())
          continue;
        Result<Choice> choice = chooseByModel(payload, ofWidth, model);
        if (!choice)
          return choice.error();
        choices.push_back(*choice);
      }
      std::ranges::stable_sort(choices, {}, &Choice::seconds);
      choices.resize(std::min(choices.size(), options.packingCandidates));
      double best = INFINITY;
      for (const Choice &choice : choices) {
        SANDWICH_ASSIGN_OR_RETURN(double seconds,
                                  session.seconds(payload, choice.schedule));
        log.push_back({SearchPhase::Polymerize, rows, choice.schedule, seconds,
                       seconds < best});
        best = std::min(best, seconds);
      }
      total += best * runs;
    }
    return total;
  };

  const StorageFormat &storage = group.shape.storage;
  const Packing usual = packingOf(isa, storage);
  Packing best = usual;
  SANDWICH_ASSIGN_OR_RETURN(double least, totalSeconds(best));
  for (const Packing &packing : packingsOf(isa, storage)) {
    if (packing == usual)
      continue;
    SANDWICH_ASSIGN_OR_RETURN(double total, totalSeconds(packing));
    if (total * (1 + options.packingGain) < least) {
      least = total;
      best = packing;
    }
  }
  return best;
}
