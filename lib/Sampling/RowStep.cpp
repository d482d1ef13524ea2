//===- RowStep.cpp - One row on its way to a token ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowStep.h"

#include "LogProbabilities.h"
#include "TokenChoice.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace sandwich;

static const LogitAdjustments &noAdjustments() {
  static const LogitAdjustments none(SamplingOptions(), {});
  return none;
}

/// The scale of the sums of weights that choosing the token of `row` needs; 0
/// where it needs none.
static double scaleOfChoice(const SamplingRow &row,
                            const SamplingOptions &options) {
  return row.draw ? 0 : scaleOfChoice(options);
}

RowStep::RowStep(const SamplingRow &row)
    : row(row), changed(row.logits, row.sampler->adjustments,
                        ::scaleOfChoice(row, row.sampler->options),
                        /*rough=*/false, row.allowed) {
  const bool same = row.sampler->adjustments.empty() && row.allowed.empty() &&
                    ::scaleOfChoice(row, row.sampler->options) == 1;
  if (row.sampler->options.logProbabilities && !same)
    model.emplace(row.logits, noAdjustments(), 1, /*rough=*/true);
}

const LogitBlocks *RowStep::rowOfProbabilities() const {
  if (!row.sampler->options.logProbabilities)
    return nullptr;
  return model ? &*model : &changed;
}

void RowStep::scan(size_t first, size_t last) {
  // Little enough that the second scan finds it in the L1 cache.
  constexpr size_t atOnce = 16;
  for (; first < last; first += atOnce) {
    const size_t end = std::min(first + atOnce, last);
    changed.scan(first, end);
    if (model)
      model->scan(first, end);
  }
}

Error RowStep::describeNoToken() const {
  if (row.allowed.empty())
    return makeError(ErrorKind::Internal,
                     "every logit is minus infinity; no token can be chosen");
  if (std::ranges::count(row.allowed, uint64_t{0}) == std::ssize(row.allowed))
    return makeError(ErrorKind::Internal, "the constraint allows no token");
  return makeError(ErrorKind::Internal,
                   "the logits of all tokens that the constraint allows are "
                   "minus infinity; no token can be chosen");
}

Result<int32_t> RowStep::drawByKernel(double place) const {
  // Kept by the thread, as new memory of a vocabulary is touched page by page.
  thread_local std::vector<float> copy, weights;
  const size_t tokens = row.logits.size();
  std::span<const float> logits = row.logits;
  if (!row.sampler->adjustments.empty() || !row.allowed.empty()) {
    copy.resize(tokens);
    changed.copyTo(copy);
    logits = copy;
  }
  weights.resize(tokens);
  const int32_t token =
      (*row.draw)({logits, weights, row.sampler->options, place});
  if (token < 0 || static_cast<size_t>(token) >= tokens)
    return makeError(ErrorKind::Internal,
                     "the model's sampling kernel drew token ", token,
                     ", outside the vocabulary of ", tokens);
  if (logits[static_cast<size_t>(token)] ==
      -std::numeric_limits<float>::infinity())
    return makeError(ErrorKind::Internal,
                     "the model's sampling kernel drew token ", token,
                     ", which is barred");
  return token;
}

Result<int32_t> RowStep::drawToken(double place) const {
  if (row.draw)
    return drawByKernel(place);
  return TokenDraw(changed, row.sampler->options).draw(place);
}

Result<SampledToken> RowStep::finish() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float largest = changed.largestLogit();
  if (largest == infinity)
    return changed.describeBadLogit();
  if (largest == -infinity)
    return describeNoToken();
  SampledToken sampled;
  Sampler &sampler = *row.sampler;
  if (sampler.options.temperature == 0) {
    sampled.token = mostProbableToken(changed);
  } else {
    // 53 random bits make a double in [0, 1).
    const double place =
        static_cast<double>(sampler.generator() >> 11) * 0x1p-53;
    SANDWICH_ASSIGN_OR_RETURN(sampled.token, drawToken(place));
  }
  if (const LogitBlocks *scanned = rowOfProbabilities()) {
    const LogProbabilities probabilities(*scanned);
    sampled.logProbability = probabilities.of(sampled.token);
    sampled.top = probabilities.top(*sampler.options.logProbabilities);
  }
  return sampled;
}
