//===- HashModel.h - A tiny artifact for tests ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes artifacts around the code in Inputs/hash_model.c, and computes what
/// that code must answer.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_RUNTIME_HASHMODEL_H
#define SANDWICH_UNITTESTS_RUNTIME_HASHMODEL_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sandwich::test {

struct HashModelOptions {
  /// 1, 2 or 3.
  unsigned threads = 2;
  uint32_t maxTokens = 8;
  uint32_t maxLogitRows = 8;
  uint32_t contextLength = 4096;
  std::vector<int32_t> endOfTextTokens = {};
  bool withTokenizer = true;
  /// Whether all logits behind the last token are no numbers.
  bool spoils = true;
  /// Another model with the same vocabulary.
  bool otherWeights = false;
  /// 1, 2 or 4.
  uint32_t ranks = 1;
  /// Of several ranks: the size of each one's shard, in regions of 2 MiB.
  uint32_t shardRegions = 1;
  /// Whether it is for CPU 0 and up, as many as there are threads of all ranks.
  bool plan = false;
};

/// Writes the artifact `path`.
Status writeHashModel(const std::string &path,
                      const HashModelOptions &options = {});

/// The logits after the last of `tokens`, [HASH_MODEL_VOCABULARY].
std::vector<float> hashModelLogits(std::span<const int32_t> tokens);

/// The most probable token after `tokens`.
int32_t hashModelNext(std::span<const int32_t> tokens);

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_RUNTIME_HASHMODEL_H
