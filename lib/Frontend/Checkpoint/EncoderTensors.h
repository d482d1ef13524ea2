//===- EncoderTensors.h - What encoders' tensors are called -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERTENSORS_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERTENSORS_H

#include "sandwich/Frontend/Checkpoint.h"

namespace sandwich {

/// `expectedTensors` of an encoder.
std::vector<ExpectedTensor> expectedEncoderTensors(const ModelConfig &config);

/// What `expectedTensors` calls the tensor that a file calls `name`: several
/// names where it is several of them, one above the other.
std::vector<std::string> encoderTensorNames(std::string_view name);

/// The same of a decoder that embeds, whose file may have the base model alone.
std::string decoderTensorName(const std::string &name);

/// Whether the tensor `name`, which is not expected, was for training or says
/// nothing that is not known.
bool isTrainingTensor(std::string_view name);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERTENSORS_H
