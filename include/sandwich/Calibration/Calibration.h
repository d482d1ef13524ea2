//===- Calibration.h - Which channels matter --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a model's matmuls multiply when it reads a text. An error of a weight
/// counts as much as the input that it is multiplied with is large, so that
/// rounding does best to weigh errors by the mean square of the channel's
/// input. That is the diagonal of what GPTQ (Frantar et al., 2023) takes, what
/// llama.cpp calls an importance matrix, and close to what AWQ (Lin et al.,
/// 2024) scales channels by.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CALIBRATION_CALIBRATION_H
#define SANDWICH_CALIBRATION_CALIBRATION_H

#include "sandwich/Quantization/ChannelImportance.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

class Checkpoint;
class Tokenizer;

/// The tokenizer of `checkpoint`. Errors: it has none, or one that cannot be
/// read.
Result<Tokenizer> readTokenizer(const Checkpoint &checkpoint);

/// The tokens of the file `path`, UTF-8, at least one beside those that the
/// tokenizer adds to every text. Errors name the file.
Result<std::vector<int32_t>> readTextTokens(const std::string &path,
                                            const Tokenizer &tokenizer);

/// The mean square of each channel of what the matrices of `checkpoint` are
/// multiplied with, over `tokens`: at least one, and no more than the context.
/// `progress` as that of `runInFloats`. Errors: as `runInFloats`, and an input
/// that is not finite.
Result<ChannelImportance>
calibrate(const Checkpoint &checkpoint, std::span<const int32_t> tokens,
          const std::function<Status(double done)> &progress);

} // namespace sandwich

#endif // SANDWICH_CALIBRATION_CALIBRATION_H
