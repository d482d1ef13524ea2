//===- ScheduleTuner.h - Schedules for every token count --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tuning a group of payloads: the same matmul for ascending numbers of tokens
/// (Sandwich paper, section 5, "Micro-kernel sliding window & tensor schedule
/// reuse"), and the choice of one packing for each weight.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_SCHEDULETUNER_H
#define SANDWICH_SCHEDULING_SCHEDULETUNER_H

#include "sandwich/Scheduling/CostModel.h"
#include "sandwich/Scheduling/ScheduleSearch.h"
#include "sandwich/Support/ServingTrace.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace sandwich {

/// The payloads that differ in the number of tokens only.
struct TuningGroup {
  MatmulShape shape;
  int64_t threads = 1;
  /// What the untuned rule says, if anything: what is found must be faster.
  ScheduleTable untuned = {};
  /// Of each payload.
  bool splitK = true;
};

struct TuningOptions : SearchOptions {
  /// Sigma: all micro-kernels for so many payloads, then those of the last so
  /// many choices.
  int64_t window = 16;
  /// A slice, and a thread grid, is fixed once it differs from the average of
  /// the last `window` ones by no more than this share on any dimension.
  double reuseThreshold = 0.1;
  /// Whether the cost model's choice is among the last candidates of
  /// `sandwich`. Not where what a search finds by itself is judged.
  bool considersModel = true;
  /// The schedule of the payload before is kept where it is slower than the
  /// best found by no more than this share: fewer ranges, less code.
  double reuseWithin = 0.02;
  /// A fixed slice and grid are searched again once there are so many times
  /// the rows that they were fixed at.
  double searchAgainAt = 2;
  /// A schedule that was near the limit for a window of payloads is not
  /// compared again for this share more rows.
  double trustedGrowth = 1.0 / 16;
  /// What a search with every micro-kernel reached, less a doubt, is near
  /// enough to the limit for payloads of fewer rows than so many times its own:
  /// where nothing reaches the limit, for the shape of the matmul or the
  /// machine's neighbours, the next search would find the same.
  double searchedShareHolds = 1.5;
  double searchedShareDoubt = 0.03;
  /// Of fewer rows than so many times its own where reading takes no more than
  /// this share of the limit: multiplying remains the limit.
  double searchedShareHoldsLonger = 8;
  double readingMattersLittle = 0.3;
  /// As long as more rows take no longer, because reading the weight does, what
  /// is fixed is searched again once a payload takes longer by this share.
  double flatWithin = 0.03;
  /// Whether more rows take no longer is judged by searches of at most one so
  /// many times as few rows: closer ones differ by noise.
  double flatJudgedAt = 1.5;
  /// They take no longer if the seconds grow by no more than this share of what
  /// the rows grow by.
  double flatGrowth = 0.3;
  /// Another packing than the default one must gain this share, and is judged
  /// by so many schedules for each number of rows.
  double packingGain = 0.03;
  size_t packingCandidates = 3;
  /// The most schedules that an exhaustive search takes on.
  int64_t exhaustiveLimit = 200000;
  /// Instead of refusing a larger space, draws `exhaustiveLimit` schedules of
  /// it with this seed: their best is near that of all, and no more than near.
  std::optional<uint64_t> exhaustiveSeed;
};

/// What strategies work with.
struct TuningContext {
  MeasuringSession &session;
  const TuningOptions &options;
  const std::vector<MicroKernel> &menu;
  const CostModel &model;
  const ScheduleTable &untuned;
  SearchLog &log;
};

/// A way to search. One object serves one group, its payloads by ascending
/// rows, and may remember.
class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  virtual Result<Choice> choose(const Payload &payload,
                                TuningContext &context) = 0;
  /// Learns of a choice that an earlier run made.
  virtual void remember(const Payload &payload, const Choice &choice,
                        const TuningContext &context) {}
};

/// The table of `choices`, ascending in rows, none repeated: each serves the
/// rows up to the next choice, the last all larger ones by repeating its slice.
/// Choices that run the same instructions become one range. A slice that holds
/// all rows of its payload goes on holding all rows of its range.
ScheduleTable makeTable(const MatmulShape &shape, int64_t threads,
                        const std::vector<Choice> &choices);

struct TunedGroup {
  TuningGroup group;
  /// Empty if nothing was chosen.
  ScheduleTable table;
  /// One for each number of rows asked for that was reached.
  std::vector<Choice> choices;
  SearchLog log;
  /// Of this group alone.
  int64_t measurements = 0;
  double seconds = 0;
  /// False if the session ended before all was chosen.
  bool complete = true;
};

/// Tunes a group for `rows`, ascending. `known` are choices of an earlier run
/// that are kept. `progress` hears of each choice. Errors: no rows, rows out of
/// order, no micro-kernel that fits, errors of the evaluator; that the session
/// ends is no error, and leaves rows without a choice.
Result<TunedGroup>
tuneGroup(const TuningGroup &group, const std::vector<int64_t> &rows,
          SearchStrategy &strategy, const std::vector<MicroKernel> &menu,
          const CostModel &model, MeasuringSession &session,
          const TuningOptions &options, const std::vector<Choice> &known = {},
          const std::function<void(const Choice &)> &progress = {});

/// 1, 2, ... maxRows.
std::vector<int64_t> allRows(int64_t maxRows);

/// How often a model runs its matmuls, by the number of rows.
using RowTrace = std::map<int64_t, double>;

/// The steps of `requests`, one sequence at a time. Prompts longer than
/// `maxRows` run in pieces.
RowTrace countRows(const ServingTrace &requests, int64_t maxRows);

/// Without a trace: prompts of every power of two up to `maxRows`, each
/// followed by a quarter as many generated tokens.
RowTrace defaultTrace(int64_t maxRows);

/// The packing with which the matmuls of `trace` take least time in all, by
/// measuring what the model thinks best for some widths of micro-kernels on a
/// sample of the trace's rows. A tie goes to the default packing. Errors: those
/// of the evaluator; that the session ends before all are compared; no
/// micro-kernel that fits.
Result<Packing> choosePacking(const TuningGroup &group, const RowTrace &trace,
                              const std::vector<MicroKernel> &menu,
                              const CostModel &model, MeasuringSession &session,
                              const TuningOptions &options, SearchLog &log);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_SCHEDULETUNER_H
