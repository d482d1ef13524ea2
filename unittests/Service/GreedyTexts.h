//===- GreedyTexts.h - Prompts and what is to follow them -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SERVICE_GREEDYTEXTS_H
#define SANDWICH_UNITTESTS_SERVICE_GREEDYTEXTS_H

#include "HashModel.h"
#include "Inputs/hash_model.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sandwich::test {

/// The same seed gives the same tokens, more or fewer of them.
inline std::vector<int32_t> makeTokens(size_t count, uint64_t seed) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<int32_t>(hashModelMix(seed * 1000 + i) % 256);
  return tokens;
}

/// The most probable continuation of `prompt`.
inline std::vector<int32_t> greedy(std::vector<int32_t> prompt, size_t count) {
  std::vector<int32_t> made;
  while (made.size() < count) {
    made.push_back(hashModelNext(prompt));
    prompt.push_back(made.back());
  }
  return made;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_SERVICE_GREEDYTEXTS_H
