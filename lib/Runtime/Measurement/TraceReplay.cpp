//===- TraceReplay.cpp - Serving a trace in real time ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/TraceReplay.h"

#include "sandwich/Runtime/Measurement/Benchmark.h"
#include "sandwich/Support/ElapsedTime.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>

using namespace sandwich;

/// Tokens that the KV cache holds once the request is done.
static uint64_t tokensOf(const ServingRequest &request) {
  return static_cast<uint64_t>(request.promptTokens) +
         static_cast<uint64_t>(std::max<int64_t>(request.outputTokens, 1)) - 1;
}

uint64_t sandwich::replayTokens(const ServingTrace &trace, uint64_t maxBatch) {
  std::vector<uint64_t> tokens;
  std::ranges::transform(trace, std::back_inserter(tokens), tokensOf);
  std::ranges::sort(tokens, std::greater());
  tokens.resize(std::min<uint64_t>(tokens.size(), maxBatch));
  return std::accumulate(tokens.begin(), tokens.end(), uint64_t{0});
}

void sandwich::makeRoomFor(const ServingTrace &trace,
                           SchedulerOptions &options) {
  uint64_t tokens = 0;
  for (const ServingRequest &request : trace)
    tokens += static_cast<uint64_t>(request.promptTokens);
  options.maxWaitingRequests =
      std::max<uint64_t>(options.maxWaitingRequests, trace.size());
  options.maxWaitingTokens = std::max(options.maxWaitingTokens, tokens);
}

namespace {
using Clock = std::chrono::steady_clock;

/// One run of a trace.
class Replay {
public:
  Replay(Service &service, const ServingTrace &trace,
         const TraceReplayOptions &options)
      : service(service), trace(trace), options(options),
        firstText(countRequests(service)), served(trace.size()),
        states(trace.size(), State::Coming), ids(trace.size()) {}

  Result<std::vector<ServedRequest>> run();

private:
  enum class State { Coming, UnderWay, Done };

  static uint64_t countRequests(Service &service) {
    const ServiceStatistics statistics = service.statistics();
    return statistics.requests + statistics.refusedRequests;
  }
  double now() const { return secondsSince(start); }
  bool stopped() const {
    return seenEnough || (options.stop && options.stop());
  }
  Status check() const;
  Status warmUp();
  Status submit(size_t index);
  /// Returns when `arrival` has come, or nobody is under way and there is none;
  /// false: stopped, or a request failed.
  bool waitFor(std::optional<double> arrival);
  /// Waits at most so long, and tells of the progress.
  void waitAtMost(double seconds);
  /// Shows the observer those that are done, and all before them.
  void observeDone();
  void cancelAll();

  Service &service;
  const ServingTrace &trace;
  const TraceReplayOptions &options;
  /// The service may have kept blocks of the texts before it.
  const uint64_t firstText;
  Clock::time_point start;
  /// Requests that the observer has got, and whether it wants no more.
  size_t observed = 0;
  bool seenEnough = false;

  std::mutex mutex;
  std::condition_variable ended;
  // Of all that follows.
  std::vector<ServedRequest> served;
  std::vector<State> states;
  std::vector<RequestId> ids;
  size_t underWay = 0;
  size_t done = 0;
  Status failure;
};
} // namespace

Status Replay::check() const {
  const uint64_t context = service.model().context_length();
  const uint64_t room =
      service.statistics().blockCount * SANDWICH_KV_BLOCK_TOKENS;
  for (size_t i = 0; i < trace.size(); ++i) {
    const uint64_t needed = tokensOf(trace[i]);
    if (needed > context)
      return makeError("request ", i + 1, " of the trace has ", needed,
                       " tokens; the model's context holds ", context);
    if (needed > room)
      return makeError("request ", i + 1, " of the trace has ", needed,
                       " tokens; the KV cache holds ", room);
  }
  return {};
}

static GenerationRequest
makeRequest(uint64_t vocabulary, const ServingRequest &request, uint64_t text) {
  GenerationRequest made;
  made.prompt = randomTokens(vocabulary,
                             static_cast<uint64_t>(request.promptTokens), text);
  made.maxTokens =
      static_cast<uint64_t>(std::max<int64_t>(request.outputTokens, 1));
  made.sampling.ignoreEndOfText = true;
  return made;
}

/// Touches pages and wakes threads before the clock starts.
Status Replay::warmUp() {
  ServingRequest first = trace.front();
  first.outputTokens = 1;
  Status status;
  bool over = false;
  Result<RequestId> id = service.submit(
      makeRequest(service.model().vocab_size(), first, firstText),
      {.onEnd = [&](const RequestEnd &end) {
        std::lock_guard lock(mutex);
        status = end.status;
        over = true;
        ended.notify_all();
      }});
  // With objectives that nobody can keep, there is nothing to warm up for.
  if (!id && id.error().kind == ErrorKind::Overloaded)
    return {};
  if (!id)
    return id.error();
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return over; });
  return status;
}

Status Replay::submit(size_t index) {
  ServedRequest &record = served[index];
  const ServingRequest &request = trace[index];
  GenerationRequest made =
      makeRequest(service.model().vocab_size(), request, firstText + 1 + index);
  GenerationCallbacks callbacks{
      [this, &record](const GeneratedToken &) {
        const double time = now();
        if (record.firstToken == 0)
          record.firstToken = time;
        else
          record.gaps.push_back(time - record.lastToken);
        record.lastToken = time;
      },
      [this, index](const RequestEnd &end) {
        std::lock_guard lock(mutex);
        --underWay;
        if (end.status) {
          states[index] = State::Done;
          ++done;
        } else if (failure && end.status.error().kind != ErrorKind::Cancelled) {
          failure = end.status;
        }
        ended.notify_all();
      }};
  {
    std::lock_guard lock(mutex);
    record.arrival = request.arrivalSeconds.value_or(now());
    record.promptTokens = static_cast<uint64_t>(request.promptTokens);
    record.outputTokens = static_cast<uint64_t>(request.outputTokens);
    states[index] = State::UnderWay;
    ++underWay;
  }
  Result<RequestId> id = service.submit(std::move(made), std::move(callbacks));
  std::lock_guard lock(mutex);
  if (id) {
    ids[index] = *id;
    return {};
  }
  --underWay;
  if (id.error().kind != ErrorKind::Overloaded)
    return id.error();
  record.refused = true;
  states[index] = State::Done;
  ++done;
  return {};
}

void Replay::waitAtMost(double seconds) {
  size_t count = 0;
  {
    // Short enough that who stops need not wait.
    constexpr double longest = 0.1;
    std::unique_lock lock(mutex);
    ended.wait_for(
        lock, std::chrono::duration<double>(std::clamp(seconds, 0.0, longest)));
    count = done;
  }
  if (options.progress)
    options.progress(count);
  observeDone();
}

void Replay::observeDone() {
  if (!options.observe)
    return;
  for (; !seenEnough && observed < trace.size(); ++observed) {
    {
      std::lock_guard lock(mutex);
      if (states[observed] != State::Done)
        return;
    }
    // Nobody changes it any more.
    seenEnough = !options.observe(served[observed]);
  }
}

bool Replay::waitFor(std::optional<double> arrival) {
  while (true) {
    if (stopped())
      return false;
    double left = arrival ? *arrival - now() : 1;
    {
      std::lock_guard lock(mutex);
      if (!failure)
        return false;
      if (arrival ? left <= 0 : underWay == 0)
        return true;
    }
    waitAtMost(left);
  }
}

void Replay::cancelAll() {
  std::vector<RequestId> rest;
  {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < trace.size(); ++i)
      if (states[i] == State::UnderWay)
        rest.push_back(ids[i]);
  }
  for (RequestId id : rest)
    (void)service.cancel(id);
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return underWay == 0; });
}

Result<std::vector<ServedRequest>> Replay::run() {
  SANDWICH_RETURN_IF_ERROR(check());
  SANDWICH_RETURN_IF_ERROR(warmUp());
  start = Clock::now();
  Status status;
  bool goesOn = true;
  for (size_t i = 0; i < trace.size() && goesOn && status; ++i) {
    goesOn = waitFor(trace[i].arrivalSeconds);
    if (goesOn)
      status = submit(i);
  }
  if (status && goesOn)
    (void)waitFor(std::nullopt);
  observeDone();
  cancelAll();
  if (options.progress)
    options.progress(done);
  SANDWICH_RETURN_IF_ERROR(status);
  SANDWICH_RETURN_IF_ERROR(failure);
  std::vector<ServedRequest> result;
  for (size_t i = 0; i < served.size(); ++i)
    if (states[i] == State::Done)
      result.push_back(served[i]);
  return result;
}

Result<std::vector<ServedRequest>>
sandwich::replayTrace(Service &service, const ServingTrace &trace,
                      const TraceReplayOptions &options) {
  if (trace.empty())
    return std::vector<ServedRequest>();
  return Replay(service, trace, options).run();
}
