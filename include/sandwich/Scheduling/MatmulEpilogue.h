//===- MatmulEpilogue.h - What becomes of a matmul's sums -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_MATMULEPILOGUE_H
#define SANDWICH_SCHEDULING_MATMULEPILOGUE_H

#include "sandwich/Scheduling/AttentionElement.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sandwich {

/// What `gemm.matmul` does to its sums while they are in cache; what each is,
/// the operation says.
enum class Epilogue : uint8_t {
  /// `none`
  None,
  /// `add_residual`
  AddResidual,
  /// `silu_mul`
  SiluMul,
  /// `rotate_append_kv`
  RotateAppendKV,
  /// `gelu_exact`
  GeluExact,
  /// `gelu_tanh`
  GeluTanh,
};

/// `none`, `add_residual` and so on.
std::string_view name(Epilogue epilogue);
std::optional<Epilogue> epilogueNamed(std::string_view name);

/// What the time of an epilogue depends on beside the matmul's size: measuring
/// runs the same one. A residual that ranks deal among themselves counts as one
/// that is added in all rows.
struct MatmulEpilogue {
  Epilogue kind = Epilogue::None;
  /// Whether a bias is added to the sums.
  bool bias = false;
  /// Whether matmuls, and nothing else, read the result, which is then of the
  /// element that their instructions multiply; it is f32 otherwise.
  bool feedsMatmuls = false;
  /// Whether rows of the result have no gap between them, as those that a step
  /// returns.
  bool contiguousResult = false;
  /// Heads of the cache, each as wide as a `MatmulShape::columnUnit`, of
  /// `rotate_append_kv`; 0 otherwise.
  int64_t cacheHeads = 0;
  AttentionElement cache = AttentionElement::F32;
  /// Whether heads of queries and keys are normalized before they are rotated.
  bool headNorms = false;

  auto operator<=>(const MatmulEpilogue &) const = default;
};

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_MATMULEPILOGUE_H
