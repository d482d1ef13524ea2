//===- SplitK.cpp - Matmuls whose threads share K -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPart.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Scheduling/Partition.h"

#include <numeric>

namespace sandwich::gemm {
#define GEN_PASS_DEF_SPLITK
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;

namespace {

/// Splits K of one matmul: every part of K has sums of its own.
class KSplitter {
public:
  KSplitter(gemm::MatmulOp op, phase::ProgramAttr program,
            const Schedule &schedule, SymbolTableCollection &symbols)
      : op(op), program(program), schedule(schedule), symbols(symbols),
        part(op, program, symbols), b(part.builder),
        columns(gemm::getPartialSumsColumns(op, schedule, symbols)) {
    // Vectors that no panel's end falls into: two threads' columns may meet
    // there.
    int64_t panel = gemm::getShape(op, symbols).packing->panel;
    width = std::gcd(vectorWidth, panel);
  }

  LogicalResult run();

private:
  void storePartialSums(gemm::NestOp nest);
  void reduce();
  /// Sums of every part of K for the row and the columns from `column` on.
  Value loadSum(Value row, Value column);

  gemm::MatmulOp op;
  phase::ProgramAttr program;
  const Schedule &schedule;
  SymbolTableCollection &symbols;
  PartBuilder part;
  LoopBuilder &b;
  int64_t columns, width;
  /// memref<tK x tokens x columns x f32>
  Value sums;
};

} // namespace

LogicalResult KSplitter::run() {
  int64_t needed = op.getPartialSumsBytes(program.getMaxTokens(), symbols);
  auto type = op.getPartialSums()
                  ? cast<MemRefType>(op.getPartialSums().getType())
                  : MemRefType();
  if (!type || (type.hasStaticShape() && type.getDimSize(0) < needed))
    return op.emitOpError("splits K over threads and needs ")
           << needed << " bytes for partial sums";
  auto sumsType = MemRefType::get(
      {schedule.threads[2], ShapedType::kDynamic, columns}, b.getF32Type());
  sums = memref::ViewOp::create(b, sumsType, op.getPartialSums(), b.index(0),
                                part.tokens);
  FailureOr<gemm::NestOp> nest = part.createNest();
  if (failed(nest))
    return failure();
  storePartialSums(*nest);
  b.setInsertionPointAfter(*nest);
  auto function = op->getParentOfType<func::FuncOp>();
  phase::BarrierOp::create(
      b, phase::getArgument(function, phase::ProgramArgument::Team));
  reduce();
  op.erase();
  return success();
}

void KSplitter::storePartialSums(gemm::NestOp nest) {
  ValueRange place = nest.getPlace();
  Value firstRow = place[0], rows = place[1], firstColumn = place[2];
  Value end = b.mul(b.div(b.add(place[3], width - 1), width), width);
  b.forLoop(b.index(0), rows, 1, [&](Value row) {
    b.forLoop(b.index(0), end, width, [&](Value column) {
      Value vector = b.loadVector(nest.getSums(), {row, column}, width);
      b.storeVector(
          vector, sums,
          {part.partOfK, b.add(firstRow, row), b.add(firstColumn, column)});
    });
  });
}

Value KSplitter::loadSum(Value row, Value column) {
  Value sum;
  for (int64_t k = 0; k < schedule.threads[2]; ++k) {
    Value vector = b.loadVector(sums, {b.index(k), row, column}, width);
    sum = sum ? b.addf(sum, vector) : vector;
  }
  return sum;
}

/// Each thread of the team adds up some columns, in place, and finishes them.
void KSplitter::reduce() {
  auto function = op->getParentOfType<func::FuncOp>();
  Value thread = phase::getArgument(function, phase::ProgramArgument::Thread);
  auto boundary = [&](Value number) {
    return unitBoundary(b, number, program.getThreads(), part.columns,
                        part.unit);
  };
  Value begin = boundary(thread), end = boundary(b.add(thread, 1));
  b.forLoop(b.index(0), part.tokens, 1, [&](Value row) {
    b.forLoop(begin, end, width, [&](Value column) {
      b.storeVector(loadSum(row, column), sums, {b.index(0), row, column});
    });
  });
  // Without any columns there is no block to finish.
  Value some = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, begin, end);
  b.ifThen(some, [&] {
    Value size = b.sub(end, begin);
    auto attribute = [&](int64_t value) { return b.getIndexAttr(value); };
    auto type = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
        {ShapedType::kDynamic, ShapedType::kDynamic},
        cast<MemRefType>(sums.getType()),
        ArrayRef<OpFoldResult>{attribute(0), attribute(0), begin},
        {attribute(1), part.tokens, size},
        {attribute(1), attribute(1), attribute(1)}));
    Value block = memref::SubViewOp::create(
        b, type, sums,
        ArrayRef<OpFoldResult>{attribute(0), attribute(0), begin},
        {attribute(1), part.tokens, size},
        {attribute(1), attribute(1), attribute(1)});
    gemm::EpilogueOp::create(b, op, block,
                             ValueRange{b.index(0), part.tokens, begin, size},
                             symbols);
  });
}

static LogicalResult splitK(gemm::MatmulOp op, SymbolTableCollection &symbols) {
  FailureOr<phase::ProgramAttr> program = getLowerableProgram(op, symbols);
  if (failed(program))
    return failure();
  FailureOr<Schedule> schedule = getOnlySchedule(op);
  if (failed(schedule))
    return failure();
  if (schedule->threads[2] == 1)
    return success();
  return KSplitter(op, *program, *schedule, symbols).run();
}

namespace {
struct SplitK : gemm::impl::SplitKBase<SplitK> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result = getOperation().walk(
        [&](gemm::MatmulOp op) { return WalkResult(splitK(op, symbols)); });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
