//===- EncodingService.cpp - Batches of texts -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/EncodingService.h"

#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cmath>
#include <new>

using namespace sandwich;
using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<EncodingService>>
EncodingService::create(std::unique_ptr<EncoderEngine> engine,
                        const EncodingServiceOptions &options) {
  std::unique_ptr<EncodingService> service(
      new EncodingService(std::move(engine), options));
  SANDWICH_ASSIGN_OR_RETURN(
      service->thread,
      startThread("the service", [self = service.get()] { self->run(); }));
  return service;
}

EncodingService::~EncodingService() {
  {
    std::lock_guard lock(mutex);
    ends = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

Status EncodingService::submit(std::vector<EncodingRequest> requests) {
  uint64_t count = 0;
  for (const EncodingRequest &request : requests) {
    SANDWICH_RETURN_IF_ERROR(encoder->check({request.ids, request.types}));
    if (request.output == EncoderOutput::Tokens && encoder->classifies())
      return makeError(ErrorKind::InvalidArgument,
                       "the model scores texts, and has no vectors of tokens");
    count += request.ids.size();
  }
  if (count > options.waitingTokens)
    return makeError(ErrorKind::InvalidArgument, "there are ", count,
                     " tokens, and the queue holds ", options.waitingTokens);
  {
    std::lock_guard lock(mutex);
    if (ends || drains)
      return makeError(ErrorKind::Unavailable, "the model is being unloaded");
    if (total.waitingTokens + count > options.waitingTokens)
      return makeError(ErrorKind::Overloaded, "there are ", count,
                       " tokens, and ", total.waitingTokens,
                       " are waiting already; at most ", options.waitingTokens,
                       " may");
    total.waitingTokens += count;
    total.waitingTexts += requests.size();
    for (EncodingRequest &request : requests) {
      std::deque<Waiting> &queue = queueOf(request.output);
      queue.push_back({std::move(request), nextNumber++});
    }
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
  std::deque<Waiting> &queue =
      tokens.empty() ||
              (!texts.empty() && texts.front().number < tokens.front().number)
          ? texts
          : tokens;
  // One text fits always.
  size_t count = 0;
  uint64_t sum = 0;
  for (const Waiting &each : queue) {
    const uint64_t size = each.request.ids.size();
    if (count > 0 && (count == encoder->maxTexts() || sum + size > most))
      break;
    sum += size;
    ++count;
  }
  std::vector<EncodingRequest> batch;
  batch.reserve(count);
  for (; count > 0; --count) {
    batch.push_back(std::move(queue.front().request));
    queue.pop_front();
  }
  total.waitingTokens -= sum;
  total.waitingTexts -= batch.size();
  total.runningTexts = batch.size();
  return batch;
}

/// Tells `request` what became of it. Who is told must not throw; if it does
/// for want of memory, others are told all the same.
static void tell(EncodingRequest &request, Result<std::vector<float>> rows) {
  try {
    request.completion(std::move(rows));
  } catch (const std::exception &) {
  }
}

static Error outOfMemory() {
  return makeError(ErrorKind::Internal, "there is no memory for the results");
}

/// A text's share of `rest`, of `columns` for each row, which is taken from it.
static Result<std::vector<float>> takeRows(const EncodingRequest &request,
                                           std::span<const float> &rest,
                                           uint64_t columns) {
  const uint64_t count =
      request.output == EncoderOutput::Tokens ? request.ids.size() : 1;
  const std::span<const float> own = rest.first(count * columns);
  rest = rest.subspan(own.size());
  if (!std::ranges::all_of(own,
                           [](float value) { return std::isfinite(value); }))
    return makeError(ErrorKind::Internal,
                     "the model computed no finite number");
  try {
    return std::vector<float>(own.begin(), own.end());
  } catch (const std::bad_alloc &) {
    return outOfMemory();
  }
}

void EncodingService::compute(std::vector<EncodingRequest> batch) {
  const Clock::time_point begin = Clock::now();
  std::erase_if(batch, [&](EncodingRequest &request) {
    if (request.cancelled && *request.cancelled)
      tell(request,
           makeError(ErrorKind::Cancelled, "nobody wants the text any more"));
    else if (request.deadline && *request.deadline <= begin)
      tell(request, makeError(ErrorKind::DeadlineExceeded,
                              "the text waited longer than it was to"));
    else
      return false;
    return true;
  });
  if (batch.empty())
    return;
  uint64_t sum = 0;
  auto compute = [&]() -> Result<std::span<const float>> {
    try {
      std::vector<EncoderInput> inputs;
      for (const EncodingRequest &request : batch) {
        inputs.push_back({request.ids, request.types});
        sum += request.ids.size();
      }
      return encoder->run(inputs, batch.front().output);
    } catch (const std::bad_alloc &) {
      return outOfMemory();
    }
  };
  const Result<std::span<const float>> rows = compute();
  const std::chrono::duration<double> took = Clock::now() - begin;
  {
    std::lock_guard lock(mutex);
    ++total.batches;
    total.texts += batch.size();
    total.tokens += sum;
    total.seconds += took.count();
  }
  std::span<const float> rest = rows ? *rows : std::span<const float>();
  for (EncodingRequest &request : batch)
    tell(request, rows ? takeRows(request, rest, encoder->columns())
                       : Result<std::vector<float>>(rows.error()));
}

bool EncodingService::drainWithin(double seconds) {
  std::unique_lock lock(mutex);
  drains = true;
  return idle.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return total.waitingTexts == 0 && total.runningTexts == 0;
  });
}

void EncodingService::run() {
  for (;;) {
    std::vector<EncodingRequest> batch;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ends || total.waitingTexts > 0; });
      if (ends)
        break;
      try {
        batch = takeBatch();
      } catch (const std::bad_alloc &) {
        // Nothing was taken; there may be memory again in a while.
        changed.wait_for(lock, std::chrono::milliseconds(10));
        continue;
      }
    }
    compute(std::move(batch));
    {
      std::lock_guard lock(mutex);
      total.runningTexts = 0;
    }
    idle.notify_all();
  }
  // Nobody adds to them any more.
  for (std::deque<Waiting> *queue : {&texts, &tokens})
    for (Waiting &each : *queue)
      tell(each.request,
           makeError(ErrorKind::Unavailable, "the model is being unloaded"));
}
