//===- LogitAdjustments.cpp - What a request changes of logits ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/LogitAdjustments.h"

#include <algorithm>
#include <limits>

using namespace sandwich;

LogitAdjustments::LogitAdjustments(const SamplingOptions &options,
                                   std::span<const int32_t> endTokens)
    : minTokens(options.minTokens),
      repetitionPenalty(options.repetitionPenalty),
      frequencyPenalty(options.frequencyPenalty),
      presencePenalty(options.presencePenalty) {
  for (const auto &[token, bias] : options.logitBias)
    adjustments.push_back({.token = token, .bias = bias});
  if (minTokens > 0)
    for (int32_t token : endTokens)
      add(token).barred = true;
}

/// That of `token`, which may be new.
LogitAdjustments::Adjustment &LogitAdjustments::add(int32_t token) {
  auto place =
      std::ranges::lower_bound(adjustments, token, {}, &Adjustment::token);
  if (place == adjustments.end() || place->token != token)
    place = adjustments.insert(place, {.token = token});
  return *place;
}

void LogitAdjustments::addPrompt(std::span<const int32_t> tokens) {
  if (repetitionPenalty == 1)
    return;
  std::vector<Adjustment> added;
  for (int32_t token : tokens)
    added.push_back({.token = token, .seen = true});
  std::ranges::sort(added, {}, &Adjustment::token);
  const size_t before = adjustments.size();
  for (Adjustment &each : adjustments)
    each.seen |=
        std::ranges::binary_search(added, each.token, {}, &Adjustment::token);
  adjustments.insert(adjustments.end(), added.begin(), added.end());
  std::ranges::inplace_merge(
      adjustments, adjustments.begin() + static_cast<std::ptrdiff_t>(before),
      {}, &Adjustment::token);
  // Of equal tokens, merging puts first the one that was there.
  auto repeated = std::ranges::unique(adjustments, {}, &Adjustment::token);
  adjustments.erase(repeated.begin(), repeated.end());
}

void LogitAdjustments::addOutput(int32_t token) {
  if (++outputs == minTokens) {
    for (Adjustment &each : adjustments)
      each.barred = false;
    std::erase_if(adjustments, [](const Adjustment &each) {
      return each.bias == 0 && !each.seen;
    });
  }
  if (repetitionPenalty == 1 && frequencyPenalty == 0 && presencePenalty == 0)
    return;
  Adjustment &adjustment = add(token);
  adjustment.seen = true;
  ++adjustment.outputs;
}

std::span<const LogitAdjustments::Adjustment>
LogitAdjustments::ofTokens(size_t first, size_t count) const {
  // Compared as they are, so that no negative token is among them.
  auto begin = std::ranges::lower_bound(
      adjustments, static_cast<int64_t>(first), {}, &Adjustment::token);
  auto end = std::ranges::lower_bound(begin, adjustments.end(),
                                      static_cast<int64_t>(first + count), {},
                                      &Adjustment::token);
  return {begin, end};
}

// The order and the roundings of vLLM's sampler.
float LogitAdjustments::apply(float logit, const Adjustment &adjustment) const {
  if (adjustment.barred)
    return -std::numeric_limits<float>::infinity();
  logit += adjustment.bias;
  if (!adjustment.seen)
    return logit;
  logit = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
  if (adjustment.outputs > 0) {
    logit -= frequencyPenalty * static_cast<float>(adjustment.outputs);
    logit -= presencePenalty;
  }
  return logit;
}
