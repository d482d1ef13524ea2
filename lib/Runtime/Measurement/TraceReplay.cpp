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
#include <list>
#include <numeric>
#include <thread>

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

namespace {
using Clock = std::chrono::steady_clock;

/// One run of a trace.
class Replay {
public:
  Replay(Engine &engine, const ServingTrace &trace,
         const TraceReplayOptions &options)
      : engine(engine), trace(trace), options(options),
        maxBatch(std::min(options.maxBatch, engine.maxDecodeSequences())),
        freeBlocks(engine.kvCache().blockCount()), served(trace.size()),
        done(trace.size()) {}

  Result<std::vector<ServedRequest>> run();

private:
  struct Generating {
    size_t request;
    Sequence sequence;
    int64_t left;
  };

  double now() const { return secondsSince(start); }
  bool stopped() const { return options.stop && options.stop(); }
  static uint64_t blocksOf(const ServingRequest &request) {
    return KVCache::blocksFor(tokensOf(request));
  }
  Status check() const;
  bool nextCanStart() const;
  Status startNext();
  Status step();
  void finish(size_t request, double lastToken);

  Engine &engine;
  const ServingTrace &trace;
  const TraceReplayOptions &options;
  const uint64_t maxBatch;
  uint64_t freeBlocks;
  std::vector<ServedRequest> served;
  std::vector<bool> done;
  size_t doneCount = 0;
  size_t next = 0;
  /// A list, as decode steps point at the sequences.
  std::list<Generating> generating;
  std::vector<int32_t> tokens;
  std::vector<DecodeToken> batch;
  Clock::time_point start;
};
} // namespace

Status Replay::check() const {
  for (size_t i = 0; i < trace.size(); ++i) {
    const uint64_t needed = tokensOf(trace[i]);
    if (needed > engine.contextLength())
      return makeError("request ", i + 1, " of the trace has ", needed,
                       " tokens; the model's context holds ",
                       engine.contextLength());
    if (blocksOf(trace[i]) > freeBlocks)
      return makeError("request ", i + 1, " of the trace has ", needed,
                       " tokens; the KV cache holds ",
                       freeBlocks * SANDWICH_KV_BLOCK_TOKENS);
  }
  return {};
}

/// Whether the next request is there, and there is room for all of it.
bool Replay::nextCanStart() const {
  if (next == trace.size() || generating.size() >= maxBatch ||
      blocksOf(trace[next]) > freeBlocks)
    return false;
  const std::optional<double> &arrival = trace[next].arrivalSeconds;
  return arrival ? *arrival <= now() : generating.empty();
}

void Replay::finish(size_t request, double lastToken) {
  served[request].lastToken = lastToken;
  freeBlocks += blocksOf(trace[request]);
  done[request] = true;
  ++doneCount;
}

/// Runs the next request's prompt, whose logits give its first token.
Status Replay::startNext() {
  const ServingRequest &request = trace[next];
  ServedRequest &record = served[next];
  record.arrival = request.arrivalSeconds.value_or(now());
  record.promptTokens = static_cast<uint64_t>(request.promptTokens);
  record.outputTokens = static_cast<uint64_t>(request.outputTokens);
  freeBlocks -= blocksOf(request);
  Sequence sequence(engine);
  SANDWICH_RETURN_IF_ERROR(engine.feed(
      sequence, std::span(tokens).first(record.promptTokens), LogitRows::Last));
  record.firstToken = now();
  if (request.outputTokens > 1)
    generating.push_back({next, std::move(sequence), request.outputTokens - 1});
  else
    finish(next, record.firstToken);
  ++next;
  return {};
}

/// One token more for everybody who generates.
Status Replay::step() {
  batch.clear();
  for (Generating &each : generating)
    batch.push_back(
        {&each.sequence, tokens[each.sequence.length() % tokens.size()]});
  SANDWICH_RETURN_IF_ERROR(engine.decode(batch, {}));
  const double time = now();
  for (auto each = generating.begin(); each != generating.end();) {
    if (--each->left > 0) {
      ++each;
      continue;
    }
    finish(each->request, time);
    each = generating.erase(each);
  }
  return {};
}

Result<std::vector<ServedRequest>> Replay::run() {
  SANDWICH_RETURN_IF_ERROR(check());
  int64_t longest = 1;
  for (const ServingRequest &request : trace)
    longest = std::max(longest, request.promptTokens);
  tokens = randomTokens(engine, static_cast<uint64_t>(longest));
  {
    // Pages are touched and threads woken before the clock starts.
    Sequence sequence(engine);
    SANDWICH_RETURN_IF_ERROR(
        engine.feed(sequence,
                    std::span(tokens).first(
                        static_cast<size_t>(trace.front().promptTokens)),
                    LogitRows::Last));
  }
  start = Clock::now();
  while (doneCount < trace.size() && !stopped()) {
    if (nextCanStart()) {
      SANDWICH_RETURN_IF_ERROR(startNext());
    } else if (!generating.empty()) {
      SANDWICH_RETURN_IF_ERROR(step());
    } else {
      // Short enough that who stops need not wait.
      constexpr double longestSleep = 0.1;
      const double left = *trace[next].arrivalSeconds - now();
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(left, 0.0, longestSleep)));
    }
    if (options.progress)
      options.progress(doneCount);
  }
  std::vector<ServedRequest> result;
  for (size_t i = 0; i < served.size(); ++i)
    if (done[i])
      result.push_back(served[i]);
  return result;
}

Result<std::vector<ServedRequest>>
sandwich::replayTrace(Engine &engine, const ServingTrace &trace,
                      const TraceReplayOptions &options) {
  if (trace.empty())
    return std::vector<ServedRequest>();
  if (options.maxBatch == 0)
    return makeError("a batch of 0 sequences serves nobody");
  return Replay(engine, trace, options).run();
}
