//===- TensorParallelism.h - Among how many ranks a model divides -*- C++ -*-=//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one rule that the search for service configurations, the compiler and
/// the reader of artifacts share.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_TENSORPARALLELISM_H
#define SANDWICH_SUPPORT_TENSORPARALLELISM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// The most ranks (processes) of one tensor-parallel group.
inline constexpr int64_t maxTensorParallelRanks = 64;

/// Whether so many ranks can run a model together, each a part of it.
inline bool canShareModel(int64_t ranks) {
  return ranks >= 2 && ranks <= maxTensorParallelRanks;
}

/// Divides where each rank's shard of the weights begins, behind those that all
/// ranks share: a huge page, so that a rank can have its own near it.
inline constexpr uint64_t weightRegionAlignment = uint64_t(2) << 20;

/// What tensor parallelism divides of a model. Zero is no limit.
struct TensorParallelSizes {
  int64_t heads = 0;
  /// Each rank has whole KV heads.
  int64_t kvHeads = 0;
  int64_t intermediateSize = 0;
  int64_t vocabSize = 0;

  /// The size that `ranks` (positive) do not divide, such as "24 query heads",
  /// or nothing if they divide all.
  std::optional<std::string> indivisible(int64_t ranks) const;

  /// Every degree that divides all sizes, from 1 to `maxTensorParallelRanks`,
  /// ascending.
  std::vector<int64_t> allowedDegrees() const;

  /// Why the model cannot be divided among `ranks`, and which degrees are
  /// possible, or nothing.
  std::optional<std::string> refuse(int64_t ranks) const;
};

} // namespace sandwich

#endif // SANDWICH_SUPPORT_TENSORPARALLELISM_H
