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

using namespace sandwich;

static const LogitAdjustments &noAdjustments() {
  static const LogitAdjustments none(SamplingOptions(), {});
  return none;
}

RowStep::RowStep(Sampler &sampler, std::span<const float> logits,
                 std::span<const uint64_t> allowed)
    : sampler(sampler), allowed(allowed),
      changed(logits, sampler.adjustments, scaleOfChoice(sampler.options),
              /*rough=*/false, allowed) {
  const bool same = sampler.adjustments.empty() && allowed.empty() &&
                    scaleOfChoice(sampler.options) == 1;
  if (sampler.options.logProbabilities && !same)
    model.emplace(logits, noAdjustments(), 1, /*rough=*/true);
}

const LogitBlocks *RowStep::rowOfProbabilities() const {
  if (!sampler.options.logProbabilities)
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
  if (allowed.empty())
    return makeError(ErrorKind::Internal,
                     "every logit is minus infinity; no token can be chosen");
  if (std::ranges::count(allowed, uint64_t{0}) == std::ssize(allowed))
    return makeError(ErrorKind::Internal, "the constraint allows no token");
  return makeError(ErrorKind::Internal,
                   "the logits of all tokens that the constraint allows are "
                   "minus infinity; no token can be chosen");
}

Result<SampledToken> RowStep::finish() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float largest = changed.largestLogit();
  if (largest == infinity)
    return changed.describeBadLogit();
  if (largest == -infinity)
    return describeNoToken();
  SampledToken sampled;
  if (sampler.options.temperature == 0) {
    sampled.token = mostProbableToken(changed);
  } else {
    // 53 random bits make a double in [0, 1).
    const double place =
        static_cast<double>(sampler.generator() >> 11) * 0x1p-53;
    sampled.token = TokenDraw(changed, sampler.options).draw(place);
  }
  if (const LogitBlocks *row = rowOfProbabilities()) {
    const LogProbabilities probabilities(*row);
    sampled.logProbability = probabilities.of(sampled.token);
    sampled.top = probabilities.top(*sampler.options.logProbabilities);
  }
  return sampled;
}
