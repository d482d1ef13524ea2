//===- QuantizedTensors.h - Matrices in several tensors ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checkpoints of GPTQ (Frantar et al., 2022), AWQ (Lin et al., 2023) and
/// `compressed-tensors` have a matrix as several tensors: its integers, many of
/// which share a number of 32 bits, the scales of its groups, and their zeros.
/// Those of FP8 have its numbers in E4M3FN and the scales of all of it, of its
/// rows or of blocks of rows and columns.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_QUANTIZEDTENSORS_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_QUANTIZEDTENSORS_H

#include "ConfigFields.h"
#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Frontend/Safetensors.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Reads `quantization_config` of `fields`, if it is there. Errors name the
/// field and its value: methods, and what they do to a model, that the compiler
/// does not know.
Result<std::optional<QuantizationConfig>>
readQuantization(const Fields &fields);

/// What the tensors of a matrix are called, after the name of the module: the
/// first one tells that a checkpoint has the module so.
std::span<const std::string_view>
quantizedSuffixes(const QuantizationConfig &config);

/// The matrix of `shape` whose tensors `find` finds by their suffixes; the
/// first one is there. Errors name the suffix: tensors that are missing or of
/// another type or shape, other numbers than `config` tells of, groups that no
/// `StorageFormat` has, zeros that two meanings are known of, scales of fp8
/// that are not positive and finite, and columns of groups that are not there.
Result<TensorView>
joinQuantized(const QuantizationConfig &config,
              const std::vector<int64_t> &shape,
              const std::function<const TensorView *(std::string_view)> &find);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_QUANTIZEDTENSORS_H
