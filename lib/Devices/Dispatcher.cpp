//===- Dispatcher.cpp - Queries to devices, and back ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Dispatcher.h"

#include "DispatchLane.h"
#include "sandwich/Devices/QueueManager.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <ranges>
#include <set>
#include <thread>

using namespace sandwich;

/// No sooner is anybody told to come again.
static constexpr double leastRetrySeconds = 1e-3;

/// A deadline that is further away is none.
static constexpr double mostDeadlineSeconds = maxDeviceSeconds;

Status DispatcherOptions::validate() const {
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the SLO", sloSeconds));
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the time of a hang", hangSeconds));
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the time of a probe", probeSeconds));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the pause of a busy device", busySeconds));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("the longest pause of a busy device", mostBusySeconds));
  SANDWICH_RETURN_IF_ERROR(closing.validate());
  if (drift)
    SANDWICH_RETURN_IF_ERROR(drift->validate());
  if (mostAttempts < 1)
    return makeError(ErrorKind::InvalidArgument,
                     "a query must be in one batch at least");
  if (leastDepth > mostDepth || mostDepth > maxQueueDepth)
    return makeError(ErrorKind::InvalidArgument, "depths are ", leastDepth,
                     " to ", mostDepth, "; these must ascend to at most ",
                     maxQueueDepth);
  return {};
}

//===----------------------------------------------------------------------===//
// Implementation
//===----------------------------------------------------------------------===//

class Dispatcher::Implementation {
public:
  explicit Implementation(DispatcherOptions options)
      : options(std::move(options)) {}
  ~Implementation();

  Status begin(std::vector<DispatchedDevice> devices);
  std::shared_ptr<QueryRecord> submit(EmbeddingQuery query,
                                      QueryCallback callback);
  bool cancel(const std::shared_ptr<QueryRecord> &record);
  double retryAfterSeconds() const;
  Status setDepth(size_t device, uint32_t depth);
  DispatcherCounters counters() const;

private:
  using Record = std::shared_ptr<QueryRecord>;
  using Lane = DispatchLane;
  using Clock = std::chrono::steady_clock;

  double now() const { return secondsSince(origin); }

  // Telling outcomes, with no lock held.
  void tell(QueryRecord &record, QueryOutcome outcome);
  void refuse(QueryRecord &record, QueryRefusal refusal);
  void refuseBusy(QueryRecord &record);

  /// Counts the threads of devices that are inside.
  class Visit {
  public:
    explicit Visit(Implementation &visited) : visited(visited) {
      ++visited.visits;
    }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    ~Visit() {
      if (--visited.visits == 0 && visited.stopping)
        visited.visits.notify_all();
    }

  private:
    Implementation &visited;
  };

  // The way of a query.
  /// Gets a slot of the queue manager and waits at its device.
  void admit(const Record &record);
  /// The same for what was moved: before all that waits, in their order.
  void admitAgain(QueryRecords records);
  /// Puts `records`, which have slots of `lane`, behind or before what waits
  /// there. Returns those that must be admitted again, without slots.
  QueryRecords push(Lane &lane, QueryRecords records, bool first);
  void start(Lane &lane, std::optional<Launch> launch);
  void complete(Lane &lane, uint64_t serial, BatchAnswer answer);
  void deliver(Lane &lane, Flight flight, std::vector<Embedding> embeddings);
  void observe(Lane &lane, const Flight &flight);
  void release(const Lane &lane, size_t slots);
  void move(Lane &lane, QueryRecords records, const QueryRefusal &exhausted);

  // What becomes of a batch that has no answer. The lane is locked, and
  // unlocked when they return.
  void fail(Lane &lane, std::unique_lock<std::mutex> lock, Flight flight,
            const DeviceError &error);
  void pause(Lane &lane, std::unique_lock<std::mutex> lock, Flight flight,
             const DeviceError &error);
  void reject(Lane &lane, std::unique_lock<std::mutex> lock, Flight flight,
              const DeviceError &error);

  // The thread of times.
  void watch();
  /// Lets the thread look again if nothing before `time` would.
  void expect(double time);
  void look(Lane &lane);
  void probe(Lane &lane, uint64_t serial);
  void endProbe(Lane &lane, uint64_t serial,
                const std::optional<DeviceError> &error);
  void reopen(Lane &lane);

  const DispatcherOptions options;
  const Clock::time_point origin = Clock::now();
  std::unique_ptr<QueueManager> manager;
  std::vector<std::unique_ptr<Lane>> lanes;
  /// No device takes longer ones.
  size_t mostTokens = 0;
  uint32_t dimensions = 0;
  /// Seen under the lock of each lane, after which nothing more is pushed.
  std::atomic<bool> stopping = false;
  std::atomic<size_t> visits = 0;

  struct Totals {
    std::atomic<uint64_t> submitted{0}, answered{0}, busy{0}, unavailable{0},
        invalid{0}, expired{0}, cancelled{0};
  } totals;

  std::mutex watchMutex;
  std::condition_variable watchChanged;
  bool poked = false;
  /// When the thread looks next; `endOfTime` while it looks, so that what comes
  /// meanwhile makes it look again.
  std::atomic<double> watchTime = endOfTime;
  std::thread watcher;
};

Status Dispatcher::Implementation::begin(std::vector<DispatchedDevice> given) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  std::vector<uint32_t> depths;
  std::set<std::string_view> names;
  for (DispatchedDevice &device : given) {
    depths.push_back(device.depth);
    const DeviceFacts &facts = device.device->facts();
    if (!names.insert(facts.name).second)
      return makeError(ErrorKind::InvalidArgument, "two devices are named '",
                       facts.name, "'");
    if (lanes.empty()) {
      dimensions = facts.dimensions;
      mostTokens = facts.queryTokens;
    }
    if (facts.dimensions != dimensions)
      return makeError(ErrorKind::InvalidArgument, "device '", facts.name,
                       "' has embeddings of ", facts.dimensions,
                       " numbers, and the first one of ", dimensions);
    // A query must not depend on which device has room.
    mostTokens = std::min<size_t>(mostTokens, facts.queryTokens);
    SANDWICH_ASSIGN_OR_RETURN(
        CircuitBreaker breaker,
        CircuitBreaker::create(options.closing, options.seed + lanes.size()));
    lanes.push_back(std::make_unique<Lane>(
        lanes.size(), std::move(device.device), breaker, device.line));
    if (options.drift && device.line) {
      SANDWICH_ASSIGN_OR_RETURN(lanes.back()->drift,
                                DriftMonitor::create(*options.drift,
                                                     *device.line,
                                                     options.sloSeconds));
    }
  }
  SANDWICH_ASSIGN_OR_RETURN(manager, QueueManager::create(depths));
  SANDWICH_ASSIGN_OR_RETURN(watcher,
                            startThread("the dispatcher", [this] { watch(); }));
  return {};
}

Dispatcher::Implementation::~Implementation() {
  stopping = true;
  if (watcher.joinable()) {
    {
      const std::lock_guard lock(watchMutex);
      poked = true;
    }
    watchChanged.notify_one();
    watcher.join();
  }
  // From here on no lane makes a batch; threads that have one in their hands
  // give it to its device before that goes.
  for (const std::unique_ptr<Lane> &lane : lanes) {
    const std::lock_guard lock(lane->mutex);
    // Null where it was never made.
    if (manager)
      manager->close(lane->index);
    lane->state = LaneState::Failed;
  }
  for (size_t count = visits; count > 0; count = visits)
    visits.wait(count);
  for (const std::unique_ptr<Lane> &lane : lanes) {
    QueryRecords left;
    {
      const std::lock_guard lock(lane->mutex);
      left = lane->takeWaiting();
      if (lane->flight)
        std::ranges::move(lane->flight->queries, std::back_inserter(left));
      lane->flight.reset();
    }
    for (const Record &record : left)
      refuse(*record, {ErrorKind::Unavailable, "the service ends"});
  }
  // Completions that still come find no batch of theirs, but their lanes.
  for (const std::unique_ptr<Lane> &lane : lanes)
    lane->device.reset();
}

//===----------------------------------------------------------------------===//
// Outcomes
//===----------------------------------------------------------------------===//

void Dispatcher::Implementation::tell(QueryRecord &record,
                                      QueryOutcome outcome) {
  // What the callback holds is given back with it, whoever still holds the
  // record.
  const QueryCallback callback = std::exchange(record.callback, {});
  if (callback)
    callback(std::move(outcome));
}

void Dispatcher::Implementation::refuse(QueryRecord &record,
                                        QueryRefusal refusal) {
  if (!record.settle())
    return;
  const auto count = [&]() -> std::atomic<uint64_t> & {
    switch (refusal.kind) {
    case ErrorKind::Overloaded:
      return totals.busy;
    case ErrorKind::DeadlineExceeded:
      return totals.expired;
    case ErrorKind::Cancelled:
      return totals.cancelled;
    case ErrorKind::Unavailable:
      return totals.unavailable;
    default:
      return totals.invalid;
    }
  };
  count().fetch_add(1, std::memory_order_relaxed);
  tell(record, {.id = record.id, .refusal = std::move(refusal)});
}

void Dispatcher::Implementation::refuseBusy(QueryRecord &record) {
  if (stopping)
    return refuse(record, {ErrorKind::Unavailable, "the service ends"});
  bool anyOpen = false;
  for (const std::unique_ptr<Lane> &lane : lanes) {
    const std::lock_guard lock(lane->mutex);
    anyOpen |= lane->state != LaneState::Failed;
  }
  const double seconds = retryAfterSeconds();
  if (anyOpen)
    refuse(record, {ErrorKind::Overloaded, "all queues are full", seconds});
  else
    refuse(record, {ErrorKind::Unavailable, "no device works", seconds});
}

double Dispatcher::Implementation::retryAfterSeconds() const {
  double least = endOfTime;
  for (const std::unique_ptr<Lane> &lane : lanes) {
    const uint32_t depth = manager->depth(lane->index);
    const std::lock_guard lock(lane->mutex);
    least = std::min(least, lane->secondsUntilRoom(now(), depth));
  }
  return std::clamp(least, leastRetrySeconds, maxDeviceSeconds);
}

//===----------------------------------------------------------------------===//
// The way of a query
//===----------------------------------------------------------------------===//

std::shared_ptr<QueryRecord>
Dispatcher::Implementation::submit(EmbeddingQuery query,
                                   QueryCallback callback) {
  totals.submitted.fetch_add(1, std::memory_order_relaxed);
  double deadline = endOfTime;
  if (query.deadlineSeconds && *query.deadlineSeconds < mostDeadlineSeconds)
    deadline = now() + *query.deadlineSeconds;
  auto record = std::make_shared<QueryRecord>(std::move(query),
                                              std::move(callback), deadline);
  if (record->tokens.empty())
    refuse(*record, {ErrorKind::InvalidArgument, "the query has no tokens"});
  else if (record->tokens.size() > mostTokens)
    refuse(*record, {ErrorKind::ContextExceeded,
                     makeError("the query has ", record->tokens.size(),
                               " tokens; it may have ", mostTokens)
                         .message});
  else if (!(deadline > now()))
    refuse(*record,
           {ErrorKind::DeadlineExceeded, "the query's deadline has passed"});
  else
    admit(record);
  return record;
}

void Dispatcher::Implementation::admit(const Record &record) {
  while (const std::optional<size_t> device = manager->admit())
    if (push(*lanes[*device], {record}, /*first=*/false).empty())
      return;
  refuseBusy(*record);
}

void Dispatcher::Implementation::admitAgain(QueryRecords records) {
  while (!records.empty()) {
    std::vector<QueryRecords> admitted(lanes.size());
    for (Record &record : records) {
      const std::optional<size_t> device = manager->admit();
      if (device)
        admitted[*device].push_back(std::move(record));
      else
        refuseBusy(*record);
    }
    records.clear();
    for (size_t i = 0; i < lanes.size(); ++i)
      if (!admitted[i].empty())
        std::ranges::move(
            push(*lanes[i], std::move(admitted[i]), /*first=*/true),
            std::back_inserter(records));
  }
}

QueryRecords Dispatcher::Implementation::push(Lane &lane, QueryRecords records,
                                              bool first) {
  std::optional<Launch> launch;
  size_t dropped = 0;
  double deadline = endOfTime;
  {
    std::unique_lock lock(lane.mutex);
    // It was closed since it gave the slots; the queue manager knows by now.
    if (lane.state != LaneState::Open) {
      lock.unlock();
      release(lane, records.size());
      return records;
    }
    if (first)
      std::ranges::reverse(records);
    for (Record &record : records) {
      deadline = std::min(deadline, record->deadline);
      lane.push(std::move(record), first);
    }
    launch = lane.form(now(), options.hangSeconds, dropped);
  }
  release(lane, dropped);
  expect(deadline);
  start(lane, std::move(launch));
  return {};
}

void Dispatcher::Implementation::start(Lane &lane,
                                       std::optional<Launch> launch) {
  if (!launch)
    return;
  expect(launch->hangTime);
  lane.device->submit(
      std::move(launch->batch),
      [this, &lane, serial = launch->serial](BatchAnswer answer) {
        complete(lane, serial, std::move(answer));
      });
}

void Dispatcher::Implementation::release(const Lane &lane, size_t slots) {
  for (size_t i = 0; i < slots; ++i)
    manager->release(lane.index);
}

void Dispatcher::Implementation::complete(Lane &lane, uint64_t serial,
                                          BatchAnswer answer) {
  const Visit visit(*this);
  std::unique_lock lock(lane.mutex);
  if (!lane.flight || lane.flight->serial != serial) {
    // It was given up, and its queries are somewhere else.
    ++lane.counters.late;
    return;
  }
  // The numbers are looked at without the lock; nobody else ends this batch
  // but whoever finds that it hangs.
  const size_t queries = lane.flight->queries.size();
  lock.unlock();
  if (!answer.error)
    answer.error = checkEmbeddings(answer.embeddings, queries, dimensions);
  lock.lock();
  std::optional<Flight> flight = lane.take(serial);
  if (!flight) {
    ++lane.counters.late;
    return;
  }
  if (answer.error) {
    switch (answer.error->kind) {
    case DeviceErrorKind::Busy:
      return pause(lane, std::move(lock), *std::move(flight), *answer.error);
    case DeviceErrorKind::Rejected:
      return reject(lane, std::move(lock), *std::move(flight), *answer.error);
    default:
      return fail(lane, std::move(lock), *std::move(flight), *answer.error);
    }
  }
  lane.breaker.succeed();
  lane.counters.answered += queries;
  observe(lane, *flight);
  // The device gets its next batch before anybody is told of this one.
  size_t freed = queries;
  std::optional<Launch> launch = lane.form(now(), options.hangSeconds, freed);
  lock.unlock();
  release(lane, freed);
  start(lane, std::move(launch));
  deliver(lane, *std::move(flight), std::move(answer.embeddings));
}

void Dispatcher::Implementation::deliver(Lane &lane, Flight flight,
                                         std::vector<Embedding> embeddings) {
  for (size_t i = 0; i < flight.queries.size(); ++i) {
    QueryRecord &record = *flight.queries[i];
    if (!record.settle())
      continue;
    totals.answered.fetch_add(1, std::memory_order_relaxed);
    tell(record, {.id = record.id,
                  .embedding = std::move(embeddings[i]),
                  .device = lane.index});
  }
}

void Dispatcher::Implementation::observe(Lane &lane, const Flight &flight) {
  const double seconds = now() - flight.start;
  lane.lastBatchSeconds = seconds;
  if (!lane.drift)
    return;
  const std::optional<Drift> drift = lane.drift->observe(
      static_cast<uint32_t>(flight.queries.size()), seconds);
  if (!drift)
    return;
  lane.line = drift->line;
  ++lane.counters.drifts;
  const uint32_t depth =
      std::clamp(drift->depth, options.leastDepth, options.mostDepth);
  (void)manager->setDepth(lane.index, depth);
  report(options.log, LogLevel::Information,
         makeError("device '", lane.facts.name, "' drifted: alpha is ",
                   drift->line.alpha, " s and beta ", drift->line.beta,
                   " s now, its depth ", depth)
             .message);
}

/// All of `records` hold slots of `lane`. `exhausted`: what becomes of those
/// that have tried often enough.
void Dispatcher::Implementation::move(Lane &lane, QueryRecords records,
                                      const QueryRefusal &exhausted) {
  release(lane, records.size());
  QueryRecords left;
  for (Record &record : records) {
    if (record->isSettled())
      continue;
    if (record->failedAttempts >= options.mostAttempts)
      refuse(*record, exhausted);
    else
      left.push_back(std::move(record));
  }
  // What waited longest is first again, wherever it goes.
  admitAgain(std::move(left));
}

/// Of a batch that failed.
static QueryRecords takeFailed(Flight flight) {
  for (const std::shared_ptr<QueryRecord> &record : flight.queries)
    ++record->failedAttempts;
  return std::move(flight.queries);
}

void Dispatcher::Implementation::fail(Lane &lane,
                                      std::unique_lock<std::mutex> lock,
                                      Flight flight, const DeviceError &error) {
  ++lane.counters.failed;
  lane.breaker.fail(now());
  QueryRecords records = takeFailed(std::move(flight));
  std::optional<Launch> launch;
  size_t dropped = 0;
  const bool closes = lane.breaker.state() == CircuitBreaker::State::Open;
  double next = endOfTime;
  if (closes) {
    // The queue manager first: who finds the lane closed must not get another
    // slot of it.
    manager->close(lane.index);
    lane.state = LaneState::Failed;
    std::ranges::move(lane.takeWaiting(), std::back_inserter(records));
    next = lane.breaker.trialTime();
  } else {
    launch = lane.form(now(), options.hangSeconds, dropped);
  }
  lane.counters.moved += records.size();
  const double wait = next - now();
  lock.unlock();
  report(options.log, LogLevel::Warning,
         makeError("device '", lane.facts.name, "' ", nameOf(error.kind), ": ",
                   error.message,
                   closes ? makeError("; it is probed in ", wait, " s").message
                          : "")
             .message);
  expect(next);
  release(lane, dropped);
  start(lane, std::move(launch));
  move(lane, std::move(records),
       {ErrorKind::Unavailable, "the query was in too many batches that failed",
        options.closing.openSeconds});
}

void Dispatcher::Implementation::pause(Lane &lane,
                                       std::unique_lock<std::mutex> lock,
                                       Flight flight,
                                       const DeviceError &error) {
  ++lane.counters.busy;
  lane.breaker.succeed();
  manager->close(lane.index);
  lane.state = LaneState::Busy;
  const double next =
      now() + std::clamp(error.retryAfterSeconds.value_or(options.busySeconds),
                         leastRetrySeconds, options.mostBusySeconds);
  lane.openTime = next;
  QueryRecords records = takeFailed(std::move(flight));
  std::ranges::move(lane.takeWaiting(), std::back_inserter(records));
  lane.counters.moved += records.size();
  lock.unlock();
  expect(next);
  move(lane, std::move(records),
       {ErrorKind::Overloaded, "all devices are busy", next - now()});
}

void Dispatcher::Implementation::reject(Lane &lane,
                                        std::unique_lock<std::mutex> lock,
                                        Flight flight,
                                        const DeviceError &error) {
  lane.breaker.succeed();
  QueryRecords wrong;
  if (flight.queries.size() == 1) {
    wrong = std::move(flight.queries);
  } else {
    // One of them is wrong; each goes on alone, in its slot.
    for (Record &record : flight.queries | std::views::reverse) {
      record->alone = true;
      lane.push(std::move(record), /*first=*/true);
    }
  }
  size_t freed = wrong.size();
  std::optional<Launch> launch = lane.form(now(), options.hangSeconds, freed);
  lock.unlock();
  release(lane, freed);
  start(lane, std::move(launch));
  for (const Record &record : wrong)
    refuse(*record, {ErrorKind::InvalidArgument, error.message});
}

bool Dispatcher::Implementation::cancel(const Record &record) {
  if (!record->settle())
    return false;
  totals.cancelled.fetch_add(1, std::memory_order_relaxed);
  Lane &lane = *lanes[record->lane.load(std::memory_order_acquire)];
  bool waited = false;
  {
    const std::lock_guard lock(lane.mutex);
    waited = lane.remove(record);
  }
  // Where it is moved just now, or its batch is under way, whoever has it next
  // gives its slot back.
  if (waited)
    release(lane, 1);
  tell(*record, {.id = record->id,
                 .refusal = QueryRefusal{ErrorKind::Cancelled,
                                         "the query was cancelled"}});
  return true;
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

void Dispatcher::Implementation::expect(double time) {
  if (time >= watchTime.load())
    return;
  {
    const std::lock_guard lock(watchMutex);
    poked = true;
  }
  watchChanged.notify_one();
}

void Dispatcher::Implementation::watch() {
  while (!stopping) {
    watchTime = endOfTime;
    for (const std::unique_ptr<Lane> &lane : lanes)
      look(*lane);
    double next = endOfTime;
    for (const std::unique_ptr<Lane> &lane : lanes) {
      const std::lock_guard lock(lane->mutex);
      next = std::min(next, lane->nextEvent());
    }
    std::unique_lock lock(watchMutex);
    watchTime = next;
    const auto isPoked = [this] { return poked; };
    if (next == endOfTime)
      watchChanged.wait(lock, isPoked);
    else
      watchChanged.wait_until(lock,
                              origin +
                                  std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(next)),
                              isPoked);
    poked = false;
  }
}

void Dispatcher::Implementation::look(Lane &lane) {
  std::unique_lock lock(lane.mutex);
  const double time = now();
  size_t freed = 0;
  const QueryRecords expired = lane.expire(time, freed);
  if (lane.state == LaneState::Busy && lane.openTime <= time)
    reopen(lane);
  if (lane.probing && lane.probeTimeout <= time) {
    lane.probing = false;
    ++lane.probeSerial;
    lane.breaker.fail(time);
  }
  const bool probes = lane.state == LaneState::Failed && !lane.probing &&
                      lane.breaker.allow(time);
  uint64_t serial = 0;
  if (probes) {
    lane.probing = true;
    lane.probeTimeout = time + options.probeSeconds;
    serial = ++lane.probeSerial;
  }
  std::optional<Flight> hung;
  if (lane.flight && lane.flight->hangTime <= time)
    hung = lane.take(lane.flight->serial);
  if (hung)
    fail(lane, std::move(lock), *std::move(hung),
         {DeviceErrorKind::TimedOut,
          makeError("a batch took more than ", options.hangSeconds, " s")
              .message});
  else
    lock.unlock();
  release(lane, freed);
  for (const Record &record : expired) {
    totals.expired.fetch_add(1, std::memory_order_relaxed);
    tell(*record, {.id = record->id,
                   .refusal = QueryRefusal{ErrorKind::DeadlineExceeded,
                                           "the query's deadline has passed"}});
  }
  if (probes)
    probe(lane, serial);
}

void Dispatcher::Implementation::probe(Lane &lane, uint64_t serial) {
  lane.device->probe(
      [this, &lane, serial](const std::optional<DeviceError> &error) {
        endProbe(lane, serial, error);
      });
}

void Dispatcher::Implementation::endProbe(
    Lane &lane, uint64_t serial, const std::optional<DeviceError> &error) {
  const Visit visit(*this);
  double next = endOfTime;
  {
    const std::lock_guard lock(lane.mutex);
    if (stopping || !lane.probing || lane.probeSerial != serial)
      return;
    lane.probing = false;
    lane.probeTimeout = endOfTime;
    if (error) {
      lane.breaker.fail(now());
      next = lane.breaker.trialTime();
    } else {
      lane.breaker.succeed();
      reopen(lane);
    }
  }
  if (error)
    expect(next);
  else
    report(options.log, LogLevel::Information,
           "device '" + lane.facts.name + "' works again");
}

/// The lane is locked. Nothing waits in it: all was moved when it was closed.
void Dispatcher::Implementation::reopen(Lane &lane) {
  lane.state = LaneState::Open;
  lane.openTime = endOfTime;
  // Last: who gets a slot finds the lane open.
  manager->reopen(lane.index);
}

Status Dispatcher::Implementation::setDepth(size_t device, uint32_t depth) {
  if (device >= lanes.size())
    return makeError(ErrorKind::InvalidArgument, "there is no device ", device);
  return manager->setDepth(device, depth);
}

DispatcherCounters Dispatcher::Implementation::counters() const {
  DispatcherCounters all;
  for (const std::unique_ptr<Lane> &lane : lanes) {
    DeviceCounters device;
    {
      const std::lock_guard lock(lane->mutex);
      device = lane->counters;
      device.closed = lane->state != LaneState::Open;
      device.line = lane->line;
    }
    device.name = lane->facts.name;
    const QueueCounts counts = manager->counts(lane->index);
    device.accepted = counts.admitted;
    device.overflowed = counts.overflowed;
    device.queued = manager->queued(lane->index);
    device.depth = manager->depth(lane->index);
    all.devices.push_back(std::move(device));
  }
  const auto read = [](const std::atomic<uint64_t> &count) {
    return count.load(std::memory_order_relaxed);
  };
  all.answered = read(totals.answered);
  all.busy = read(totals.busy);
  all.unavailable = read(totals.unavailable);
  all.invalid = read(totals.invalid);
  all.expired = read(totals.expired);
  all.cancelled = read(totals.cancelled);
  all.submitted = read(totals.submitted);
  return all;
}

//===----------------------------------------------------------------------===//
// Dispatcher
//===----------------------------------------------------------------------===//

Dispatcher::Dispatcher(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

Dispatcher::~Dispatcher() = default;

Result<std::unique_ptr<Dispatcher>>
Dispatcher::create(std::vector<DispatchedDevice> devices,
                   DispatcherOptions options) {
  auto made = std::make_unique<Implementation>(std::move(options));
  SANDWICH_RETURN_IF_ERROR(made->begin(std::move(devices)));
  return std::unique_ptr<Dispatcher>(new Dispatcher(std::move(made)));
}

QueryTicket Dispatcher::submit(EmbeddingQuery query, QueryCallback callback) {
  return QueryTicket(
      implementation->submit(std::move(query), std::move(callback)));
}

bool Dispatcher::cancel(const QueryTicket &ticket) {
  const std::shared_ptr<QueryRecord> record = ticket.record.lock();
  return record && implementation->cancel(record);
}

double Dispatcher::retryAfterSeconds() const {
  return implementation->retryAfterSeconds();
}

Status Dispatcher::setDepth(size_t device, uint32_t depth) {
  return implementation->setDepth(device, depth);
}

DispatcherCounters Dispatcher::counters() const {
  return implementation->counters();
}
