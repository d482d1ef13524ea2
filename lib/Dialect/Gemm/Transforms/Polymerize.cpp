//===- Polymerize.cpp - Matmuls as the parts of threads -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPart.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"

namespace sandwich::gemm {
#define GEN_PASS_DEF_POLYMERIZE
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;

static LogicalResult polymerize(gemm::MatmulOp op,
                                SymbolTableCollection &symbols) {
  FailureOr<phase::ProgramAttr> program = getLowerableProgram(op, symbols);
  if (failed(program))
    return failure();
  FailureOr<Schedule> schedule = getOnlySchedule(op);
  if (failed(schedule))
    return failure();
  if (schedule->threads[2] > 1)
    return op.emitOpError("splits K over threads; run gemm-split-k first");
  PartBuilder part(op, *program, symbols);
  FailureOr<gemm::NestOp> nest = part.createNest();
  if (failed(nest))
    return failure();
  gemm::EpilogueOp::create(part.builder, op, nest->getSums(), nest->getPlace(),
                           symbols);
  op.erase();
  return success();
}

namespace {
struct Polymerize : gemm::impl::PolymerizeBase<Polymerize> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result = getOperation().walk(
        [&](gemm::MatmulOp op) { return WalkResult(polymerize(op, symbols)); });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
