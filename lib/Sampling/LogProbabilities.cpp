//===- LogProbabilities.cpp - How probable tokens are ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LogProbabilities.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

LogProbabilities::LogProbabilities(const LogitBlocks &row)
    : row(row),
      logOfSum(row.largestLogit() + std::log(row.sumsBefore().back())) {}

std::vector<TokenLogProbability> LogProbabilities::top(size_t count) const {
  std::vector<TokenLogProbability> tokens;
  if (count == 0)
    return tokens;
  // Logits first: distinct ones may have equal log-probabilities in float.
  row.visitAtLeast(row.thresholdOfRank(count), [&](int32_t token, float logit) {
    tokens.push_back({token, logit});
  });
  auto isMoreProbable = [](const TokenLogProbability &a,
                           const TokenLogProbability &b) {
    return a.logProbability != b.logProbability
               ? a.logProbability > b.logProbability
               : a.token < b.token;
  };
  const size_t kept = std::min(count, tokens.size());
  std::partial_sort(tokens.begin(),
                    tokens.begin() + static_cast<std::ptrdiff_t>(kept),
                    tokens.end(), isMoreProbable);
  tokens.resize(kept);
  for (TokenLogProbability &each : tokens)
    each.logProbability = ofLogit(each.logProbability);
  return tokens;
}
