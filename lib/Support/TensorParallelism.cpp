//===- TensorParallelism.cpp - Among how many ranks a model divides -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/TensorParallelism.h"

#include <utility>

using namespace sandwich;

std::optional<std::string>
TensorParallelSizes::indivisible(int64_t ranks) const {
  for (auto [size, what] :
       {std::pair(heads, " query heads"), std::pair(kvHeads, " KV heads"),
        std::pair(intermediateSize, " intermediate features"),
        std::pair(vocabSize, " vocabulary entries")})
    if (size % ranks != 0)
      return std::to_string(size) + what;
  return std::nullopt;
}

std::vector<int64_t> TensorParallelSizes::allowedDegrees() const {
  std::vector<int64_t> degrees;
  for (int64_t ranks = 1; ranks <= maxTensorParallelRanks; ++ranks)
    if (!indivisible(ranks))
      degrees.push_back(ranks);
  return degrees;
}

std::optional<std::string> TensorParallelSizes::refuse(int64_t ranks) const {
  std::string reason;
  if (ranks < 1 || ranks > maxTensorParallelRanks)
    reason = std::to_string(ranks) + " ranks are not between 1 and " +
             std::to_string(maxTensorParallelRanks);
  else if (auto size = indivisible(ranks))
    reason = std::to_string(ranks) + " ranks do not divide " + *size;
  else
    return std::nullopt;
  const std::vector<int64_t> degrees = allowedDegrees();
  reason += degrees.size() == 1 ? "; only " : "; ";
  for (size_t i = 0; i < degrees.size(); ++i) {
    if (i > 0)
      reason += i + 1 == degrees.size() ? " and " : ", ";
    reason += std::to_string(degrees[i]);
  }
  return reason + (degrees.size() == 1 ? " is possible" : " are possible");
}
