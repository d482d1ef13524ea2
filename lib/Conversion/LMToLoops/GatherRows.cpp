//===- GatherRows.cpp - lm.gather_rows as loops ---------------------------===//
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

static void lowerGatherRows(LoopBuilder &builder, const ProgramContext &program,
                            GatherRowsOp op) {
  Value input = op.getInput(), destination = op.getDestination();
  auto type = cast<MemRefType>(input.getType());
  forOwnRows(builder, program, op.getRows(), [&](Value row) {
    Value from = builder.loadIndex(op.getRows(), row);
    builder.forVectors(type.getDimSize(1), [&](Value first, int64_t width) {
      auto vectorType = VectorType::get({width}, type.getElementType());
      Value piece = vector::LoadOp::create(builder, vectorType, input,
                                           ValueRange{from, first});
      vector::StoreOp::create(builder, piece, destination,
                              ValueRange{row, first});
    });
  });
}

void lm::attachGatherRowsLowering(MLIRContext &context) {
  GatherRowsOp::attachInterface<
      LoopLoweringModel<GatherRowsOp, lowerGatherRows>>(context);
}
