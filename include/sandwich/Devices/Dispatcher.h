//===- Dispatcher.h - Queries to devices, and back --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The running half of WindVE: the queue manager (algorithm 1) in front of
/// devices in the order of preference. A query goes to the first device with
/// room and waits there while the batch before it runs; what waits is the next
/// batch. Each query is answered exactly once or refused exactly once, whatever
/// becomes of devices.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DISPATCHER_H
#define SANDWICH_DEVICES_DISPATCHER_H

#include "sandwich/Devices/CircuitBreaker.h"
#include "sandwich/Devices/Device.h"
#include "sandwich/Devices/DriftMonitor.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// A device with what was found of it.
struct DispatchedDevice {
  std::unique_ptr<Device> device;
  /// Of its queue: queries that wait and those of its batch.
  uint32_t depth = 1;
  /// Absent: not known, and drift is not watched.
  std::optional<LatencyLine> line = std::nullopt;
};

struct DispatcherOptions {
  /// For which drift finds new depths.
  double sloSeconds = 1;
  /// A batch that is not done after so many seconds has failed. Its device may
  /// still answer, to nobody.
  double hangSeconds = 30;
  /// A probe that is not answered after so many seconds has failed.
  double probeSeconds = 5;
  /// When a device is closed, by failures in a row, and when it is probed.
  CircuitBreakerOptions closing = {};
  /// How long a busy device gets no queries, where it does not tell, and at
  /// most.
  double busySeconds = 1;
  double mostBusySeconds = 60;
  /// So often a query may be in a batch that fails. A query on which devices
  /// fail must not bring them down one after another.
  uint32_t mostAttempts = 3;
  /// Absent: depths stay.
  std::optional<DriftOptions> drift = std::nullopt;
  /// Depths that drift finds are kept within. A device without queries would
  /// never be found to be fast again.
  uint32_t leastDepth = 1;
  uint32_t mostDepth = maxQueueDepth;
  /// Of the jitter of probes.
  uint64_t seed = 1;
  /// Told of devices that are closed, opened again, or drift.
  LogCallback log = {};

  /// Errors (InvalidArgument): times and depths out of their ranges; no
  /// attempts; as `CircuitBreakerOptions` and `DriftOptions`.
  Status validate() const;
};

struct EmbeddingQuery {
  /// The caller's name for it.
  uint64_t id = 0;
  std::vector<int32_t> tokens = {};
  /// From `submit` on. Absent: none.
  std::optional<double> deadlineSeconds = std::nullopt;
};

/// Why a query has no answer. The kinds: `Overloaded` (BUSY: all queues are
/// full), `Unavailable` (all devices are closed, the query was in too many
/// batches that failed, or the dispatcher ends), `InvalidArgument` (no tokens,
/// or the device rejects it), `ContextExceeded` (more tokens than a device
/// takes), `DeadlineExceeded`, `Cancelled`.
struct QueryRefusal {
  ErrorKind kind = ErrorKind::Unavailable;
  std::string message = {};
  /// When to ask again; of `Overloaded` and `Unavailable`.
  std::optional<double> retryAfterSeconds = std::nullopt;
};

/// An answer, or a refusal.
struct QueryOutcome {
  uint64_t id = 0;
  Embedding embedding = {};
  /// Who answered, in the order of preference.
  std::optional<size_t> device = std::nullopt;
  std::optional<QueryRefusal> refusal = std::nullopt;
};

/// Called exactly once, by any thread, the one that submits among them, with no
/// lock held. It may submit and cancel, must not throw, and keeps the thread
/// from its device as long as it runs.
using QueryCallback = std::function<void(QueryOutcome outcome)>;

struct QueryRecord;

/// Names a query that was submitted, as long as it is under way.
class QueryTicket {
public:
  QueryTicket() = default;

private:
  friend class Dispatcher;
  explicit QueryTicket(std::weak_ptr<QueryRecord> record)
      : record(std::move(record)) {}
  std::weak_ptr<QueryRecord> record;
};

/// Since the dispatcher began, but for what is told as of now. A query that was
/// moved counts at each of its devices.
struct DeviceCounters {
  std::string name;
  /// Queries it took, and those that found it full or closed.
  uint64_t accepted = 0;
  uint64_t overflowed = 0;
  /// Batches for which it was busy, and those that failed otherwise.
  uint64_t busy = 0;
  uint64_t failed = 0;
  /// Queries that left it for another one.
  uint64_t moved = 0;
  uint64_t answered = 0;
  uint64_t batches = 0;
  /// Of all batches.
  uint64_t batchQueries = 0;
  uint64_t batchTokens = 0;
  /// Answers that came after their batch was given up.
  uint64_t late = 0;
  /// New depths by drift.
  uint64_t drifts = 0;
  // Now.
  uint32_t queued = 0;
  uint32_t depth = 0;
  bool closed = false;
  std::optional<LatencyLine> line = std::nullopt;
};

struct DispatcherCounters {
  /// The most preferred first.
  std::vector<DeviceCounters> devices;
  uint64_t submitted = 0;
  uint64_t answered = 0;
  // Refused, by reason; all of them and those answered are those submitted,
  // once nothing is under way.
  uint64_t busy = 0;
  uint64_t unavailable = 0;
  uint64_t invalid = 0;
  uint64_t expired = 0;
  uint64_t cancelled = 0;
};

/// All calls may come from any thread, callbacks among them, and wait for no
/// device.
class Dispatcher {
public:
  /// `devices`: the most preferred first. Errors (InvalidArgument): as
  /// `DispatcherOptions::validate` and `QueueManager::create`; devices of
  /// different dimensions, or two of one name; lines that `DriftMonitor`
  /// refuses. Error: the system grants no thread.
  static Result<std::unique_ptr<Dispatcher>>
  create(std::vector<DispatchedDevice> devices, DispatcherOptions options);

  Dispatcher(const Dispatcher &) = delete;
  Dispatcher &operator=(const Dispatcher &) = delete;
  /// Refuses what is under way (Unavailable) and destroys the devices. No
  /// callback runs any more when it returns; not to be called by one.
  ~Dispatcher();

  /// Has `callback` called once with what became of `query`.
  QueryTicket submit(EmbeddingQuery query, QueryCallback callback);

  /// Refuses the query as cancelled, if it has no outcome yet; false: it has.
  bool cancel(const QueryTicket &ticket);

  /// When a queue will have room: the rest of a batch under way by its
  /// device's line, the next one too where more waits than its depth; or when a
  /// closed device is tried again.
  double retryAfterSeconds() const;

  /// Takes effect with the next query. Errors: as `QueueManager::setDepth`;
  /// there is no such device (InvalidArgument).
  Status setDepth(size_t device, uint32_t depth);

  DispatcherCounters counters() const;

private:
  class Implementation;
  explicit Dispatcher(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DISPATCHER_H
