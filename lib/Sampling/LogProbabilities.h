//===- LogProbabilities.h - How probable tokens are -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_LOGPROBABILITIES_H
#define SANDWICH_LIB_SAMPLING_LOGPROBABILITIES_H

#include "LogitBlocks.h"

#include "sandwich/Sampling/Sampler.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sandwich {

/// Natural logarithms of the probabilities of a row's tokens.
class LogProbabilities {
public:
  /// `row`, as the model computed it, was scanned with scale 1; it outlives
  /// this and has a logit that is finite.
  explicit LogProbabilities(const LogitBlocks &row);

  /// Of a token of the row.
  float of(int32_t token) const { return ofLogit(row.unchangedLogit(token)); }

  /// The `count` most probable tokens, most probable first; fewer where fewer
  /// are not barred.
  std::vector<TokenLogProbability> top(size_t count) const;

private:
  float ofLogit(float logit) const {
    return static_cast<float>(logit - logOfSum);
  }

  const LogitBlocks &row;
  /// Of the sum of exp(logit).
  double logOfSum;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_LOGPROBABILITIES_H
