//===- FloatModel.h - A checkpoint run as it is -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CALIBRATION_FLOATMODEL_H
#define SANDWICH_CALIBRATION_FLOATMODEL_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

class Checkpoint;

/// What a matmul multiplies in all tokens.
struct MatmulInput {
  /// The matrix's tensors in the checkpoint, one below the other.
  std::vector<std::string> tensors;
  int64_t channels = 0;
  /// [tokens, channels]
  std::span<const double> values;
};

struct FloatModelOptions {
  /// Hears of each matmul before it is computed. May be empty.
  std::function<void(const MatmulInput &)> observe = {};
  /// Hears how much is done, from 0 to 1, and ends the run by an error. May be
  /// empty.
  std::function<Status(double done)> progress = {};
};

/// The logits, [tokens, vocabulary], of each of `tokens` after those before it,
/// at least one and no more than the context: what the model of `checkpoint`
/// means, computed in f64 from the values that the checkpoint has, in one step.
/// Weights are read when they are needed and not kept, of the KV cache all is
/// in f64. Errors: a model that embeds or classifies; tokens outside the
/// vocabulary; what `progress` returns.
Result<std::vector<double>> runInFloats(const Checkpoint &checkpoint,
                                        std::span<const int32_t> tokens,
                                        const FloatModelOptions &options);

} // namespace sandwich

#endif // SANDWICH_CALIBRATION_FLOATMODEL_H
