//===- Collectives.cpp - What ranks do together ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "sandwich/Dialect/Phase/IR/Phase.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static Value getTeam(const ProgramContext &program) {
  return phase::getArgument(program.function, phase::ProgramArgument::Team);
}

static void lowerAllReduce(LoopBuilder &builder, const ProgramContext &program,
                           AllReduceOp op) {
  phase::AllReduceOp::create(builder, getTeam(program), op.getDestination());
}

static void lowerAllGather(LoopBuilder &builder, const ProgramContext &program,
                           AllGatherOp op) {
  phase::AllGatherOp::create(builder, getTeam(program), op.getInput(),
                             op.getDestination());
}

void lm::attachCollectiveLowerings(MLIRContext &context) {
  AllReduceOp::attachInterface<LoopLoweringModel<AllReduceOp, lowerAllReduce>>(
      context);
  AllGatherOp::attachInterface<LoopLoweringModel<AllGatherOp, lowerAllGather>>(
      context);
}
