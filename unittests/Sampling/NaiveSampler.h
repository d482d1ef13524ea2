//===- NaiveSampler.h - The definition, as plainly as it goes ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SAMPLING_NAIVESAMPLER_H
#define SANDWICH_UNITTESTS_SAMPLING_NAIVESAMPLER_H

#include "sandwich/Sampling/SamplingOptions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace sandwich {

/// What Sampler.h defines, over whole rows and with full sorts. It shares no
/// code with the library.
struct NaiveSampler {
  SamplingOptions options;
  std::set<int32_t> endTokens = {};
  std::set<int32_t> prompt = {};
  std::map<int32_t, int> outputs = {};
  uint64_t outputCount = 0;
  /// One bit for each token; none: all are allowed.
  std::vector<bool> allowed = {};
  std::mt19937_64 generator{options.seed};

  void accept(int32_t token) {
    ++outputs[token];
    ++outputCount;
  }

  float adjust(float logit, int32_t token) const {
    if (!allowed.empty() && !allowed[static_cast<size_t>(token)])
      return -std::numeric_limits<float>::infinity();
    if (outputCount < options.minTokens && endTokens.contains(token))
      return -std::numeric_limits<float>::infinity();
    if (options.logitBias.contains(token))
      logit += options.logitBias.at(token);
    const bool isOutput = outputs.contains(token);
    if (isOutput || prompt.contains(token))
      logit = logit > 0 ? logit / options.repetitionPenalty
                        : logit * options.repetitionPenalty;
    if (isOutput) {
      const float frequency =
          options.frequencyPenalty * static_cast<float>(outputs.at(token));
      logit = logit - frequency;
      logit = logit - options.presencePenalty;
    }
    return logit;
  }

  struct Candidate {
    int32_t token;
    float logit;
    double weight;
  };

  static std::vector<Candidate> byProbability(std::vector<Candidate> tokens) {
    std::ranges::sort(tokens, [](const auto &a, const auto &b) {
      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    });
    return tokens;
  }

  static double sum(const std::vector<Candidate> &tokens) {
    double total = 0;
    for (const Candidate &each : tokens)
      total += each.weight;
    return total;
  }

  int32_t sample(const std::vector<float> &logits) {
    const double place = options.temperature == 0
                             ? 0
                             : static_cast<double>(generator() >> 11) * 0x1p-53;
    return sampleAt(place, logits);
  }

  int32_t sampleAt(double place, const std::vector<float> &logits) const {
    std::vector<Candidate> tokens;
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto token = static_cast<int32_t>(i);
      const float logit = adjust(logits[i], token);
      if (logit > -std::numeric_limits<float>::infinity())
        tokens.push_back({token, logit, 0});
    }
    const double largest = byProbability(tokens).front().logit;
    if (options.temperature == 0)
      return byProbability(tokens).front().token;
    const double scale = 1.0 / options.temperature;
    for (Candidate &each : tokens)
      each.weight = std::exp((each.logit - largest) * scale);
    std::erase_if(tokens, [&](const Candidate &each) {
      return each.weight < static_cast<double>(options.minP);
    });
    if (options.topK > 0 && options.topK < tokens.size()) {
      tokens = byProbability(tokens);
      tokens.resize(options.topK);
    }
    if (options.topP < 1) {
      const double wanted = static_cast<double>(options.topP) * sum(tokens);
      tokens = byProbability(tokens);
      size_t kept = 0;
      for (double reached = 0; kept < tokens.size() && reached < wanted; ++kept)
        reached += tokens[kept].weight;
      tokens.resize(std::max<size_t>(kept, 1));
    }
    double rest = place * sum(tokens);
    int32_t last = -1;
    for (const Candidate &each : tokens) {
      rest -= each.weight;
      if (rest < 0)
        return each.token;
      if (each.weight > 0)
        last = each.token;
    }
    return last;
  }
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_SAMPLING_NAIVESAMPLER_H
