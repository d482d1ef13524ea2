//===- Add.cpp - lm.add as loops ------------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

void lm::lowerAdd(LoopBuilder &builder, const ProgramContext &program,
                  AddOp op) {
  Value destination = op.getDestination();
  int64_t channels = getDestinationType(op).getDimSize(1);
  forOwnRows(builder, program, destination, [&](Value row) {
    builder.forVectors(channels, [&](Value first, int64_t width) {
      Value lhs = builder.loadVector(op.getLhs(), {row, first}, width);
      Value rhs = builder.loadVector(op.getRhs(), {row, first}, width);
      builder.storeVector(builder.addf(lhs, rhs), destination, {row, first});
    });
  });
}
