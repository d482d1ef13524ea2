//===- Perplexity.cpp - How well a model predicts a text ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/Perplexity.h"

#include "sandwich/Sampling/Sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>

using namespace sandwich;

std::vector<PerplexityWindow>
sandwich::perplexityWindows(size_t tokens, size_t window, size_t stride) {
  assert(window >= 2 && stride >= 1 && stride <= window);
  std::vector<PerplexityWindow> windows;
  // Nothing lets expect the first token.
  for (size_t begin = 0, firstScored = 1; firstScored < tokens;) {
    const size_t end = std::min(begin + window, tokens);
    windows.push_back({begin, end - begin, firstScored});
    firstScored = end;
    begin = std::min(begin + stride, firstScored - 1);
  }
  return windows;
}

double Perplexity::value() const { return std::exp(meanNats); }

namespace {

/// Sums of negative log-probabilities.
struct Sums {
  uint64_t count = 0;
  double sum = 0, squares = 0;
};

} // namespace

/// Adds those of the tokens behind the rows of `logits`, of which the first is
/// that of token `position`.
static Status score(std::span<const float> logits, size_t vocabSize,
                    std::span<const int32_t> tokens, size_t position,
                    size_t firstScored, Sums &sums) {
  std::vector<ScoringRow> rows;
  for (size_t row = 0; row < logits.size() / vocabSize; ++row)
    if (const size_t next = position + row + 1;
        next >= firstScored && next < tokens.size())
      rows.push_back({.logits = logits.subspan(row * vocabSize, vocabSize),
                      .token = tokens[next]});
  const std::vector<Result<SampledToken>> scored = scoreBatch(
      rows, [](size_t count, const std::function<void(size_t)> &task) {
        for (size_t i = 0; i < count; ++i)
          task(i);
      });
  for (const Result<SampledToken> &token : scored) {
    if (!token)
      return token.error();
    const double nats = -static_cast<double>(*token->logProbability);
    if (!std::isfinite(nats))
      return makeError("token ", token->token,
                       " of the text has a probability of 0");
    ++sums.count;
    sums.sum += nats;
    sums.squares += nats * nats;
  }
  return {};
}

Result<Perplexity> sandwich::measurePerplexity(
    Engine &engine, std::span<const int32_t> tokens,
    std::span<const PerplexityWindow> windows,
    const std::function<Status(uint64_t scored)> &progress) {
  Sums sums;
  for (const PerplexityWindow &window : windows) {
    Sequence sequence = engine.newSequence();
    SANDWICH_RETURN_IF_ERROR(engine.feed(
        sequence, tokens.subspan(window.begin, window.size), LogitRows::All,
        [&](std::span<const float> logits, uint64_t position,
            uint64_t) -> Status {
          SANDWICH_RETURN_IF_ERROR(
              score(logits, engine.vocabSize(),
                    tokens.first(window.begin + window.size),
                    window.begin + position, window.firstScored, sums));
          return progress(sums.count);
        }));
  }
  Perplexity result{.tokens = sums.count};
  const auto count = static_cast<double>(sums.count);
  result.meanNats = sums.sum / count;
  const double variance =
      std::max(sums.squares / count - result.meanNats * result.meanNats, 0.0);
  result.meanNatsError = std::sqrt(variance / count);
  return result;
}
