//===- StepOutput.cpp - What a step's logits make of its texts ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepOutput.h"

#include "TeamTasks.h"

#include <algorithm>
#include <optional>
#include <utility>

using namespace sandwich;

/// Stands for the token that a request failed with.
static constexpr int32_t noToken = -1;

StepOutput::StepOutput(const StepPlan &plan, const LiveRequests &live) {
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const StepSegment &segment = plan.segments[i];
    const std::shared_ptr<LiveRequest> &request = live.at(segment.request);
    uint64_t position = segment.sequence->length();
    for (int32_t token : segment.scored)
      scores.push_back({segment.request, request, {++position, {token}}});
    for (uint32_t sample = 0; sample < segment.samples; ++sample)
      rows.push_back({i, segment.request, request, segment.text + sample});
  }
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// What may help where logits are no numbers.
static const char *adviceOnRange(const Engine &engine) {
  return engine.artifact().manifest().kv_cache().dtype() == "f16"
             ? "; keys and values beyond 65504 are infinite in its KV cache of "
               "f16: compile it with --kv-dtype=bf16"
             : "";
}

/// The row `row` of the logits of the segment `segment`.
static std::span<const float> rowOf(const StepResult &result, size_t segment,
                                    uint64_t row, uint64_t vocabulary) {
  return result.logits.subspan((result.firstRows[segment] + row) * vocabulary,
                               vocabulary);
}

/// The tokens that `texts` may get next.
static std::vector<Result<std::span<const uint64_t>>>
findAllowed(std::span<LiveText *const> texts, const ParallelFor &parallelFor) {
  std::vector<Result<std::span<const uint64_t>>> allowed(
      texts.size(), std::span<const uint64_t>());
  std::vector<size_t> constrained;
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i]->isConstrained())
      constrained.push_back(i);
  if (!constrained.empty())
    parallelFor(constrained.size(), [&](size_t index) {
      const size_t i = constrained[index];
      allowed[i] = texts[i]->allowedTokens();
    });
  return allowed;
}

/// What draws tokens in the place of the sampler's definition: nothing, or the
/// `kernel` of a model.
static std::optional<DrawToken> drawWith(SandwichSamplingFunction kernel) {
  if (!kernel)
    return std::nullopt;
  return [kernel](const DrawInput &input) {
    const SamplingOptions &options = input.options;
    // What it does not write is none.
    int32_t token = noToken;
    const SandwichSampling sampling = {
        .logits = input.logits.data(),
        .weights = input.weights.data(),
        .token = &token,
        .place = input.place,
        .temperature = options.temperature,
        .top_p = options.topP,
        .min_p = options.minP,
        .top_k = static_cast<int32_t>(
            std::min<uint64_t>(options.topK, input.logits.size()))};
    kernel(&sampling);
    return token;
  };
}

/// A token for each of `texts` from its row of logits, drawn by `draw` if that
/// is not null.
static std::vector<Result<SampledToken>>
sampleTexts(std::span<LiveText *const> texts,
            std::span<const std::span<const float>> logits,
            const DrawToken *draw, PhaseTeam &team) {
  const ParallelFor parallelFor = parallelOn(team);
  const auto allowed = findAllowed(texts, parallelFor);
  std::vector<Result<SampledToken>> results(texts.size(), SampledToken());
  std::vector<SamplingRow> sampled;
  std::vector<size_t> places;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!allowed[i]) {
      results[i] = allowed[i].error();
      continue;
    }
    sampled.push_back({&texts[i]->sampler(), logits[i], *allowed[i], draw});
    places.push_back(i);
  }
  std::vector<Result<SampledToken>> tokens =
      sampleBatch(sampled, team.size(), parallelFor);
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
                 row.liveText().follow(*std::move(sampled))) {
    row.tokens.push_back(*std::move(followed));
    return;
  } else {
    failure = followed.error();
  }
  // The other requests go on.
  row.live->failure = std::move(failure);
  row.tokens.push_back({row.text, {noToken}, {}, FinishReason::Stopped});
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

void StepOutput::sample(const StepPlan &plan, const StepResult &result,
                        Engine &engine) {
  // Those that are to get another token: where tokens are proposed, the texts
  // go on from row to row, each by itself.
  std::vector<Row *> going;
  going.reserve(rows.size());
  for (Row &row : rows)
    going.push_back(&row);
  const std::optional<DrawToken> draw = drawWith(engine.sampling());
  while (!going.empty()) {
    std::vector<LiveText *> texts;
    std::vector<std::span<const float>> logits;
    for (const Row *row : going) {
      const StepSegment &segment = plan.segments[row->segment];
      const uint64_t place =
          segment.proposed > 0 ? row->tokens.size() : segment.rows() - 1;
      texts.push_back(&row->liveText());
      logits.push_back(rowOf(result, row->segment, place, engine.vocabSize()));
    }
    std::vector<Result<SampledToken>> sampled = sampleTexts(
        texts, logits, draw ? &*draw : nullptr, engine.team(PhaseKind::Decode));
    std::vector<Row *> next;
    for (size_t i = 0; i < going.size(); ++i) {
      Row &row = *going[i];
      take(row, std::move(sampled[i]), engine);
      const StepSegment &segment = plan.segments[row.segment];
      const size_t count = row.tokens.size();
      const GeneratedToken &last = row.tokens.back();
      if (count <= segment.proposed && !last.finish &&
          last.token.token == segment.tokens[count])
        next.push_back(&row);
    }
    going = std::move(next);
  }
}

void StepOutput::choose(const StepPlan &plan, const StepResult &result,
                        Engine &engine) {
  score(plan, result, engine);
  sample(plan, result, engine);
}

//===----------------------------------------------------------------------===//
// Telling
//===----------------------------------------------------------------------===//

std::vector<ChosenToken> StepOutput::chosen() const {
  std::vector<ChosenToken> tokens;
  for (const Row &row : rows)
    for (const GeneratedToken &each : row.tokens)
      tokens.push_back({each.token.token, each.finish});
  return tokens;
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

void StepOutput::tellScores(const StepEvents &events) {
  size_t next = 0;
  for (const ScoreEvent &event : events.scores) {
    while (scores[next].request != event.request)
      ++next;
    for (uint64_t i = 0; i < event.count; ++i, ++next) {
      const GenerationCallbacks &callbacks = scores[next].live->callbacks;
      if (scores[next].live->failure && callbacks.onPromptToken)
        callbacks.onPromptToken(scores[next].scored);
    }
  }
}

void StepOutput::tell(const StepEvents &events) {
  // The scheduler tells nothing of requests that were cancelled meanwhile, and
  // all tokens of the others.
  tellScores(events);
  size_t next = 0, told = 0;
  for (const TokenEvent &event : events.tokens) {
    while (told == rows[next].tokens.size() ||
           rows[next].request != event.request ||
           rows[next].text != event.text) {
      ++next;
      told = 0;
    }
    Row &row = rows[next];
    GeneratedToken &token = row.tokens[told++];
    if (token.token.token == noToken)
      continue;
    token.finish = event.finish;
    if (event.finish)
      row.liveText().finishPiece(*event.finish, token.piece);
    if (row.live->callbacks.onToken)
      row.live->callbacks.onToken(token);
  }
}

void StepOutput::clear() {
  rows.clear();
  scores.clear();
}
