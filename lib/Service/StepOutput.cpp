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

static ParallelFor parallelOn(PhaseTeam &team) {
  return [&team](size_t count, const std::function<void(size_t)> &task) {
    runOnTeam(team, count, task);
  };
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
    uint64_t position = segment.sequence->length();
    for (int32_t token : segment.scored)
      scores.push_back({segment.request, request, {++position, {token}}});
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
  std::vector<Result<SampledToken>> tokens =
      sampleBatch(sampled, team.size(), parallelOn(team));
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

/// The row `row` of the logits of the segment `segment`.
static std::span<const float> rowOf(const StepResult &result, size_t segment,
                                    uint64_t row, uint64_t vocabulary) {
  return result.logits.subspan((result.firstRows[segment] + row) * vocabulary,
                               vocabulary);
}

void StepOutput::score(const StepPlan &plan, const StepResult &result,
                       Engine &engine) {
  std::vector<ScoringRow> asked;
  for (size_t i = 0; i < plan.segments.size(); ++i)
    for (uint64_t row = 0; row < plan.segments[i].scored.size(); ++row)
      asked.push_back({rowOf(result, i, row, engine.vocabSize()),
                       plan.segments[i].scored[row],
                       scores[asked.size()].live->promptTop});
  std::vector<Result<SampledToken>> found =
      scoreBatch(asked, parallelOn(engine.team(PhaseKind::Decode)));
  for (size_t i = 0; i < scores.size(); ++i) {
    if (found[i])
      scores[i].scored.token = *std::move(found[i]);
    else if (scores[i].live->failure)
      scores[i].live->failure =
          makeError(found[i].error().kind, found[i].error().message,
                    adviceOnRange(engine));
  }
}

void StepOutput::choose(const StepPlan &plan, const StepResult &result,
                        Engine &engine) {
  score(plan, result, engine);
  sample(plan, result, engine);
}

void StepOutput::sample(const StepPlan &plan, const StepResult &result,
                        Engine &engine) {
  std::vector<LiveText *> texts;
  std::vector<std::span<const float>> logits;
  for (size_t i = 0; i < plan.segments.size(); ++i)
    for (uint32_t sample = 0; sample < plan.segments[i].samples; ++sample) {
      texts.push_back(rows[texts.size()].text);
      logits.push_back(
          rowOf(result, i, plan.segments[i].rows() - 1, engine.vocabSize()));
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
  for (const Score &score : scores)
    if (!score.live->failure)
      requests.push_back(score.request);
  return requests;
}

void StepOutput::tell(const StepEvents &events) {
  // The scheduler tells nothing of requests that were cancelled meanwhile.
  size_t score = 0;
  for (const ScoreEvent &event : events.scores) {
    while (scores[score].request != event.request)
      ++score;
    for (uint64_t i = 0; i < event.count; ++i, ++score) {
      const GenerationCallbacks &callbacks = scores[score].live->callbacks;
      if (scores[score].live->failure && callbacks.onPromptToken)
        callbacks.onPromptToken(scores[score].scored);
    }
  }
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
  scores.clear();
  chosenTokens.clear();
}
