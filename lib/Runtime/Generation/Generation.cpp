//===- Generation.cpp - Continuing a text ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Generation/Generation.h"

#include <algorithm>
#include <chrono>
#include <limits>

using namespace sandwich;

Result<std::optional<Tokenizer>>
sandwich::loadTokenizer(const Artifact &artifact) {
  std::optional<std::string_view> text = artifact.file(artifact::tokenizerFile);
  if (!text)
    return std::optional<Tokenizer>();
  Result<Tokenizer> tokenizer =
      Tokenizer::fromText(*text, artifact.file(artifact::tokenizerConfigFile));
  if (!tokenizer)
    return tokenizer.error().inContext(artifact.path() + "/" +
                                       artifact::tokenizerFile);
  return std::optional<Tokenizer>(std::move(*tokenizer));
}

Status sandwich::checkPromptLength(const proto::ModelConfiguration &model,
                                   uint64_t tokens) {
  if (tokens > model.context_length())
    return makeError("the prompt of ", tokens,
                     " tokens is longer than the model's context of ",
                     model.context_length(), " tokens; shorten it");
  return {};
}

Status sandwich::checkLogits(std::span<const float> logits, uint64_t position,
                             uint64_t vocabSize) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // False for NaN as well.
  auto bad = std::ranges::find_if_not(
      logits, [](float logit) { return logit < infinity; });
  if (bad == logits.end())
    return {};
  const auto index = static_cast<uint64_t>(bad - logits.begin());
  return makeError("the logit of token ", index % vocabSize, " at position ",
                   position + index / vocabSize, " is ", *bad,
                   "; the model computed no finite number");
}

const char *sandwich::stopReasonName(StopReason reason) {
  switch (reason) {
  case StopReason::EndOfText:
    return "end-of-text";
  case StopReason::MaxTokens:
    return "max-tokens";
  case StopReason::ContextFull:
    return "context-full";
  case StopReason::CacheFull:
    return "cache-full";
  case StopReason::Stopped:
    return "stopped";
  }
  return "";
}

/// What may help where logits are no finite numbers.
static const char *adviceOnRange(const Engine &engine) {
  return engine.artifact().manifest().kv_cache().dtype() == "f16"
             ? "; keys and values beyond 65504 are infinite in its KV cache of "
               "f16: compile it with --kv-dtype=bf16"
             : "";
}

Result<GenerationStatistics> sandwich::generate(
    Engine &engine, Sequence &sequence, std::span<const int32_t> prompt,
    const GenerationOptions &options,
    const std::function<bool(int32_t token)> &onToken,
    const std::function<bool()> &stopRequested, std::vector<float> *logits) {
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  auto stopped = [&] { return stopRequested && stopRequested(); };
  SANDWICH_RETURN_IF_ERROR(options.sampling.validate());
  SANDWICH_RETURN_IF_ERROR(options.sampling.checkTokens(engine.vocabSize()));
  if (options.maxTokens == 0)
    return makeError("max-tokens is 0; it must be at least 1");
  if (prompt.empty())
    return makeError("the prompt is empty; give at least one token");
  // Before any step, so that a prompt too long costs no time.
  SANDWICH_RETURN_IF_ERROR(
      checkPromptLength(engine.model(), sequence.length() + prompt.size()));

  SANDWICH_RETURN_IF_ERROR(engine.checkTokens(prompt));

  std::vector<int32_t> endTokens;
  if (!options.sampling.ignoreEndOfText)
    endTokens.assign(engine.model().eos_token_ids().begin(),
                     engine.model().eos_token_ids().end());
  Sampler sampler(options.sampling, endTokens);
  sampler.observePrompt(prompt);
  GenerationStatistics statistics;
  statistics.promptTokens = prompt.size();
  int32_t token = -1;
  auto sample = [&](std::span<const float> row, uint64_t, uint64_t) -> Status {
    if (logits)
      logits->assign(row.begin(), row.end());
    Status valid = checkLogits(row, sequence.length() - 1, engine.vocabSize());
    if (!valid)
      return makeError(valid.error().message, adviceOnRange(engine));
    SANDWICH_ASSIGN_OR_RETURN(SampledToken sampled, sampler.sample(row));
    token = sampled.token;
    sampler.accept(token);
    return {};
  };

  Clock::time_point start = Clock::now();
  for (size_t first = 0; first < prompt.size();) {
    if (stopped()) {
      statistics.stopReason = StopReason::Stopped;
      return statistics;
    }
    size_t count = std::min<size_t>(engine.limits(PhaseKind::Prefill).tokens,
                                    prompt.size() - first);
    bool last = first + count == prompt.size();
    SANDWICH_RETURN_IF_ERROR(
        engine.feed(sequence, prompt.subspan(first, count),
                    last ? LogitRows::Last : LogitRows::None, sample));
    if (logits && !last)
      logits->clear();
    first += count;
  }
  Clock::time_point firstToken = Clock::now();
  Clock::time_point lastToken = firstToken;
  statistics.timeToFirstTokenMs = milliseconds(firstToken - start);

  while (true) {
    if (std::ranges::find(endTokens, token) != endTokens.end()) {
      statistics.stopReason = StopReason::EndOfText;
      break;
    }
    statistics.tokens.push_back(token);
    if ((onToken && !onToken(token)) || stopped()) {
      statistics.stopReason = StopReason::Stopped;
      break;
    }
    if (statistics.tokens.size() == options.maxTokens) {
      statistics.stopReason = StopReason::MaxTokens;
      break;
    }
    if (sequence.length() == engine.contextLength()) {
      statistics.stopReason = StopReason::ContextFull;
      break;
    }
    if (!engine.hasRoom(sequence)) {
      statistics.stopReason = StopReason::CacheFull;
      break;
    }
    SANDWICH_RETURN_IF_ERROR(
        engine.feed(sequence, std::span(&statistics.tokens.back(), 1),
                    LogitRows::Last, sample));
    lastToken = Clock::now();
  }
  // Every token after the first took one decode step, an end-of-text token
  // too, though it is not among the tokens.
  size_t steps = statistics.tokens.size();
  if (statistics.stopReason != StopReason::EndOfText && steps > 0)
    --steps;
  if (steps > 0)
    statistics.timePerOutputTokenMs =
        milliseconds(lastToken - firstToken) / static_cast<double>(steps);
  return statistics;
}
