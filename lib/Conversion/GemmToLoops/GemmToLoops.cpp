//===- GemmToLoops.cpp - Matmuls as loops around micro-kernels ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"

#include "Epilogue.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Target/Target.h"

#include <set>

namespace sandwich {
#define GEN_PASS_DEF_GEMMTOLOOPS
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// Epilogues read vectors of 16 f32 that may begin at the last sum.
constexpr int64_t scratchPaddingBytes = 64;

/// What each call of a micro-kernel prefetches in a round of its loop.
struct PrefetchPlan {
  /// Of each stream, of which each panel has so many.
  int64_t lines = 0;
  int64_t streams = 1;
  int64_t panels = 1;
  /// Calls that together prefetch all lines of a panel, and of the slice.
  int64_t sharesOfPanel = 1;
  int64_t shares = 1;
};

/// Lowers one nest.
class NestLowering {
public:
  NestLowering(gemm::NestOp op, MicroKernelLibrary &kernels);

  /// The most bytes of sums that the nest needs.
  int64_t scratchBytes() const {
    return schedule.slice[0] * schedule.slice[1] * 4 + scratchPaddingBytes;
  }
  /// Replaces the nest by its loops. The sums lie in `scratch`, aligned to a
  /// cache line, if the nest has no memory of its own for them.
  void emit(Value scratch);

private:
  void emitRowBlocks(function_ref<void()> body);
  void emitColumnBlocks(function_ref<void()> body);
  /// One block of sums: its loops over K, panels and strips, and the body.
  void emitBlock();
  void emitPanels(Value begin, Value end, int64_t width);
  void emitStrips(Value panelColumn, int64_t width);
  void emitCall(int64_t width, Value rows, const PrefetchPlan &prefetch,
                MicroKernelArguments arguments);
  void inlineBody();

  PrefetchPlan planPrefetch(int64_t width) const;
  /// Sets where the call number `share` for the slice prefetches.
  void emitPrefetchArguments(int64_t width, const PrefetchPlan &plan,
                             Value panelColumn, Value share,
                             MicroKernelArguments &arguments);
  /// The first element of the slice that the thread reads after this one.
  Value emitNextSlice(Value panelColumn, int64_t width);
  /// The rows that a strip can have, ascending.
  std::set<int64_t> stripRows();

  bool hasSizes() { return !op.getSizes().empty(); }
  Value select(Value condition, Value a, Value b_) {
    return arith::SelectOp::create(b, condition, a, b_);
  }
  Value less(Value a, Value b_) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, a, b_);
  }
  Value divideUp(Value a, Value b_) {
    return b.div(b.add(a, b.sub(b_, b.index(1))), b_);
  }
  /// The element of the packed weight at a column, a multiple of the panel,
  /// and a k.
  Value weightElement(Value column, Value k) {
    return b.add(b.mul(b.div(column, packing.panel), this->k * packing.panel),
                 b.mul(k, packing.panel));
  }
  /// Shares `total` out among `parts` as evenly as possible: the first and the
  /// number of those that part `part` gets.
  std::pair<Value, Value> share(Value total, Value parts, Value part) {
    Value quotient = b.div(total, parts), rest = b.rem(total, parts);
    Value first = b.add(b.mul(part, quotient), b.min(part, rest));
    Value one = select(less(part, rest), b.index(1), b.index(0));
    return {first, b.add(quotient, one)};
  }

  gemm::NestOp op;
  MicroKernelLibrary &kernels;
  LoopBuilder b;
  Schedule schedule;
  Packing packing;
  /// Of the weight.
  int64_t k, elementBytes;
  int64_t inputStride;

  /// Sizes of the slice and rows of the micro-kernel.
  Value bM, bN, bK, kernelRows;
  Value weight, block;
  // Values of the loops around the insertion point.
  Value nextBlockRow, blockRow, blockRows, blockColumn, blockColumns;
  Value sliceK, sliceKSize, sums;
};

} // namespace

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

static int64_t getRowStride(Value buffer) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)cast<MemRefType>(buffer.getType()).getStridesAndOffset(strides, offset);
  return strides.front();
}

NestLowering::NestLowering(gemm::NestOp op, MicroKernelLibrary &kernels)
    : op(op), kernels(kernels), b(op.getLoc(), op),
      schedule(op.getSchedule().getSchedule()), packing(op.getPacking()),
      k(op.getK()), inputStride(getRowStride(op.getInput())) {
  auto type = cast<MemRefType>(op.getWeight().getType());
  elementBytes = type.getElementTypeBitWidth() / 8;
}

std::set<int64_t> NestLowering::stripRows() {
  std::set<int64_t> result;
  int64_t rows = schedule.microKernel.rows;
  if (hasSizes()) {
    for (int64_t strip = 1; strip <= rows; ++strip)
      result.insert(strip);
    return result;
  }
  int64_t bM = schedule.slice[0];
  int64_t minRows = std::max<int64_t>(op.getRowsBetween()[0], 1);
  int64_t maxRows = op.getRowsBetween()[1];
  // Blocks are balanced, so the smallest one is that of the fewest rows, or
  // of the fewest that need one block more than those.
  int64_t blocks = sandwich::divideUp(minRows, bM);
  int64_t smallest = minRows / blocks;
  if (blocks * bM < maxRows)
    smallest = std::min(smallest, (blocks * bM + 1) / (blocks + 1));
  int64_t largest = std::min(bM, maxRows);
  for (int64_t block = smallest; block <= largest; ++block) {
    int64_t strips = sandwich::divideUp(block, rows);
    result.insert(block / strips);
    result.insert(sandwich::divideUp(block, strips));
  }
  return result;
}

PrefetchPlan NestLowering::planPrefetch(int64_t width) const {
  if (schedule.prefetchLines == 0)
    return {};
  int64_t step = getLoopStep(schedule.microKernel.isa);
  int64_t lines = schedule.prefetchLines * (step / (4 * packing.kPack));
  int64_t panelLines = std::max<int64_t>(
      step * packing.panel * elementBytes / cacheLineBytes, 1);
  int64_t panels = std::max<int64_t>(width / packing.panel, 1);
  PrefetchPlan plan;
  plan.panels = std::min(sandwich::divideUp(lines, panelLines), panels);
  plan.streams = std::clamp<int64_t>(schedule.prefetchStreams / plan.panels, 1,
                                     panelLines);
  plan.lines = std::min(sandwich::divideUp(lines, plan.panels * plan.streams),
                        panelLines / plan.streams);
  plan.sharesOfPanel =
      sandwich::divideUp(panelLines, plan.lines * plan.streams);
  plan.shares = plan.sharesOfPanel * sandwich::divideUp(panels, plan.panels);
  return plan;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

void NestLowering::emit(Value scratch) {
  // One dimension, so that micro-kernels do not depend on the weight's shape.
  ReassociationIndices all{0, 1, 2, 3, 4, 5};
  weight = memref::CollapseShapeOp::create(b, op.getWeight(),
                                           ArrayRef<ReassociationIndices>(all));
  Type element = cast<MemRefType>(weight.getType()).getElementType();
  weight = memref::CastOp::create(
      b, MemRefType::get({ShapedType::kDynamic}, element), weight);

  SmallVector<int64_t> shape(schedule.slice.begin(),
                             schedule.slice.begin() + 2);
  SmallVector<Value> dynamicShape;
  if (hasSizes()) {
    bM = op.getSizes()[0];
    bN = op.getSizes()[1];
    bK = op.getSizes()[2];
    kernelRows = op.getSizes()[3];
    dynamicShape = {bM, bN};
    shape.assign(2, ShapedType::kDynamic);
  } else {
    bM = b.index(schedule.slice[0]);
    bN = b.index(schedule.slice[1]);
    bK = b.index(schedule.slice[2]);
    kernelRows = b.index(schedule.microKernel.rows);
  }
  if (op.getScratch())
    scratch = op.getScratch();
  block = memref::ViewOp::create(b, MemRefType::get(shape, b.getF32Type()),
                                 scratch, b.index(0), dynamicShape);
  if (schedule.order == LoopOrder::RowsOuter)
    emitRowBlocks([&] { emitColumnBlocks([&] { emitBlock(); }); });
  else
    emitColumnBlocks([&] { emitRowBlocks([&] { emitBlock(); }); });
  op.erase();
}

void NestLowering::emitRowBlocks(function_ref<void()> body) {
  Value rows = b.sub(op.getRowEnd(), op.getRowBegin());
  Value blocks = divideUp(rows, bM);
  b.forLoop(b.index(0), blocks, 1, [&](Value number) {
    auto [first, count] = share(rows, blocks, number);
    blockRow = b.add(op.getRowBegin(), first);
    blockRows = count;
    nextBlockRow = less(b.add(number, 1), blocks);
    body();
  });
}

void NestLowering::emitColumnBlocks(function_ref<void()> body) {
  auto loop = scf::ForOp::create(b, op.getColumnBegin(), op.getColumnEnd(), bN);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  blockColumn = loop.getInductionVar();
  blockColumns = b.min(bN, b.sub(op.getColumnEnd(), blockColumn));
  body();
}

void NestLowering::emitBlock() {
  OpFoldResult blockWidth = bN;
  if (!hasSizes())
    blockWidth = b.getIndexAttr(schedule.slice[1]);
  sums = memref::SubViewOp::create(
      b, block, ArrayRef<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(0)},
      {blockRows, blockWidth}, {b.getIndexAttr(1), b.getIndexAttr(1)});
  auto loop = scf::ForOp::create(b, op.getKBegin(), op.getKEnd(), bK);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    sliceK = loop.getInductionVar();
    sliceKSize = b.min(bK, b.sub(op.getKEnd(), sliceK));
    int64_t width = std::max(schedule.microKernel.columns, packing.panel);
    // Where a block can end between the panels of a wide micro-kernel, the
    // rest goes panel by panel.
    if (width == packing.panel ||
        (op.getUnit() % width == 0 && op.getPackedColumns() % width == 0)) {
      emitPanels(b.index(0), blockColumns, width);
    } else {
      Value wide = b.sub(blockColumns, b.rem(blockColumns, width));
      emitPanels(b.index(0), wide, width);
      emitPanels(wide, blockColumns, packing.panel);
    }
  }
  inlineBody();
}

void NestLowering::emitPanels(Value begin, Value end, int64_t width) {
  b.forLoop(begin, end, width,
            [&](Value column) { emitStrips(column, width); });
}

void NestLowering::emitStrips(Value panelColumn, int64_t width) {
  PrefetchPlan prefetch = planPrefetch(width);
  Value strips = divideUp(blockRows, kernelRows);
  Value firstElement = weightElement(b.add(blockColumn, panelColumn), sliceK);
  Value accumulate = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, sliceK,
                                           op.getKBegin());
  // Micro-kernels narrower than a panel take it part by part.
  int64_t partColumns = std::min(schedule.microKernel.columns, packing.panel);
  for (int64_t part = 0; part < packing.panel / partColumns; ++part) {
    int64_t partColumn = part * partColumns;
    b.forLoop(b.index(0), strips, 1, [&](Value strip) {
      auto [firstRow, rows] = share(blockRows, strips, strip);
      MicroKernelArguments arguments;
      arguments.input = op.getInput();
      arguments.firstRow = b.add(blockRow, firstRow);
      arguments.firstK = sliceK;
      arguments.k = sliceKSize;
      arguments.weight = weight;
      arguments.weightOffset =
          b.add(firstElement, getColumnOffset(packing, partColumn));
      arguments.panelStride = b.index(k * packing.panel);
      arguments.sums = sums;
      arguments.sumsRow = firstRow;
      arguments.sumsColumn = b.add(panelColumn, partColumn);
      arguments.accumulate = accumulate;
      Value shareNumber = b.add(b.mul(strips, part), strip);
      emitPrefetchArguments(width, prefetch, panelColumn, shareNumber,
                            arguments);
      emitCall(width, rows, prefetch, arguments);
    });
  }
}

void NestLowering::emitCall(int64_t width, Value rows,
                            const PrefetchPlan &prefetch,
                            MicroKernelArguments arguments) {
  MicroKernelSpecialization specialization;
  specialization.kernel = schedule.microKernel;
  specialization.kernel.columns =
      std::min(specialization.kernel.columns, width);
  specialization.inputStride = inputStride;
  specialization.widensWeights =
      elementBytes == 2 && !multipliesBF16(schedule.microKernel.isa);
  specialization.packing = packing;
  specialization.prefetchLines = prefetch.lines;
  specialization.prefetchStreams = prefetch.streams;
  specialization.prefetchPanels = prefetch.panels;

  std::set<int64_t> variants = stripRows();
  auto callVariant = [&](int64_t variant) {
    specialization.kernel.rows = variant;
    kernels.call(b, specialization, arguments);
  };
  if (variants.size() == 1) {
    callVariant(*variants.begin());
    return;
  }
  int64_t largest = *variants.rbegin();
  SmallVector<int64_t> cases(variants.begin(), std::prev(variants.end()));
  OpBuilder::InsertionGuard guard(b);
  auto choice =
      scf::IndexSwitchOp::create(b, TypeRange(), rows, cases, cases.size());
  auto fill = [&](Region &region, int64_t variant) {
    b.createBlock(&region);
    callVariant(variant);
    scf::YieldOp::create(b);
  };
  for (auto [variant, region] : llvm::zip_equal(cases, choice.getCaseRegions()))
    fill(region, variant);
  fill(choice.getDefaultRegion(), largest);
}

void NestLowering::inlineBody() {
  // Uses that can do with the type that is known here get it.
  Value cast = memref::CastOp::create(b, op.getSums().getType(), sums);
  for (OpOperand &use : llvm::make_early_inc_range(op.getSums().getUses()))
    use.set(isa<gemm::EpilogueOp>(use.getOwner()) ? sums : cast);
  Value place[] = {blockRow, blockRows, blockColumn, blockColumns};
  for (auto [argument, value] : llvm::zip_equal(op.getPlace(), place))
    argument.replaceAllUsesWith(value);
  b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(),
                                                op.getBody()->getOperations());
}

void NestLowering::emitPrefetchArguments(int64_t width,
                                         const PrefetchPlan &plan,
                                         Value panelColumn, Value share,
                                         MicroKernelArguments &arguments) {
  arguments.prefetchStreamStride = b.index(0);
  if (plan.lines == 0) {
    arguments.prefetchOffset = arguments.prefetchStride = b.index(0);
    return;
  }
  int64_t step = getLoopStep(schedule.microKernel.isa);
  int64_t lineElements = cacheLineBytes / elementBytes;
  int64_t shareElements = plan.lines * lineElements;
  Value panel = b.index(0), shareOfPanel = share;
  if (plan.shares > plan.sharesOfPanel) {
    panel = b.mul(b.div(share, plan.sharesOfPanel), plan.panels);
    shareOfPanel = b.rem(share, plan.sharesOfPanel);
  }
  Value base = b.mul(panel, arguments.panelStride), stride;
  if (schedule.prefetchDistance > 0) {
    Value distance = hasSizes()
                         ? b.div(op.getSizes()[4], elementBytes)
                         : b.index(schedule.prefetchDistance / elementBytes);
    base = b.add(base, weightElement(b.add(blockColumn, panelColumn), sliceK));
    base = b.add(base, distance);
    base = b.add(base, b.mul(shareOfPanel, shareElements));
    stride = b.index(step * packing.panel);
  } else {
    base = b.add(base, emitNextSlice(panelColumn, width));
    Value steps = b.div(sliceKSize, step);
    base = b.add(base, b.mul(b.mul(shareOfPanel, steps), shareElements));
    stride = b.index(shareElements);
    if (plan.streams > 1) {
      int64_t panelLines = step * packing.panel * elementBytes / cacheLineBytes;
      Value lines = b.div(b.add(b.mul(steps, panelLines), plan.streams - 1),
                          plan.streams);
      arguments.prefetchStreamStride = b.mul(lines, lineElements);
    }
  }
  // Calls beyond those that share the lines out touch one line again and
  // again, which costs less than a second variant of the code.
  Value shares = less(share, b.index(plan.shares));
  arguments.prefetchOffset = select(shares, base, arguments.weightOffset);
  arguments.prefetchStride = select(shares, stride, b.index(0));
}

Value NestLowering::emitNextSlice(Value panelColumn, int64_t width) {
  Value nextColumn = b.add(panelColumn, width);
  Value nextK = b.add(sliceK, bK);
  // After the last slice of a block: the next one of the inner loop, or the
  // first one of the next block of the outer loop.
  Value nextBlock = b.add(blockColumn, bN);
  nextBlock = select(less(nextBlock, op.getColumnEnd()), nextBlock,
                     op.getColumnBegin());
  if (schedule.order == LoopOrder::ColumnsOuter)
    nextBlock = select(nextBlockRow, blockColumn, nextBlock);
  Value inBlock = less(nextColumn, blockColumns);
  Value inK = less(nextK, op.getKEnd());
  Value column = select(inBlock, b.add(blockColumn, nextColumn),
                        select(inK, blockColumn, nextBlock));
  Value k = select(inBlock, sliceK, select(inK, nextK, op.getKBegin()));
  return weightElement(column, k);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct GemmToLoops : public sandwich::impl::GemmToLoopsBase<GemmToLoops> {
  void runOnOperation() override {
    MicroKernelLibrary kernels(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (failed(lowerFunction(function, kernels)))
        return signalPassFailure();
  }

  LogicalResult lowerFunction(func::FuncOp function,
                              MicroKernelLibrary &kernels) {
    WalkResult matmuls = function.walk([](gemm::MatmulOp op) {
      op.emitOpError("must have become nests; run gemm-dispatch, gemm-split-k "
                     "and gemm-polymerize first");
      return WalkResult::interrupt();
    });
    if (matmuls.wasInterrupted())
      return failure();
    std::vector<NestLowering> nests;
    int64_t bytes = 0;
    function.walk([&](gemm::NestOp op) {
      nests.emplace_back(op, kernels);
      if (!op.getScratch())
        bytes = std::max(bytes, nests.back().scratchBytes());
    });
    // All nests of the function use the same memory in turn.
    Value scratch;
    if (bytes > 0) {
      auto builder = ImplicitLocOpBuilder::atBlockBegin(
          function.getLoc(), &function.getBody().front());
      scratch = memref::AllocaOp::create(
          builder, MemRefType::get({bytes}, builder.getI8Type()),
          builder.getI64IntegerAttr(cacheLineBytes));
    }
    for (NestLowering &nest : nests)
      nest.emit(scratch);

    SmallVector<gemm::EpilogueOp> epilogues;
    function.walk([&](gemm::EpilogueOp op) { epilogues.push_back(op); });
    for (gemm::EpilogueOp op : epilogues)
      emitEpilogue(op);
    return success();
  }
};

} // namespace
