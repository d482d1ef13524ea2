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
#include "sandwich/Support/CheckedMath.h"
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

  bool operator==(const MemoryRange &other) const = default;
};

struct Access {
  MemoryRange range;
  /// The buffer as the operation names it.
  Value buffer;
  bool isWrite;
  /// Each thread touches its own share of the rows only.
  bool byRows;

  /// Whether the other must not run beside it on different threads.
  bool conflictsWith(const Access &other) const {
    if (!isWrite && !other.isWrite)
      return false;
    if (!range.overlaps(other.range))
      return false;
    return !(byRows && other.byRows && buffer == other.buffer);
  }

  bool operator==(const Access &other) const = default;
};

/// What threads may have touched since the last barrier. More than models ever
/// need become one write to any memory, so that it takes no long look.
class AccessSet {
public:
  void add(ArrayRef<Access> more) {
    for (const Access &access : more)
      if (!llvm::is_contained(accesses, access))
        accesses.push_back(access);
    constexpr size_t mostTold = 64;
    if (accesses.size() > mostTold)
      accesses = {{MemoryRange(), Value(), /*isWrite=*/true, /*byRows=*/false}};
  }
  void add(const AccessSet &more) { add(more.accesses); }
  void clear() { accesses.clear(); }

  bool conflictsWith(ArrayRef<Access> later) const {
    return llvm::any_of(later, [&](const Access &access) {
      return llvm::any_of(accesses, [&](const Access &earlier) {
        return access.conflictsWith(earlier);
      });
    });
  }

private:
  SmallVector<Access> accesses;
};

class BarrierInserter {
public:
  explicit BarrierInserter(func::FuncOp program)
      : program(program), attribute(phase::getProgram(program)) {}

  int64_t numBarriers = 0;

  LogicalResult run() {
    AccessSet pending;
    return visit(program.getBody().front(), pending, /*isFirst=*/true);
  }

private:
  LogicalResult visit(Block &block, AccessSet &pending, bool isFirst);
  void visitOperation(Operation *op, AccessSet &pending);
  SmallVector<Access> accessesOf(Operation *op);
  MemoryRange rangeOf(Value buffer);
  std::optional<MemoryRange> rangeOf(memref::ViewOp view, Value root);

  func::FuncOp program;
  phase::ProgramAttr attribute;
  /// Of the buffers that were asked for, and all they are views of.
  DenseMap<Value, MemoryRange> ranges;
};

} // namespace

/// The most that `view` of `root`, an argument of the program, can cover, if it
/// is known.
std::optional<MemoryRange> BarrierInserter::rangeOf(memref::ViewOp view,
                                                    Value root) {
  APInt offset;
  if (view.getSource() != root ||
      !matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
    return std::nullopt;
  MemRefType type = view.getType();
  if (!type.getElementType().isIntOrFloat())
    return std::nullopt;
  SmallVector<int64_t> shape(type.getShape());
  if (type.getRank() == 2 && type.isDynamicDim(0))
    shape[0] = std::max(attribute.getMaxTokens(), attribute.getMaxLogitRows());
  std::optional<int64_t> end =
      divideUp<int64_t>(type.getElementTypeBitWidth(), 8);
  for (int64_t size : shape) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    if (end)
      end = checkedMultiply(*end, size);
  }
  if (end)
    end = checkedAdd(*end, offset.getSExtValue());
  if (!end)
    return std::nullopt;
  return MemoryRange{root, offset.getSExtValue(), *end};
}

/// The memory behind `buffer`; for a view of the workspace, the most it can
/// cover.
MemoryRange BarrierInserter::rangeOf(Value buffer) {
  // What is a view of what, up to something known.
  SmallVector<Value> views;
  MemoryRange range;
  for (Value source = buffer;;) {
    if (auto known = ranges.find(source); known != ranges.end()) {
      range = known->second;
      break;
    }
    views.push_back(source);
    auto view = source.getDefiningOp<ViewLikeOpInterface>();
    if (!view) {
      if (isa<BlockArgument>(source) &&
          source.getParentBlock() == &program.getBody().front())
        range.root = source;
      break;
    }
    source = view.getViewSource();
  }
  for (Value each : llvm::reverse(views)) {
    if (auto view = each.getDefiningOp<memref::ViewOp>(); view && range.root)
      range = rangeOf(view, range.root).value_or(range);
    ranges[each] = range;
  }
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
  auto step = dyn_cast<lm::StepOpInterface>(op);
  const bool splitsRows = step && step.splitsRows();
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    Value buffer = effect.getValue();
    if (!buffer)
      continue;
    // Rows of a cache are places that tokens of any row may have.
    auto type = dyn_cast<MemRefType>(buffer.getType());
    const bool hasRows = type && type.getRank() <= 2;
    accesses.push_back({rangeOf(buffer), buffer,
                        isa<MemoryEffects::Write>(effect.getEffect()),
                        splitsRows && hasRows});
  }
  return accesses;
}

/// Puts a barrier before `op` if it must not run beside what is pending.
void BarrierInserter::visitOperation(Operation *op, AccessSet &pending) {
  SmallVector<Access> accesses = accessesOf(op);
  if (pending.conflictsWith(accesses)) {
    OpBuilder builder(op);
    phase::BarrierOp::create(
        builder, op->getLoc(),
        phase::getArgument(program, phase::ProgramArgument::Team));
    ++numBarriers;
    pending.clear();
  }
  pending.add(accesses);
}

/// Separates what is in `block` from what is pending before it, which becomes
/// what is pending behind it; and, at the first visit, from what else is in it.
LogicalResult BarrierInserter::visit(Block &block, AccessSet &pending,
                                     bool isFirst) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<phase::BarrierOp>(op)) {
      pending.clear();
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      AccessSet entry = pending;
      if (failed(visit(*loop.getBody(), pending, isFirst)))
        return failure();
      // What an iteration leaves pending meets the next one's first
      // operations. Once separated they stay so, whatever else comes in.
      if (isFirst && failed(visit(*loop.getBody(), pending, false)))
        return failure();
      // A loop that may run no iteration leaves what came before it pending.
      std::optional<APInt> iterations = loop.getStaticTripCount();
      if (!iterations || iterations->isZero())
        pending.add(entry);
      continue;
    }
    WalkResult nested = isFirst ? op.walk([&](Operation *inner) {
      return inner != &op && concernsThreads(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
    })
                                : WalkResult::advance();
    if (nested.wasInterrupted())
      return op.emitOpError("cannot hold what all threads run together; only "
                            "loops can");
    visitOperation(&op, pending);
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
