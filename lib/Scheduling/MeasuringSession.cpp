//===- MeasuringSession.cpp - What is asked only once ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleSearch.h"

#include <chrono>

using namespace sandwich;

static double steadySeconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

MeasuringSession::MeasuringSession(ScheduleEvaluator &evaluator)
    : MeasuringSession(evaluator, Limits()) {}

MeasuringSession::MeasuringSession(ScheduleEvaluator &evaluator, Limits given)
    : evaluator(evaluator), limits(std::move(given)) {
  if (!limits.clock)
    limits.clock = steadySeconds;
  begin = limits.clock();
}

double MeasuringSession::elapsedSeconds() const {
  return limits.clock() - begin;
}

SessionEnd MeasuringSession::end() {
  if (why != SessionEnd::Running)
    return why;
  if (limits.stop && limits.stop())
    why = SessionEnd::Stopped;
  else if (measured >= limits.measurements ||
           (limits.seconds < std::numeric_limits<double>::infinity() &&
            elapsedSeconds() >= limits.seconds))
    why = SessionEnd::BudgetSpent;
  return why;
}

MeasuringSession::Key MeasuringSession::makeKey(bool slice,
                                                const Payload &payload,
                                                const Schedule &schedule) {
  const MatmulShape &shape = payload.shape;
  Packing packing = packingFor(shape, schedule.microKernel.isa);
  // Slices are measured without.
  const MatmulEpilogue epilogue = slice ? MatmulEpilogue() : shape.epilogue;
  return {slice,
          slice ? 0 : shape.n,
          slice ? 0 : shape.k,
          shape.columnUnit,
          static_cast<int64_t>(shape.storage.number),
          shape.storage.groupSize,
          static_cast<int64_t>(shape.storage.scale),
          static_cast<int64_t>(shape.storage.offset),
          shape.roundsInput,
          packing.panel,
          packing.tile,
          packing.kStep,
          packing.kPack,
          payload.rows,
          payload.threads,
          static_cast<int64_t>(schedule.microKernel.isa),
          schedule.microKernel.rows,
          schedule.microKernel.columns,
          schedule.slice[0],
          schedule.slice[1],
          schedule.slice[2],
          schedule.threads[0],
          schedule.threads[1],
          schedule.threads[2],
          schedule.prefetchLines,
          schedule.prefetchDistance,
          static_cast<int64_t>(schedule.order),
          schedule.prefetchStreams,
          static_cast<int64_t>(schedule.prefetchHint),
          static_cast<int64_t>(schedule.stores),
          schedule.chunkK,
          schedule.packsInput,
          static_cast<int64_t>(schedule.streamed),
          schedule.groupK,
          static_cast<int64_t>(epilogue.kind),
          epilogue.bias,
          epilogue.feedsMatmuls,
          epilogue.contiguousResult,
          epilogue.cacheHeads,
          static_cast<int64_t>(epilogue.cache),
          epilogue.headNorms};
}

Status MeasuringSession::goOn() {
  switch (end()) {
  case SessionEnd::Running:
    return {};
  case SessionEnd::Stopped:
    return makeError("tuning was stopped");
  case SessionEnd::BudgetSpent:
    return makeError("the budget for tuning is spent");
  }
  __builtin_unreachable();
}

template <typename Measure>
Result<double> MeasuringSession::answer(const Key &key, Measure measure) {
  ++asked;
  if (auto entry = known.find(key); entry != known.end())
    return entry->second;
  SANDWICH_RETURN_IF_ERROR(goOn());
  SANDWICH_ASSIGN_OR_RETURN(double seconds, measure());
  if (!(seconds > 0) || seconds == std::numeric_limits<double>::infinity())
    return makeError("measured ", seconds, " seconds for a schedule");
  ++measured;
  known.emplace(key, seconds);
  return seconds;
}

static Schedule onOneThread(Schedule schedule) {
  schedule.threads = {1, 1, 1};
  return schedule;
}

MeasuringSession::Key MeasuringSession::makeSliceKey(const MatmulShape &shape,
                                                     const Schedule &schedule) {
  // The slice alone is the matmul that the key is about.
  Payload payload{shape, schedule.slice[0], 1};
  payload.shape.n = schedule.slice[1];
  payload.shape.k = schedule.slice[2];
  return makeKey(true, payload,
                 reducedSchedule(payload, onOneThread(schedule)));
}

Result<double> MeasuringSession::sliceSeconds(const MatmulShape &shape,
                                              const Schedule &schedule) {
  return answer(makeSliceKey(shape, schedule), [&] {
    return evaluator.sliceSeconds(shape, onOneThread(schedule));
  });
}

Status MeasuringSession::expectSlices(const MatmulShape &shape,
                                      const std::vector<Schedule> &schedules) {
  SANDWICH_RETURN_IF_ERROR(goOn());
  std::vector<Schedule> unknown;
  for (const Schedule &schedule : schedules)
    if (!known.contains(makeSliceKey(shape, schedule)))
      unknown.push_back(onOneThread(schedule));
  return evaluator.expectSlices(shape, unknown);
}

Result<double> MeasuringSession::seconds(const Payload &payload,
                                         const Schedule &schedule) {
  return answer(makeKey(false, payload, reducedSchedule(payload, schedule)),
                [&] { return evaluator.seconds(payload, schedule); });
}

Result<size_t>
ScheduleEvaluator::fastest(const Payload &payload,
                           const std::vector<Schedule> &schedules) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < schedules.size(); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(double time, seconds(payload, schedules[i]));
    if (time < least) {
      least = time;
      best = i;
    }
  }
  return best;
}

Result<ScheduleEvaluator::Limit>
MeasuringSession::compareToLimit(const Payload &payload,
                                 const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(goOn());
  SANDWICH_ASSIGN_OR_RETURN(Limit limit,
                            evaluator.compareToLimit(payload, schedule));
  if (limit.share > 0) {
    ++asked;
    ++measured;
  }
  return limit;
}

Result<size_t>
MeasuringSession::fastest(const Payload &payload,
                          const std::vector<Schedule> &schedules) {
  SANDWICH_RETURN_IF_ERROR(goOn());
  asked += static_cast<int64_t>(schedules.size());
  measured += static_cast<int64_t>(schedules.size());
  return evaluator.fastest(payload, schedules);
}
