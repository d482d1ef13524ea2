//===- ModelTuner.cpp - Schedules for the matmuls of a model --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/ModelTuner.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

class ModelTuner {
public:
  ModelTuner(const Target &target, const ModelTuningOptions &options,
             const TuningProgress &progress)
      : target(target), options(options), progress(progress),
        model(CostModelParameters::of(target, options.threads)) {}

  Result<TunedModel> run(const std::vector<TunedMatmul> &matmuls);

private:
  Result<TunedGroup> tune(const TunedMatmul &matmul);
  /// What decides about the packing of a weight, whatever is done to the sums.
  static MatmulShape weightOf(MatmulShape shape);
  std::vector<int64_t> rowsOf(const TunedMatmul &matmul) const;
  RowTrace traceOf(const TunedMatmul &matmul) const;
  Status startSession();
  Status report();
  Status save();

  const Target &target;
  const ModelTuningOptions &options;
  const TuningProgress &progress;
  CostModel model;
  ScheduleDatabase database;
  std::unique_ptr<MeasuringEvaluator> evaluator;
  std::unique_ptr<MeasuringSession> session;
  /// Chosen so far: two matmuls of one weight read it as it is packed.
  std::map<MatmulShape, Packing> packings;
  /// Why `progress` ended tuning.
  std::optional<Error> stopped;
  Clock::time_point saved = Clock::now();
  /// Numbers of rows that are done, and all.
  size_t done = 0, total = 1;
  int64_t known = 0;
};

} // namespace

std::vector<TunedMatmul>
sandwich::differentShapes(const std::vector<TunedMatmul> &matmuls) {
  std::vector<TunedMatmul> different;
  for (const TunedMatmul &matmul : matmuls) {
    auto same = std::ranges::find(different, matmul.shape, &TunedMatmul::shape);
    if (same == different.end())
      different.push_back(matmul);
    else
      *same = {matmul.shape, std::max(same->maxRows, matmul.maxRows),
               same->forSequences && matmul.forSequences};
  }
  return different;
}

std::vector<int64_t> ModelTuner::rowsOf(const TunedMatmul &matmul) const {
  std::vector<int64_t> rows = options.rows;
  std::erase_if(rows, [&](int64_t row) {
    return row > matmul.maxRows && row > options.rows.front();
  });
  return rows;
}

/// How often the matmul runs, by the numbers of rows that it is tuned for.
RowTrace ModelTuner::traceOf(const TunedMatmul &matmul) const {
  int64_t most = rowsOf(matmul).back();
  RowTrace trace;
  for (auto [rows, runs] : options.trace)
    trace[matmul.forSequences ? 1 : std::min(rows, most)] += runs;
  return trace;
}

Status ModelTuner::report() {
  if (stopped)
    return *stopped;
  Status status =
      progress(static_cast<double>(done) / static_cast<double>(total));
  if (!status)
    stopped = status.error();
  return status;
}

Status ModelTuner::save() {
  saved = Clock::now();
  return database.synchronize(options.database);
}

/// Tables that the database has need no measuring at all, nor do the model's.
Status ModelTuner::startSession() {
  if (session)
    return {};
  MeasuringSession::Limits limits;
  limits.seconds = options.seconds;
  limits.stop = [this] { return !report(); };
  if (options.strategy == Strategy::CostModel) {
    session = std::make_unique<MeasuringSession>(model, std::move(limits));
    return {};
  }
  MeasuringOptions measuring;
  measuring.threads = static_cast<unsigned>(options.threads);
  measuring.cpus = options.cpus;
  measuring.stop = [this] { return !report(); };
  measuring.maxRows =
      std::max(options.rows.back(), mostTimedStrips * mostMicroKernelRows);
  SANDWICH_ASSIGN_OR_RETURN(evaluator,
                            MeasuringEvaluator::create(target, measuring));
  session = std::make_unique<MeasuringSession>(*evaluator, std::move(limits));
  return {};
}

MatmulShape ModelTuner::weightOf(MatmulShape shape) {
  shape.epilogue = {};
  return shape;
}

Result<TunedGroup> ModelTuner::tune(const TunedMatmul &matmul) {
  const MatmulShape &given = matmul.shape;
  const std::vector<int64_t> rows = rowsOf(matmul);
  const bool splitK = usesSplitK(options.strategy);
  SANDWICH_ASSIGN_OR_RETURN(
      ScheduleTable untuned,
      chooseUntuned(given, target, options.threads, {.splitK = splitK}));
  TuningGroup group{given, options.threads, std::move(untuned), splitK};
  std::vector<MicroKernel> menu = microKernelMenu(given, target);
  if (menu.empty())
    return makeError("no instructions of ", target.name,
                     " can multiply a weight of ", given.n, " x ", given.k);
  MatrixISA isa = menu.front().isa;
  auto leftToTheRule = [&] {
    done += rows.size();
    TunedGroup none;
    none.table = group.untuned;
    none.group = std::move(group);
    return none;
  };
  // Even the smallest slices of some long K have no memory.
  if (microKernelClasses({given, 1, options.threads}, menu).empty())
    return leftToTheRule();
  const bool measures = options.strategy != Strategy::CostModel;
  const RowTrace trace = traceOf(matmul);
  const auto earlierPacking = packings.find(weightOf(given));
  if (!group.shape.packing && measures && earlierPacking != packings.end())
    group.shape.packing = earlierPacking->second;
  if (!group.shape.packing && measures)
    group.shape.packing = database.findPacking(
        group, target, isa, options.strategy, traceName(trace));
  if (!group.shape.packing && measures) {
    SANDWICH_RETURN_IF_ERROR(startSession());
    SearchLog log;
    Result<Packing> packing =
        choosePacking(group, trace, menu, model, *session, options, log);
    if (!packing && !session->ended())
      return packing.error();
    if (!packing) {
      // A schedule for a packing that another run will choose is worth nothing.
      TunedGroup none = leftToTheRule();
      none.complete = false;
      return none;
    }
    group.shape.packing = *packing;
  }
  if (!group.shape.packing)
    group.shape.packing = packingOf(isa, given.storage);
  packings.emplace(weightOf(given), *group.shape.packing);

  const ScheduleKey key = ScheduleKey::of(group, target, isa, options.strategy);
  TunedSchedules earlier;
  if (const TunedSchedules *found = database.find(key); found && measures)
    earlier = *found;
  TunedGroup tuned;
  bool isKnown = earlier.covers(rows);
  if (isKnown) {
    ++known;
    tuned.group = group;
    std::ranges::copy_if(earlier.choices, std::back_inserter(tuned.choices),
                         [&](const Choice &choice) {
                           return std::ranges::binary_search(rows, choice.rows);
                         });
  }
  auto store = [&](const TunedGroup &found) -> Status {
    if (found.choices.empty() || !measures)
      return {};
    TunedSchedules schedules = TunedSchedules::of(found);
    schedules.traces.insert(traceName(trace));
    database.add(key, schedules);
    return save();
  };
  size_t before = done;
  if (!isKnown) {
    SANDWICH_RETURN_IF_ERROR(startSession());
    std::unique_ptr<SearchStrategy> strategy = makeStrategy(options.strategy);
    TunedGroup partial;
    partial.group = group;
    partial.complete = false;
    std::optional<Error> saveError;
    const std::chrono::duration<double> betweenSaves(
        options.secondsBetweenSaves);
    auto chosen = [&](const Choice &choice) {
      ++done;
      partial.choices.push_back(choice);
      if (Clock::now() - saved < betweenSaves)
        return;
      if (Status status = store(partial); !status && !saveError)
        saveError = status.error();
    };
    SANDWICH_ASSIGN_OR_RETURN(tuned, tuneGroup(group, rows, *strategy, menu,
                                               model, *session, options,
                                               earlier.choices, chosen));
    if (saveError)
      return *saveError;
  }
  done = before + rows.size();
  // What is known may be of a packing chosen for another trace, or of a run
  // that was killed at its end.
  SANDWICH_RETURN_IF_ERROR(store(tuned));
  TunedSchedules all = TunedSchedules::of(tuned);
  if (const TunedSchedules *stored = database.find(key); stored && measures)
    all = *stored;
  SANDWICH_ASSIGN_OR_RETURN(tuned.table, servedTable(key, all, target));
  return tuned;
}

Result<TunedModel> ModelTuner::run(const std::vector<TunedMatmul> &matmuls) {
  if (options.rows.empty())
    return makeError("there are no numbers of tokens to tune for");
  Clock::time_point begin = Clock::now();
  // A file that cannot be written shows now, not after minutes.
  SANDWICH_RETURN_IF_ERROR(save());
  total = 0;
  for (const TunedMatmul &matmul : matmuls)
    total += rowsOf(matmul).size();
  TunedModel result;
  for (const TunedMatmul &matmul : matmuls) {
    SANDWICH_ASSIGN_OR_RETURN(TunedGroup tuned, tune(matmul));
    result.groups.push_back(std::move(tuned));
    if (stopped)
      return *stopped;
  }
  result.known = known;
  if (session)
    result.measurements = session->measurements();
  if (evaluator)
    result.compilations = evaluator->programs().compilations();
  // A budget that is spent is spent.
  if (evaluator && !matmuls.empty() && !session->ended()) {
    result.readBytesPerSecond = evaluator->readBytesPerSecond();
    const TuningGroup &group = result.groups.back().group;
    MatrixISA isa = result.groups.back().table.front().schedule.microKernel.isa;
    Result<MeasuringEvaluator::Speeds> speeds =
        evaluator->speeds(group.shape, isa);
    if (!speeds)
      return stopped ? *stopped : speeds.error();
    result.flopsPerSecond = speeds->peak;
    result.flopsPerSecondInCache = speeds->inCache;
  }
  result.seconds = secondsSince(begin);
  return result;
}

void TunedModel::append(TunedModel other) {
  std::ranges::move(other.groups, std::back_inserter(groups));
  measurements += other.measurements;
  compilations += other.compilations;
  seconds += other.seconds;
  known += other.known;
  if (flopsPerSecond == 0) {
    flopsPerSecond = other.flopsPerSecond;
    flopsPerSecondInCache = other.flopsPerSecondInCache;
    readBytesPerSecond = other.readBytesPerSecond;
  }
}

Result<TunedModel> sandwich::tuneModel(const std::vector<TunedMatmul> &matmuls,
                                       const Target &target,
                                       const ModelTuningOptions &options,
                                       const TuningProgress &progress) {
  return ModelTuner(target, options, progress).run(matmuls);
}
