//===- CheckpointWeights.h - Weights for the interpreter --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CALIBRATION_CHECKPOINTWEIGHTS_H
#define SANDWICH_CALIBRATION_CHECKPOINTWEIGHTS_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Interpreter/Interpreter.h"
#include "sandwich/Support/Result.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace sandwich {

class Checkpoint;

/// The sources of `weight`, of layer `layer`, in `checkpoint`, one below the
/// other, as its elements and its storage hold them: what
/// `Interpreter::WeightReader` returns. Errors: sources that are not there, or
/// have other shapes or elements than the weight; numbers that its storage
/// cannot hold.
Result<std::vector<float>> readWeight(const Checkpoint &checkpoint,
                                      lm::WeightOp weight, int64_t layer);

/// The step of `tokens`, of which the first is number `first` of the only
/// sequence, whose blocks lie in order. All rows get logits.
InterpreterStep makeSequenceStep(llvm::ArrayRef<int32_t> tokens, int32_t first);

} // namespace sandwich

#endif // SANDWICH_CALIBRATION_CHECKPOINTWEIGHTS_H
