//===- DispatchLane.h - A device and what waits for it ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the dispatcher keeps of one device: the queries that wait, the batch
/// under way, and whether it is closed. A query that is not settled yet is held
/// by exactly one lane, or by the thread that moves it; a batch is taken from
/// its lane once, by whoever ends it. That no query is lost or told twice
/// follows from this.
///
//===----------------------------------------------------------------------===//

#ifndef LIB_DEVICES_DISPATCHLANE_H
#define LIB_DEVICES_DISPATCHLANE_H

#include "sandwich/Devices/Dispatcher.h"

#include <atomic>
#include <deque>
#include <limits>
#include <mutex>

namespace sandwich {

/// After everything.
inline constexpr double endOfTime = std::numeric_limits<double>::infinity();

/// A query under way.
struct QueryRecord {
  QueryRecord(EmbeddingQuery query, QueryCallback callback, double deadline)
      : id(query.id), tokens(std::move(query.tokens)), deadline(deadline),
        callback(std::move(callback)) {}

  /// True for one caller: the one who tells the outcome.
  bool settle() { return !settled.exchange(true, std::memory_order_acq_rel); }
  bool isSettled() const { return settled.load(std::memory_order_acquire); }

  const uint64_t id;
  const std::vector<int32_t> tokens;
  const double deadline;
  /// Of whoever settled it.
  QueryCallback callback;
  /// The lane that holds it, or the last one that did.
  std::atomic<size_t> lane{0};
  // Of whoever holds it.
  uint32_t failedAttempts = 0;
  /// It must be a batch of its own, to find out whether it is the one that a
  /// device rejects.
  bool alone = false;

private:
  std::atomic<bool> settled{false};
};

using QueryRecords = std::vector<std::shared_ptr<QueryRecord>>;

/// A batch under way.
struct Flight {
  /// Tells it from others of its lane, so that the answer of one that was given
  /// up is not taken for the answer of the next.
  uint64_t serial = 0;
  QueryRecords queries;
  double start = 0;
  double hangTime = 0;
};

/// What to submit to a device, once the lane is unlocked.
struct Launch {
  uint64_t serial = 0;
  double hangTime = 0;
  DeviceBatch batch;
};

/// Why a device gets no queries.
enum class LaneState {
  Open,
  /// It failed, and is probed.
  Failed,
  /// It told that it is busy.
  Busy,
};

/// All but constants and the device belongs to `mutex`. Calls want it held.
class DispatchLane {
public:
  DispatchLane(size_t index, std::unique_ptr<Device> device,
               const CircuitBreaker &breaker, std::optional<LatencyLine> line)
      : index(index), facts(device->facts()), device(std::move(device)),
        breaker(breaker), line(line) {}

  const size_t index;
  const DeviceFacts facts;
  /// Null once the dispatcher ends and all have unlocked.
  std::unique_ptr<Device> device;

  mutable std::mutex mutex;
  LaneState state = LaneState::Open;
  std::deque<std::shared_ptr<QueryRecord>> waiting;
  std::optional<Flight> flight;
  CircuitBreaker breaker;
  std::optional<LatencyLine> line;
  std::optional<DriftMonitor> drift;
  /// Of the last batch, where there is no line.
  std::optional<double> lastBatchSeconds;
  /// Of `Busy`: until when.
  double openTime = endOfTime;
  /// A probe is under way until then, at the latest.
  bool probing = false;
  double probeTimeout = endOfTime;
  uint64_t probeSerial = 0;
  /// No query of this lane has an earlier deadline.
  double earliestDeadline = endOfTime;
  DeviceCounters counters;

  /// Puts `record` behind, or before, all that wait.
  void push(std::shared_ptr<QueryRecord> record, bool first);

  /// Makes what waits the next batch, up to the device's tokens and queries, if
  /// it is open and no batch is under way. Queries that were settled meanwhile
  /// are dropped; adds to `droppedSlots` how many slots the caller is to give
  /// back for them.
  std::optional<Launch> form(double now, double hangSeconds,
                             size_t &droppedSlots);

  /// Takes the batch under way, if it is this one.
  std::optional<Flight> take(uint64_t serial);

  /// Takes all that waits.
  QueryRecords takeWaiting();

  /// Takes `record` out of what waits; false: it does not wait here.
  bool remove(const std::shared_ptr<QueryRecord> &record);

  /// Settles what is past its deadline and returns it. `freedSlots`: of those
  /// that waited. A query whose batch is under way keeps its slot: the device
  /// computes it all the same.
  QueryRecords expire(double now, size_t &freedSlots);

  /// When something is to be done next unless something happens before.
  double nextEvent() const;

  /// Until there may be room, as `Dispatcher::retryAfterSeconds`; `depth`: of
  /// the queue.
  double secondsUntilRoom(double now, uint32_t depth) const;

private:
  double batchSeconds(size_t queries) const;

  uint64_t lastSerial = 0;
};

} // namespace sandwich

#endif // LIB_DEVICES_DISPATCHLANE_H
