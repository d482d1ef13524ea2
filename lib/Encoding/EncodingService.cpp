//===- EncodingService.cpp - Batches of texts -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/EncodingService.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;
using Clock = std::chrono::steady_clock;

EncodingService::EncodingService(std::unique_ptr<EncoderEngine> engine,
                                 const EncodingServiceOptions &options)
    : encoder(std::move(engine)), options(options), thread([this] { run(); }) {}

EncodingService::~EncodingService() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

Status EncodingService::submit(std::vector<EncodingRequest> requests) {
  uint64_t tokens = 0;
  for (const EncodingRequest &request : requests) {
    SANDWICH_RETURN_IF_ERROR(encoder->check({request.ids, request.types}));
    if (request.output == EncoderOutput::Tokens && encoder->classifies())
      return makeError(ErrorKind::InvalidArgument,
                       "the model scores texts, and has no vectors of tokens");
    tokens += request.ids.size();
  }
  {
    std::lock_guard lock(mutex);
    if (ends || drains)
      return makeError(ErrorKind::Unavailable, "the model is being unloaded");
    if (total.waitingTokens + tokens > options.waitingTokens)
      return makeError(ErrorKind::Overloaded, "there are ", tokens,
                       " tokens, and ", total.waitingTokens,
                       " are waiting already; at most ", options.waitingTokens,
                       " may");
    total.waitingTokens += tokens;
    total.waitingTexts += requests.size();
    std::ranges::move(requests, std::back_inserter(waiting));
  }
  changed.notify_one();
  return {};
}

EncodingCounts EncodingService::counts() const {
  std::lock_guard lock(mutex);
  return total;
}

/// The oldest text and those behind it that fit beside it, in order. Those
/// whose rows are of another kind wait for a batch of theirs.
std::vector<EncodingRequest> EncodingService::takeBatch() {
  const uint64_t most =
      options.batchTokens == 0
          ? encoder->maxTokens()
          : std::min(options.batchTokens, encoder->maxTokens());
  std::vector<EncodingRequest> batch;
  uint64_t tokens = 0;
  const EncoderOutput output = waiting.front().output;
  for (auto request = waiting.begin(); request != waiting.end();) {
    if (request->output != output) {
      ++request;
      continue;
    }
    // One text fits always.
    if (!batch.empty() && (batch.size() == encoder->maxTexts() ||
                           tokens + request->ids.size() > most))
      break;
    tokens += request->ids.size();
    batch.push_back(std::move(*request));
    request = waiting.erase(request);
  }
  total.waitingTokens -= tokens;
  total.waitingTexts -= batch.size();
  total.runningTexts = batch.size();
  return batch;
}

void EncodingService::compute(std::vector<EncodingRequest> batch) {
  const Clock::time_point begin = Clock::now();
  std::erase_if(batch, [&](EncodingRequest &request) {
    if (request.cancelled && *request.cancelled)
      request.completion(
          makeError(ErrorKind::Cancelled, "nobody wants the text any more"));
    else if (request.deadline && *request.deadline <= begin)
      request.completion(makeError(ErrorKind::DeadlineExceeded,
                                   "the text waited longer than it was to"));
    else
      return false;
    return true;
  });
  if (batch.empty())
    return;
  std::vector<EncoderInput> inputs;
  uint64_t tokens = 0;
  for (const EncodingRequest &request : batch) {
    inputs.push_back({request.ids, request.types});
    tokens += request.ids.size();
  }
  Result<std::span<const float>> rows =
      encoder->run(inputs, batch.front().output);
  const std::chrono::duration<double> took = Clock::now() - begin;
  {
    std::lock_guard lock(mutex);
    ++total.batches;
    total.texts += batch.size();
    total.tokens += tokens;
    total.seconds += took.count();
  }
  std::span<const float> rest = rows ? *rows : std::span<const float>();
  for (EncodingRequest &request : batch) {
    if (!rows) {
      request.completion(rows.error());
      continue;
    }
    const uint64_t count =
        request.output == EncoderOutput::Tokens ? request.ids.size() : 1;
    std::vector<float> own(
        rest.begin(),
        rest.begin() + static_cast<std::ptrdiff_t>(count * encoder->columns()));
    rest = rest.subspan(own.size());
    if (std::ranges::all_of(own,
                            [](float value) { return std::isfinite(value); }))
      request.completion(std::move(own));
    else
      request.completion(makeError(ErrorKind::Internal,
                                   "the model computed no finite number"));
  }
}

bool EncodingService::drainWithin(double seconds) {
  std::unique_lock lock(mutex);
  drains = true;
  return idle.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return waiting.empty() && total.runningTexts == 0;
  });
}

void EncodingService::run() {
  for (;;) {
    std::vector<EncodingRequest> batch;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ends || !waiting.empty(); });
      if (ends)
        break;
      batch = takeBatch();
    }
    compute(std::move(batch));
    {
      std::lock_guard lock(mutex);
      total.runningTexts = 0;
    }
    idle.notify_all();
  }
  // Nobody adds to it any more.
  for (EncodingRequest &request : waiting)
    request.completion(
        makeError(ErrorKind::Unavailable, "the model is being unloaded"));
}
