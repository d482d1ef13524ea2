//===- Dispatch.cpp - The schedule for the number of tokens ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPart.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"

namespace sandwich::gemm {
#define GEN_PASS_DEF_DISPATCH
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;

namespace {

/// A schedule and the numbers of tokens it serves.
struct TokenRange {
  int64_t minTokens, maxTokens;
  gemm::ScheduleAttr schedule;
};

} // namespace

/// The schedules of `op` that some step of at most `maxTokens`, or as many as
/// the operation promises, can need; neighbours that are equal become one.
static SmallVector<TokenRange> getRanges(gemm::MatmulOp op, int64_t maxTokens) {
  SmallVector<TokenRange> ranges;
  int64_t minTokens = 0;
  if (std::optional<ArrayRef<int64_t>> between = op.getTokensBetween()) {
    maxTokens = std::min(maxTokens, (*between)[1]);
    minTokens = std::min((*between)[0], maxTokens);
  }
  for (auto [rows, schedule] :
       llvm::zip_equal(op.getSchedules()->getMaxRows(),
                       op.getSchedules()->getSchedules())) {
    if (rows < minTokens)
      continue;
    int64_t last = std::min(rows, maxTokens);
    if (!ranges.empty() && ranges.back().schedule == schedule)
      ranges.back().maxTokens = last;
    else
      ranges.push_back({minTokens, last, schedule});
    if (rows >= maxTokens)
      break;
    minTokens = rows + 1;
  }
  return ranges;
}

/// A matmul with the one schedule of `range`.
static void emitMatmul(LoopBuilder &builder, gemm::MatmulOp op,
                       const TokenRange &range) {
  auto matmul = cast<gemm::MatmulOp>(builder.clone(*op));
  matmul.setSchedulesAttr(gemm::ScheduleTableAttr::get(
      op.getContext(), gemm::unlimitedRows, range.schedule));
  matmul.setTokensBetween(
      ArrayRef<int64_t>({range.minTokens, range.maxTokens}));
  if (range.schedule.getSchedule().threads[2] == 1)
    matmul.getPartialSumsMutable().clear();
}

/// Halves of the ranges by turns: conditions nest no deeper than the logarithm
/// of their number.
static void emitRanges(LoopBuilder &builder, gemm::MatmulOp op, Value tokens,
                       ArrayRef<TokenRange> ranges) {
  if (ranges.size() == 1)
    return emitMatmul(builder, op, ranges.front());
  ArrayRef<TokenRange> few = ranges.take_front(ranges.size() / 2);
  Value isFew =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, tokens,
                            builder.index(few.back().maxTokens));
  builder.ifThenElse(
      isFew, [&] { emitRanges(builder, op, tokens, few); },
      [&] { emitRanges(builder, op, tokens, ranges.drop_front(few.size())); });
}

namespace {
struct Dispatch : gemm::impl::DispatchBase<Dispatch> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    SmallVector<gemm::MatmulOp> matmuls;
    getOperation().walk([&](gemm::MatmulOp op) { matmuls.push_back(op); });
    for (gemm::MatmulOp op : matmuls) {
      FailureOr<phase::ProgramAttr> program = getLowerableProgram(op, symbols);
      if (failed(program))
        return signalPassFailure();
      LoopBuilder builder(op.getLoc(), op);
      Value tokens =
          memref::DimOp::create(builder, op.getInput(), builder.index(0));
      emitRanges(builder, op, tokens, getRanges(op, program->getMaxTokens()));
      op.erase();
    }
  }
};
} // namespace
