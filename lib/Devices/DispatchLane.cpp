//===- DispatchLane.cpp - A device and what waits for it ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DispatchLane.h"

#include <algorithm>
#include <utility>

using namespace sandwich;

/// Of a batch of which nothing is known.
static constexpr double usualBatchSeconds = 1;

void DispatchLane::push(std::shared_ptr<QueryRecord> record, bool first) {
  record->lane.store(index, std::memory_order_release);
  earliestDeadline = std::min(earliestDeadline, record->deadline);
  if (first)
    waiting.push_front(std::move(record));
  else
    waiting.push_back(std::move(record));
}

std::optional<Launch> DispatchLane::form(double now, double hangSeconds,
                                         size_t &droppedSlots) {
  if (flight || state != LaneState::Open)
    return std::nullopt;
  Flight next;
  Launch launch;
  uint64_t tokens = 0;
  while (!waiting.empty() && next.queries.size() < facts.batchQueries) {
    std::shared_ptr<QueryRecord> &record = waiting.front();
    if (record->isSettled()) {
      waiting.pop_front();
      ++droppedSlots;
      continue;
    }
    const bool fits =
        next.queries.empty() ||
        (!record->alone && record->tokens.size() <= facts.batchTokens &&
         tokens <= facts.batchTokens - record->tokens.size());
    if (!fits)
      break;
    tokens += record->tokens.size();
    // Shares the record, so that the tokens are not copied.
    launch.batch.push_back(
        {record->id,
         std::shared_ptr<const std::vector<int32_t>>(record, &record->tokens)});
    const bool alone = record->alone;
    next.queries.push_back(std::move(record));
    waiting.pop_front();
    if (alone)
      break;
  }
  if (next.queries.empty())
    return std::nullopt;
  next.serial = launch.serial = ++lastSerial;
  next.start = now;
  next.hangTime = launch.hangTime = now + hangSeconds;
  ++counters.batches;
  counters.batchQueries += next.queries.size();
  counters.batchTokens += tokens;
  flight = std::move(next);
  return launch;
}

std::optional<Flight> DispatchLane::take(uint64_t serial) {
  if (!flight || flight->serial != serial)
    return std::nullopt;
  return std::exchange(flight, std::nullopt);
}

QueryRecords DispatchLane::takeWaiting() {
  QueryRecords taken(std::make_move_iterator(waiting.begin()),
                     std::make_move_iterator(waiting.end()));
  waiting.clear();
  return taken;
}

bool DispatchLane::remove(const std::shared_ptr<QueryRecord> &record) {
  const auto found = std::ranges::find(waiting, record);
  if (found == waiting.end())
    return false;
  waiting.erase(found);
  return true;
}

QueryRecords DispatchLane::expire(double now, size_t &freedSlots) {
  QueryRecords expired;
  if (earliestDeadline > now)
    return expired;
  earliestDeadline = endOfTime;
  // True: its deadline has passed.
  const auto look = [&](const std::shared_ptr<QueryRecord> &record) {
    if (record->deadline > now) {
      if (!record->isSettled())
        earliestDeadline = std::min(earliestDeadline, record->deadline);
      return false;
    }
    if (record->settle())
      expired.push_back(record);
    return true;
  };
  freedSlots += std::erase_if(waiting, look);
  if (flight)
    for (const std::shared_ptr<QueryRecord> &record : flight->queries)
      (void)look(record);
  return expired;
}

double DispatchLane::nextEvent() const {
  double next = earliestDeadline;
  if (flight)
    next = std::min(next, flight->hangTime);
  if (state == LaneState::Busy)
    next = std::min(next, openTime);
  if (state == LaneState::Failed)
    next = std::min(next, probing ? probeTimeout : breaker.trialTime());
  return next;
}

double DispatchLane::batchSeconds(size_t queries) const {
  return line ? line->seconds(static_cast<double>(queries))
              : lastBatchSeconds.value_or(usualBatchSeconds);
}

double DispatchLane::secondsUntilRoom(double now, uint32_t depth) const {
  if (state == LaneState::Busy)
    return std::max(openTime - now, 0.0);
  if (state == LaneState::Failed)
    return std::max((probing ? probeTimeout : breaker.trialTime()) - now, 0.0);
  if (depth == 0)
    return endOfTime;
  double seconds = 0;
  if (flight) {
    const double expected = batchSeconds(flight->queries.size());
    // One that takes longer than it should may take as long again as it is
    // late.
    seconds = std::abs(flight->start + expected - now);
  }
  // After a depth fell, more may wait than the queue takes.
  if (waiting.size() >= depth)
    seconds +=
        batchSeconds(std::min<size_t>(waiting.size(), facts.batchQueries));
  return seconds;
}
