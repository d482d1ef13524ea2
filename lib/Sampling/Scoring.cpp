//===- Scoring.cpp - How probable known tokens were -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/Sampler.h"

#include "LogProbabilities.h"

#include <limits>

using namespace sandwich;

static Result<SampledToken> score(const ScoringRow &row) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const LogitAdjustments none(SamplingOptions(), {});
  LogitBlocks blocks(row.logits, none, /*scale=*/1, /*rough=*/true);
  blocks.scan(0, blocks.count());
  if (blocks.largestLogit() == infinity)
    return blocks.describeBadLogit();
  if (blocks.largestLogit() == -infinity)
    return makeError(ErrorKind::Internal,
                     "every logit is minus infinity; no token is probable");
  const LogProbabilities probabilities(blocks);
  SampledToken scored;
  scored.token = row.token;
  scored.logProbability = probabilities.of(row.token);
  scored.top = probabilities.top(row.top);
  return scored;
}

std::vector<Result<SampledToken>>
sandwich::scoreBatch(std::span<const ScoringRow> rows,
                     const ParallelFor &parallelFor) {
  std::vector<Result<SampledToken>> results(rows.size(), SampledToken());
  if (!rows.empty())
    parallelFor(rows.size(),
                [&](size_t index) { results[index] = score(rows[index]); });
  return results;
}
