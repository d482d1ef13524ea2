//===- AttentionTuner.cpp - Schedules for a model's attention -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/AttentionTuner.h"

#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <chrono>
#include <iterator>

using namespace sandwich;

void TunedModelAttention::append(TunedModelAttention other) {
  std::ranges::move(other.tables, std::back_inserter(tables));
  measurements += other.measurements;
  known += other.known;
  seconds += other.seconds;
  complete &= other.complete;
}

Result<TunedModelAttention>
sandwich::tuneModelAttention(const std::vector<AttentionShape> &shapes,
                             const Target &target, int64_t maxTokens,
                             const ModelTuningOptions &options,
                             const TuningProgress &progress) {
  const auto begin = std::chrono::steady_clock::now();
  ScheduleDatabase database;
  SANDWICH_RETURN_IF_ERROR(database.synchronize(options.database));
  TunedModelAttention result;
  std::optional<Error> stopped;
  auto report = [&] {
    if (stopped)
      return false;
    if (Status status = progress(static_cast<double>(result.tables.size()) /
                                 static_cast<double>(shapes.size()));
        !status)
      stopped = status.error();
    return !stopped;
  };
  for (const AttentionShape &shape : shapes) {
    const AttentionKey key = AttentionKey::of(shape, target, options.threads);
    if (const AttentionTable *known = database.find(key)) {
      ++result.known;
      result.tables.push_back(*known);
      continue;
    }
    auto ended = [&] { return secondsSince(begin) > options.seconds; };
    if (ended()) {
      result.complete = false;
      result.tables.push_back(chooseUntuned(shape, target, options.threads));
      continue;
    }
    AttentionMeasuringOptions measuring;
    measuring.threads = static_cast<unsigned>(options.threads);
    measuring.cpus = options.cpus;
    measuring.maxTokens = maxTokens;
    measuring.stop = [&] { return !report(); };
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<MeasuringAttentionEvaluator> evaluator,
        MeasuringAttentionEvaluator::create(shape, target, measuring));
    Result<TunedAttention> tuned = tuneAttention(shape, target, options.threads,
                                                 maxTokens, *evaluator, ended);
    if (!tuned)
      return stopped ? *stopped : tuned.error();
    result.measurements += tuned->measurements;
    result.complete &= tuned->complete;
    if (tuned->complete) {
      database.insert(key, tuned->table);
      SANDWICH_RETURN_IF_ERROR(database.synchronize(options.database));
    }
    result.tables.push_back(std::move(tuned->table));
  }
  result.seconds = secondsSince(begin);
  return result;
}
