//===- InsertBarriers.cpp - Separate what crosses threads -----------------===//
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
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace sandwich {
#define GEN_PASS_DEF_INSERTBARRIERS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// Bytes [begin, end) of `root`, an argument of the program, or, without a
/// root, any memory.
struct MemoryRange {
  Value root;
  int64_t begin = 0;
  int64_t end = INT64_MAX;

  bool overlaps(const MemoryRange &other) const {
    return !root || !other.root ||
           (root == other.root && begin < other.end && other.begin < end);
  }
};

struct Access {
  MemoryRange range;
  /// The buffer as the operation names it.
  Value buffer;
  bool isWrite;
  /// Each thread touches its own share of the rows only.
  bool byRows;
};

/// What threads may have touched since the last barrier.
using AccessSet = SmallVector<Access>;

class BarrierInserter {
public:
  explicit BarrierInserter(func::FuncOp program)
      : program(program), attribute(phase::getProgram(program)) {}

  int64_t numBarriers = 0;

  LogicalResult run() {
    AccessSet pending;
    return visit(program.getBody().front(), pending);
  }

private:
  LogicalResult visit(Block &block, AccessSet &pending);
  SmallVector<Access> accessesOf(Operation *op);
  MemoryRange rangeOf(Value buffer);

  func::FuncOp program;
  phase::ProgramAttr attribute;
};

} // namespace

/// The memory behind `buffer`; for a view of the workspace, the most it can
/// cover.
MemoryRange BarrierInserter::rangeOf(Value buffer) {
  if (buffer.getParentBlock() == &program.getBody().front() &&
      isa<BlockArgument>(buffer))
    return {buffer};
  auto viewLike = buffer.getDefiningOp<ViewLikeOpInterface>();
  if (!viewLike)
    return {Value()};
  MemoryRange range = rangeOf(viewLike.getViewSource());
  auto view = buffer.getDefiningOp<memref::ViewOp>();
  APInt offset;
  if (!view || view.getSource() != range.root ||
      !matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
    return range;
  MemRefType type = view.getType();
  if (type.hasStaticShape()) {
    range.begin = offset.getSExtValue();
    range.end =
        range.begin + type.getNumElements() * type.getElementTypeBitWidth() / 8;
    return range;
  }
  if (type.getRank() != 2 || type.isDynamicDim(1))
    return range;
  int64_t rows =
      std::max(attribute.getMaxTokens(), attribute.getMaxLogitRows());
  range.begin = offset.getSExtValue();
  range.end = range.begin +
              rows * type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  return range;
}

/// Whether threads touch the program's buffers in `op`, or meet.
static bool concernsThreads(Operation *op) {
  return isa<phase::BarrierOp, phase::AllReduceOp, phase::AllGatherOp>(op) ||
         isa_and_nonnull<lm::LMDialect, gemm::GemmDialect>(op->getDialect());
}

SmallVector<Access> BarrierInserter::accessesOf(Operation *op) {
  SmallVector<Access> accesses;
  // These have more effects than those on buffers.
  if (auto reduce = dyn_cast<phase::AllReduceOp>(op))
    return {{rangeOf(reduce.getData()), reduce.getData(), /*isWrite=*/true,
             /*byRows=*/false}};
  if (auto gather = dyn_cast<phase::AllGatherOp>(op))
    return {{rangeOf(gather.getPart()), gather.getPart(), /*isWrite=*/false,
             /*byRows=*/false},
            {rangeOf(gather.getWhole()), gather.getWhole(), /*isWrite=*/true,
             /*byRows=*/false}};
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface || !concernsThreads(op))
    return accesses;
  bool splitsRows = isa<lm::EmbedOp, lm::RMSNormOp, lm::RotaryTableOp>(op);
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    Value buffer = effect.getValue();
    if (!buffer)
      continue;
    accesses.push_back({rangeOf(buffer), buffer,
                        isa<MemoryEffects::Write>(effect.getEffect()),
                        splitsRows});
  }
  return accesses;
}

/// Whether one access must not run beside the other on different threads.
static bool conflict(const Access &a, const Access &b) {
  if (!a.isWrite && !b.isWrite)
    return false;
  if (!a.range.overlaps(b.range))
    return false;
  return !(a.byRows && b.byRows && a.buffer == b.buffer);
}

LogicalResult BarrierInserter::visit(Block &block, AccessSet &pending) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<phase::BarrierOp>(op)) {
      pending.clear();
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      // What an iteration leaves pending meets the next one's first
      // operations; visiting twice covers both ways into the body.
      AccessSet entry = pending;
      if (failed(visit(*loop.getBody(), pending)))
        return failure();
      llvm::append_range(pending, entry);
      if (failed(visit(*loop.getBody(), pending)))
        return failure();
      // A loop that may run no iteration leaves what came before it pending.
      std::optional<APInt> iterations = loop.getStaticTripCount();
      if (!iterations || iterations->isZero())
        llvm::append_range(pending, entry);
      continue;
    }
    WalkResult nested = op.walk([&](Operation *inner) {
      return inner != &op && concernsThreads(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
    });
    if (nested.wasInterrupted())
      return op.emitOpError("cannot hold what all threads run together; only "
                            "loops can");
    SmallVector<Access> accesses = accessesOf(&op);
    bool conflicts = llvm::any_of(accesses, [&](const Access &access) {
      return llvm::any_of(pending, [&](const Access &earlier) {
        return conflict(access, earlier);
      });
    });
    if (conflicts) {
      OpBuilder builder(&op);
      phase::BarrierOp::create(
          builder, op.getLoc(),
          phase::getArgument(program, phase::ProgramArgument::Team));
      ++numBarriers;
      pending.clear();
    }
    llvm::append_range(pending, accesses);
  }
  return success();
}

namespace {
struct InsertBarriers : sandwich::impl::InsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!phase::getProgram(function))
        continue;
      BarrierInserter inserter(function);
      if (failed(inserter.run()))
        return signalPassFailure();
      numBarriers += inserter.numBarriers;
    }
  }
};
} // namespace
