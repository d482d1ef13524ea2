//===- StepOutput.cpp - What a step's logits make of its texts ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepOutput.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

using namespace sandwich;

/// Runs `task(0)` to `task(count - 1)` on the threads of `team`.
static void runOnTeam(PhaseTeam &team, size_t count,
                      const std::function<void(size_t)> &task) {
  struct Tasks {
    size_t count;
    size_t threads;
    const std::function<void(size_t)> &task;
    std::mutex mutex = {};
    std::exception_ptr failure = {};
  } tasks{count, std::min<size_t>(count, team.size()), task};
  team.run(
      static_cast<unsigned>(tasks.threads),
      [](void *context, int32_t thread) {
        auto &own = *static_cast<Tasks *>(context);
        // No exception may leave a thread of the team.
        try {
          for (auto i = static_cast<size_t>(thread); i < own.count;
               i += own.threads)
            own.task(i);
        } catch (...) {
          std::lock_guard lock(own.mutex);
          own.failure = std::current_exception();
        }
      },
      &tasks);
  if (tasks.failure)
    std::rethrow_exception(tasks.failure);
}

/// What may help where logits are no numbers.
static const char *adviceOnRange(const Engine &engine) {
  return engine.artifact().manifest().kv_cache().dtype() == "f16"
             ? "; keys and values beyond 65504 are infinite in its KV cache of "
               "f16: compile it with --kv-dtype=bf16"
             : "";
}

StepOutput::StepOutput(const StepPlan &plan, const LiveRequests &live) {
  for (const StepSegment &segment : plan.segments) {
    const std::shared_ptr<LiveRequest> &request = live.at(segment.request);
    for (uint32_t i = 0; i < segment.samples; ++i)
      rows.push_back({segment.request,
                      request,
                      &request->texts[segment.text + i],
                      {segment.text + i, {}, {}, {}}});
  }
}

/// The tokens that `texts` may get next, found by the threads of `team`.
static std::vector<Result<std::span<const uint64_t>>>
findAllowed(std::span<LiveText *const> texts, PhaseTeam &team) {
  std::vector<Result<std::span<const uint64_t>>> allowed(
      texts.size(), std::span<const uint64_t>());
  std::vector<size_t> constrained;
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i]->isConstrained())
      constrained.push_back(i);
  if (!constrained.empty())
    runOnTeam(team, constrained.size(), [&](size_t index) {
      const size_t i = constrained[index];
      allowed[i] = texts[i]->allowedTokens();
    });
  return allowed;
}

/// A token for each of `texts` from its row of logits.
static std::vector<Result<SampledToken>>
sampleTexts(std::span<LiveText *const> texts,
            std::span<const std::span<const float>> logits, PhaseTeam &team) {
  const auto allowed = findAllowed(texts, team);
  std::vector<Result<SampledToken>> results(texts.size(), SampledToken());
  std::vector<SamplingRow> sampled;
  std::vector<size_t> places;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!allowed[i]) {
      results[i] = allowed[i].error();
      continue;
    }
    sampled.push_back({&texts[i]->sampler(), logits[i], *allowed[i]});
    places.push_back(i);
  }
  std::vector<Result<SampledToken>> tokens = sampleBatch(
      sampled, team.size(),
      [&team](size_t count, const std::function<void(size_t)> &task) {
        runOnTeam(team, count, task);
      });
  for (size_t i = 0; i < tokens.size(); ++i)
    results[places[i]] = std::move(tokens[i]);
  return results;
}

void StepOutput::take(Row &row, Result<SampledToken> sampled,
                      const Engine &engine) {
  Status failure;
  if (!sampled) {
    failure = makeError(sampled.error().kind, sampled.error().message,
                        adviceOnRange(engine));
  } else if (Result<GeneratedToken> followed =
                 row.text->follow(*std::move(sampled))) {
    row.generated = *std::move(followed);
    return;
  } else {
    failure = followed.error();
  }
  // The other requests go on.
  row.live->failure = std::move(failure);
  row.generated.finish = FinishReason::Stopped;
}

void StepOutput::choose(const StepPlan &plan, const StepResult &result,
                        Engine &engine) {
  const uint64_t vocabulary = engine.vocabSize();
  std::vector<LiveText *> texts;
  std::vector<std::span<const float>> logits;
  for (size_t i = 0; i < plan.segments.size(); ++i)
    for (uint32_t sample = 0; sample < plan.segments[i].samples; ++sample) {
      texts.push_back(rows[texts.size()].text);
      logits.push_back(
          result.logits.subspan(result.firstRows[i] * vocabulary, vocabulary));
    }
  std::vector<Result<SampledToken>> sampled =
      sampleTexts(texts, logits, engine.team(PhaseKind::Decode));
  for (size_t i = 0; i < rows.size(); ++i) {
    take(rows[i], std::move(sampled[i]), engine);
    chosenTokens.push_back(
        {rows[i].generated.token.token, rows[i].generated.finish});
  }
}

std::vector<RequestId> StepOutput::failed() const {
  std::vector<RequestId> requests;
  for (const Row &row : rows)
    if (!row.live->failure)
      requests.push_back(row.request);
  return requests;
}

void StepOutput::tell(const StepEvents &events) {
  // The scheduler tells no tokens of requests that were cancelled meanwhile.
  size_t next = 0;
  for (const TokenEvent &event : events.tokens) {
    while (rows[next].request != event.request ||
           rows[next].generated.text != event.text)
      ++next;
    Row &row = rows[next++];
    if (!row.live->failure)
      continue;
    GeneratedToken &token = row.generated;
    token.finish = event.finish;
    if (event.finish)
      row.text->finishPiece(*event.finish, token.piece);
    if (row.live->callbacks.onToken)
      row.live->callbacks.onToken(token);
  }
}

void StepOutput::clear() {
  rows.clear();
  chosenTokens.clear();
}
