//===- EncoderConfig.h - Configurations of encoders -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERCONFIG_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERCONFIG_H

#include "ConfigFields.h"
#include "sandwich/Frontend/ModelConfig.h"

namespace sandwich {

/// Reads the sizes that all families name alike.
Status readCommonSizes(const Fields &fields, ModelConfig &config);

/// Error: the heads' attention would not fit a thread's stack.
Status checkAttentionStack(const ModelConfig &config);

/// Reads the configuration of BERT and its descendants, whose architecture is
/// known; `classifies` those with a head that scores.
Status readEncoder(const Fields &fields, ModelConfig &config, bool classifies);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_ENCODERCONFIG_H
