//===- ModelTuner.cpp - Schedules for the matmuls of a model --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/ModelTuner.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Support/File.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

/// So much work is lost at most when the process is killed.
constexpr std::chrono::seconds betweenSaves{5};

class ModelTuner {
public:
  ModelTuner(const Target &target, const ModelTuningOptions &options,
             const TuningProgress &progress)
      : target(target), options(options), progress(progress),
        model(CostModelParameters::forTarget(target)) {}

  Result<TunedModel> run(const std::vector<TunedMatmul> &matmuls);

private:
  Result<TunedGroup> tune(const TunedMatmul &matmul);
  std::vector<int64_t> rowsOf(const TunedMatmul &matmul) const;
  Status startMeasuring();
  Status report();
  Status save();

  const Target &target;
  const ModelTuningOptions &options;
  const TuningProgress &progress;
  const CostModel model;
  ScheduleDatabase database;
  std::unique_ptr<MeasuringEvaluator> evaluator;
  std::unique_ptr<MeasuringSession> session;
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
      same->maxRows = std::max(same->maxRows, matmul.maxRows);
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
  return database.save(options.database);
}

/// Tables that the database has need no measuring at all.
Status ModelTuner::startMeasuring() {
  if (session)
    return {};
  MeasuringOptions measuring;
  measuring.threads = static_cast<unsigned>(options.threads);
  measuring.cpus = options.cpus;
  measuring.maxRows = options.rows.back();
  SANDWICH_ASSIGN_OR_RETURN(evaluator,
                            MeasuringEvaluator::create(target, measuring));
  MeasuringSession::Limits limits;
  limits.seconds = options.seconds;
  limits.stop = [this] { return !report(); };
  session = std::make_unique<MeasuringSession>(*evaluator, std::move(limits));
  return {};
}

Result<TunedGroup> ModelTuner::tune(const TunedMatmul &matmul) {
  const MatmulShape &given = matmul.shape;
  const std::vector<int64_t> rows = rowsOf(matmul);
  SANDWICH_ASSIGN_OR_RETURN(ScheduleTable untuned,
                            chooseByRule(given, target, options.threads));
  TuningGroup group{given, options.threads, std::move(untuned)};
  std::vector<MicroKernel> menu = microKernelMenu(given, target);
  if (menu.empty())
    return makeError("no instructions of ", target.name,
                     " can multiply a weight of ", given.n, " x ", given.k);
  MatrixISA isa = menu.front().isa;
  TunedSchedules earlier;
  if (auto found = database.findTuned(group, target, isa)) {
    earlier = found->second;
    group.shape.packing = found->first.packing;
    if (earlier.covers(rows)) {
      ++known;
      TunedGroup tuned;
      tuned.group = group;
      tuned.table = earlier.table;
      tuned.choices = earlier.choices();
      done += rows.size();
      return tuned;
    }
  }
  SANDWICH_RETURN_IF_ERROR(startMeasuring());
  if (!group.shape.packing && options.strategy != Strategy::CostModel) {
    SearchLog log;
    RowTrace trace;
    for (auto [row, runs] : options.trace)
      trace[std::min(row, rows.back())] += runs;
    SANDWICH_ASSIGN_OR_RETURN(
        group.shape.packing,
        choosePacking(group, trace, menu, model, *session, options, log));
  }
  if (!group.shape.packing)
    group.shape.packing = packingOf(isa);
  ScheduleKey key = ScheduleKey::of(group, target, isa);

  std::unique_ptr<SearchStrategy> strategy = makeStrategy(options.strategy);
  TunedGroup partial;
  partial.group = group;
  partial.complete = false;
  std::optional<Error> saveError;
  size_t before = done;
  auto chosen = [&](const Choice &choice) {
    ++done;
    partial.choices.push_back(choice);
    if (session->ended() || Clock::now() - saved < betweenSaves)
      return;
    partial.table = makeTable(group.shape, group.threads, partial.choices);
    database.insert(key, TunedSchedules::of(partial));
    if (Status status = save(); !status && !saveError)
      saveError = status.error();
  };
  SANDWICH_ASSIGN_OR_RETURN(
      TunedGroup tuned, tuneGroup(group, rows, *strategy, menu, model, *session,
                                  options, earlier.choices(), chosen));
  if (saveError)
    return *saveError;
  done = before + rows.size();
  database.insert(key, TunedSchedules::of(tuned));
  SANDWICH_RETURN_IF_ERROR(save());
  return tuned;
}

Result<TunedModel> ModelTuner::run(const std::vector<TunedMatmul> &matmuls) {
  if (options.rows.empty())
    return makeError("there are no numbers of tokens to tune for");
  Clock::time_point begin = Clock::now();
  std::error_code code;
  if (std::filesystem::exists(options.database, code)) {
    SANDWICH_ASSIGN_OR_RETURN(database,
                              ScheduleDatabase::load(options.database));
  }
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
  if (evaluator && !matmuls.empty()) {
    result.compilations = evaluator->nests().compilations();
    result.readBytesPerSecond = evaluator->readBytesPerSecond();
    const TuningGroup &group = result.groups.back().group;
    MatrixISA isa = result.groups.back().table.front().schedule.microKernel.isa;
    SANDWICH_ASSIGN_OR_RETURN(result.flopsPerSecond,
                              evaluator->peakFlops(group.shape, isa));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

Result<TunedModel> sandwich::tuneModel(const std::vector<TunedMatmul> &matmuls,
                                       const Target &target,
                                       const ModelTuningOptions &options,
                                       const TuningProgress &progress) {
  return ModelTuner(target, options, progress).run(matmuls);
}
