//===- InsertMarks.cpp - Mark where the time of a step goes ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

namespace sandwich {
#define GEN_PASS_DEF_INSERTMARKS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

static std::string shapeOf(RankedTensorType type) {
  return llvm::join(
      llvm::map_range(type.getShape(),
                      [](int64_t size) { return std::to_string(size); }),
      "x");
}

/// Channels of a row of `buffer`.
static int64_t channelsOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getDimSize(1);
}

/// Whether `buffer` of `program` has a row for each row of logits, not for each
/// token: that is what its view counts.
static bool hasLogitRows(Value buffer, func::FuncOp program) {
  if (buffer == phase::getArgument(program, phase::ProgramArgument::Logits))
    return true;
  if (auto part = buffer.getDefiningOp<memref::SubViewOp>())
    buffer = part.getSource();
  auto view = buffer.getDefiningOp<memref::ViewOp>();
  if (!view || view.getSizes().empty())
    return false;
  auto rows = view.getSizes().front().getDefiningOp<memref::DimOp>();
  return rows &&
         rows.getSource() ==
             phase::getArgument(program, phase::ProgramArgument::LogitRows);
}

/// Whether `op` computes rows of logits, or on the way to them.
static bool writesLogitRows(lm::StepOpInterface op, func::FuncOp program) {
  return llvm::any_of(op.getDestinationMutable(), [&](OpOperand &destination) {
    return hasLogitRows(destination.get(), program);
  });
}

/// The operation in front of `op` that wrote `buffer`, or null.
static Operation *findWriter(Operation *op, Value buffer) {
  while ((op = op->getPrevNode()))
    if (auto step = dyn_cast<lm::StepOpInterface>(op);
        step &&
        llvm::any_of(step.getDestinationMutable(), [&](OpOperand &destination) {
          return destination.get() == buffer;
        }))
      return op;
  return nullptr;
}

/// The weight that `op` is named after, or null.
static lm::WeightOp weightOf(Operation *op, SymbolTableCollection &symbols) {
  auto step = dyn_cast<lm::StepOpInterface>(op);
  if (!step)
    return {};
  const SmallVector<lm::WeightUse> uses = step.getWeightUses();
  return uses.empty() ? lm::WeightOp()
                      : lm::lookupWeight(symbols, op, uses.front().name);
}

/// "rms_norm layers.input_layernorm"; what ranks exchange is told by the weight
/// that it was made with.
static std::string nameOf(Operation *op, SymbolTableCollection &symbols) {
  std::string name = op->getName().stripDialect().str();
  lm::WeightOp weight = weightOf(op, symbols);
  if (isa<lm::AllReduceOp, lm::AllGatherOp>(op))
    if (Operation *writer = findWriter(op, op->getOperand(0)))
      weight = weightOf(writer, symbols);
  if (weight)
    name += " " + weight.getSymName().str();
  return name;
}

static bool isTimed(Operation *op) {
  return isa<phase::BarrierOp>(op) ||
         isa_and_nonnull<lm::LMDialect, gemm::GemmDialect>(op->getDialect());
}

/// The last operation in front of `end` that computes, also in loops; or null.
static Operation *findLast(Block &block, Block::iterator end) {
  for (Operation &op : llvm::reverse(llvm::make_range(block.begin(), end))) {
    if (isTimed(&op) && !isa<phase::BarrierOp>(op))
      return &op;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      if (Operation *last = findLast(*loop.getBody(), loop.getBody()->end()))
        return last;
  }
  return nullptr;
}

/// The operation that threads may not have finished at `barrier`, or null. At
/// the begin of a loop it is that at its end: there is one first iteration, and
/// many others.
static Operation *findAwaited(Operation *barrier) {
  Block &block = *barrier->getBlock();
  if (Operation *last = findLast(block, barrier->getIterator()))
    return last;
  return isa<scf::ForOp>(block.getParentOp()) ? findLast(block, block.end())
                                              : nullptr;
}

/// Puts a mark after `op`, which it describes.
static void addMark(Operation *op, func::FuncOp program, int64_t ranks,
                    SymbolTableCollection &symbols) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  std::string name = nameOf(op, symbols);
  lm::WeightOp weight = weightOf(op, symbols);
  if (weight)
    name += " " + shapeOf(weight.getTensorType());
  if (isa<lm::AllReduceOp, lm::AllGatherOp>(op))
    name += " " + std::to_string(channelsOf(op->getOperand(0))) + " of " +
            std::to_string(ranks) + " ranks";
  if (isa<phase::BarrierOp>(op))
    if (Operation *awaited = findAwaited(op))
      name += " after " + nameOf(awaited, symbols);
  auto mark = phase::MarkOp::create(
      builder, op->getLoc(),
      phase::getArgument(program, phase::ProgramArgument::Team), name);
  if (auto reduce = dyn_cast<lm::AllReduceOp>(op))
    return mark.setFlopsPerToken((ranks - 1) * channelsOf(reduce.getInput()));
  auto step = dyn_cast<lm::StepOpInterface>(op);
  if (!step)
    return;
  const lm::StepCost cost = step.getCost(symbols);
  mark.setBytes(cost.bytes);
  mark.setBytesPerPosition(cost.bytesPerPosition);
  mark.setFlopsPerAttended(cost.flopsPerAttended);
  if (writesLogitRows(step, program))
    mark.setFlopsPerLogitRow(cost.flopsPerRow);
  else
    mark.setFlopsPerToken(cost.flopsPerRow);
}

namespace {
struct InsertMarks : sandwich::impl::InsertMarksBase<InsertMarks> {
  void runOnOperation() override {
    FailureOr<int64_t> ranks = lm::getRanks(getOperation());
    if (failed(ranks))
      return signalPassFailure();
    SymbolTableCollection symbols;
    for (auto program : getOperation().getOps<func::FuncOp>()) {
      if (!phase::getProgram(program))
        continue;
      SmallVector<Operation *> operations;
      program.walk([&](Operation *op) {
        if (isTimed(op) && !isa_and_nonnull<phase::MarkOp>(op->getNextNode()))
          operations.push_back(op);
      });
      for (Operation *op : operations)
        addMark(op, program, *ranks, symbols);
    }
  }
};
} // namespace
