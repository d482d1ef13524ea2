//===- Sampler.cpp - From logits to a token -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Generation/Sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sandwich;

Status SamplingOptions::validate() const {
  if (!(temperature >= 0) || !std::isfinite(temperature))
    return makeError("temperature is ", temperature,
                     "; it must be a number of at least 0");
  if (!(topP > 0 && topP <= 1))
    return makeError("top-p is ", topP, "; it must be above 0 and at most 1");
  return {};
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float largest = -infinity;
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    // False for NaN as well.
    if (!(logits[i] < infinity))
      return makeError("the logit of token ", i, " is ", logits[i],
                       "; the model computed no finite number");
    if (logits[i] > largest) {
      largest = logits[i];
      best = static_cast<int32_t>(i);
    }
  }
  if (best < 0)
    return makeError("every logit is minus infinity; no token can be chosen");
  if (options.temperature == 0)
    return best;

  auto moreProbable = [](const Candidate &a, const Candidate &b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  candidates.clear();
  double total = 0;
  double scale = 1.0 / options.temperature;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -infinity)
      continue;
    double weight =
        std::exp((static_cast<double>(logits[i]) - largest) * scale);
    candidates.push_back({logits[i], static_cast<int32_t>(i), weight});
  }
  if (options.topK > 0 && options.topK < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + options.topK,
                     candidates.end(), moreProbable);
    candidates.resize(options.topK);
    // nth_element leaves an order that the standard does not fix.
    std::sort(candidates.begin(), candidates.end(), moreProbable);
  }
  for (const Candidate &candidate : candidates)
    total += candidate.weight;

  if (options.topP < 1) {
    // n tokens below (1 - p) / n of the total cannot sum up to 1 - p, so none
    // of them is needed to reach p; leaving them out first spares sorting a
    // whole vocabulary.
    double negligible = (1.0 - static_cast<double>(options.topP)) * total /
                        static_cast<double>(candidates.size());
    std::erase_if(candidates, [&](const Candidate &candidate) {
      return candidate.weight < negligible && candidate.token != best;
    });
    std::sort(candidates.begin(), candidates.end(), moreProbable);
    double wanted = static_cast<double>(options.topP) * total;
    double reached = 0;
    size_t kept = 0;
    while (kept < candidates.size() && reached < wanted)
      reached += candidates[kept++].weight;
    candidates.resize(std::max<size_t>(kept, 1));
    total = std::max(reached, candidates.front().weight);
  }

  // 53 random bits make a double in [0, 1).
  double draw = static_cast<double>(generator() >> 11) * 0x1p-53 * total;
  for (const Candidate &candidate : candidates) {
    draw -= candidate.weight;
    if (draw < 0)
      return candidate.token;
  }
  // Rounding left a rest; the last token with any weight takes it.
  for (auto candidate = candidates.rbegin(); candidate != candidates.rend();
       ++candidate)
    if (candidate->weight > 0)
      return candidate->token;
  return best;
}
