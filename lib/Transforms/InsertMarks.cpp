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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// The buffers that ranks exchange their parts from, or into.
static DenseSet<Value> findGathered(func::FuncOp program) {
  DenseSet<Value> gathered;
  program.walk([&](lm::AllGatherOp gather) {
    gathered.insert_range(gather->getOperands());
  });
  return gathered;
}

/// Whether `op` multiplies rows of logits, which it writes, all or a rank's
/// part of them that is `gathered`.
static bool writesLogits(gemm::MatmulOp op, func::FuncOp program,
                         const DenseSet<Value> &gathered) {
  Value destination = op.getDestination();
  return destination ==
             phase::getArgument(program, phase::ProgramArgument::Logits) ||
         (destination && gathered.contains(destination));
}

/// The matmul in front of `op` that wrote `buffer`, or null.
static gemm::MatmulOp findWriter(Operation *op, Value buffer) {
  while ((op = op->getPrevNode()))
    if (auto matmul = dyn_cast<gemm::MatmulOp>(op);
        matmul && matmul.getDestination() == buffer)
      return matmul;
  return {};
}

/// The weight that `op` reads, beside smaller ones; or null.
static lm::WeightOp weightOf(Operation *op, SymbolTableCollection &symbols) {
  auto name =
      llvm::TypeSwitch<Operation *, FlatSymbolRefAttr>(op)
          .Case<lm::EmbedOp, lm::RMSNormOp, lm::LinearOp, gemm::MatmulOp>(
              [](auto reader) { return reader.getWeightAttr(); })
          .Default([](Operation *) { return FlatSymbolRefAttr(); });
  return name ? lm::lookupWeight(symbols, op, name) : lm::WeightOp();
}

/// "rms_norm layers.input_layernorm"; what ranks exchange is told by the weight
/// that it was made with.
static std::string nameOf(Operation *op, SymbolTableCollection &symbols) {
  std::string name = op->getName().stripDialect().str();
  lm::WeightOp weight = weightOf(op, symbols);
  if (isa<lm::AllReduceOp, lm::AllGatherOp>(op))
    if (gemm::MatmulOp writer = findWriter(op, op->getOperand(0)))
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
                    const DenseSet<Value> &gathered,
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
  if (auto matmul = dyn_cast<gemm::MatmulOp>(op); matmul && weight) {
    mark.setBytes(weight.getSliceBytes());
    int64_t flops = 2 * weight.getTensorType().getNumElements();
    if (writesLogits(matmul, program, gathered))
      mark.setFlopsPerLogitRow(flops);
    else
      mark.setFlopsPerToken(flops);
  } else if (auto reduce = dyn_cast<lm::AllReduceOp>(op)) {
    mark.setFlopsPerToken((ranks - 1) * channelsOf(reduce.getInput()));
  } else if (auto attention = dyn_cast<lm::AttentionOp>(op)) {
    // A multiplication and an addition for a score, and for a weighted value.
    mark.setFlopsPerAttended(4 * channelsOf(attention.getQuery()));
    lm::KVCacheType cache =
        lm::getKVCacheType(attention.getKvCache().getType());
    mark.setBytesPerPosition(2 * cache.getHeads() * cache.getHeadDim() *
                             cache.getElementType().getIntOrFloatBitWidth() /
                             8);
  }
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
      const DenseSet<Value> gathered = findGathered(program);
      for (Operation *op : operations)
        addMark(op, program, *ranks, gathered, symbols);
    }
  }
};
} // namespace
