//===- GemmToLoops.cpp - Matmuls as loops around micro-kernels ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Conversion/WeightAccess.h"

#include "Epilogue.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Target/Target.h"

#include <numeric>
#include <set>

namespace sandwich {
#define GEN_PASS_DEF_GEMMTOLOOPS
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// The most a thread keeps on its stack for one block of sums.
constexpr int64_t maxScratchBytes = 1 << 20;
/// Epilogues read vectors of 16 f32 that may begin at the last sum.
constexpr int64_t scratchPaddingBytes = 64;

int64_t roundUp(int64_t a, int64_t b) { return divideUp(a, b) * b; }

/// The static sizes of one matmul.
struct MatmulSizes {
  int64_t k = 0;
  /// Weight rows as packed, with those that fill up groups of interleaved
  /// weights, but not those that fill up the last panel.
  int64_t columns = 0;
  /// Columns that stay together on one thread.
  int64_t unit = 0;
  Packing packing;
  int64_t inputStride = 0;
  int64_t weightElementBytes = 0;
  bool widensWeights = false;
  int64_t maxTokens = 0;

  int64_t packedColumns() const { return roundUp(columns, packing.panel); }
};

/// One schedule with the token counts it serves, its slice cut to the matmul.
struct ScheduleRange {
  int64_t minRows, maxRows;
  Schedule schedule;

  int64_t scratchBytes() const {
    return schedule.slice[0] * schedule.slice[1] * 4 + scratchPaddingBytes;
  }
};

/// The kernel's calls for one slice of the weight: what they prefetch.
struct PrefetchPlan {
  int64_t lines = 0;
  int64_t panels = 1;
  /// Calls that together prefetch all lines of a panel, and of the slice.
  int64_t sharesOfPanel = 1;
  int64_t shares = 1;
};

/// Lowers one matmul.
class MatmulLowering {
public:
  MatmulLowering(gemm::MatmulOp op, MicroKernelLibrary &kernels)
      : op(op), kernels(kernels), builder(op.getLoc(), op) {}

  /// Checks the matmul and its schedules, and plans its nests.
  LogicalResult plan();
  int64_t scratchBytes() const;
  /// Emits the nests. `scratch` is a memref<?xi8>-like buffer of at least
  /// `scratchBytes()`, aligned to 64 bytes.
  LogicalResult emit(Value scratch);

private:
  LogicalResult planSchedule(int64_t minRows, int64_t maxRows,
                             Schedule schedule);

  void emitRanges(ArrayRef<ScheduleRange> ranges);
  void emitNest(const ScheduleRange &range);
  /// One block of sums: its loops over K, panels and strips.
  void emitBlock(const ScheduleRange &range, Value firstRow, Value rows,
                 Value firstColumn, Value columns);
  void emitPanels(const ScheduleRange &range, Value begin, Value end,
                  int64_t width);
  void emitStrips(const ScheduleRange &range, Value panelColumn, int64_t width);
  void emitCall(const ScheduleRange &range, int64_t width, Value rows,
                const PrefetchPlan &prefetch, MicroKernelArguments arguments);

  PrefetchPlan planPrefetch(const Schedule &schedule, int64_t width) const;
  /// Sets where the call number `share` for the slice prefetches.
  void emitPrefetchArguments(const ScheduleRange &range, int64_t width,
                             const PrefetchPlan &plan, Value panelColumn,
                             Value share, MicroKernelArguments &arguments);
  /// The first element of the slice that the thread reads after this one.
  Value emitNextSlice(const ScheduleRange &range, Value panelColumn,
                      int64_t width);
  /// The rows a strip of `range` can have, ascending.
  std::set<int64_t> stripRows(const ScheduleRange &range) const;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, a, b); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : mul(a, index(b)); }
  Value div(Value a, Value b) { return arith::DivUIOp::create(builder, a, b); }
  Value div(Value a, int64_t b) { return b == 1 ? a : div(a, index(b)); }
  Value rem(Value a, Value b) { return arith::RemUIOp::create(builder, a, b); }
  Value min(Value a, Value b) { return arith::MinUIOp::create(builder, a, b); }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, condition, a, b);
  }
  Value less(Value a, Value b) {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, a, b);
  }
  Value divideUp(Value a, int64_t b) { return div(add(a, index(b - 1)), b); }
  /// The element of the packed weight at a column, a multiple of the panel,
  /// and a k.
  Value weightElement(Value column, Value k) {
    return add(
        mul(div(column, sizes.packing.panel), sizes.k * sizes.packing.panel),
        mul(k, sizes.packing.panel));
  }
  void forEach(Value begin, Value end, int64_t step,
               function_ref<void(Value)> body) {
    OpBuilder::InsertionGuard guard(builder);
    auto loop = scf::ForOp::create(builder, begin, end, index(step));
    builder.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  /// Shares `total` out among `parts` as evenly as possible: the first and the
  /// number of those that part `part` gets.
  std::pair<Value, Value> share(Value total, Value parts, Value part) {
    Value quotient = div(total, parts), rest = rem(total, parts);
    Value first = add(mul(part, quotient), min(part, rest));
    Value one = select(less(part, rest), index(1), index(0));
    return {first, add(quotient, one)};
  }

  gemm::MatmulOp op;
  MicroKernelLibrary &kernels;
  LoopBuilder builder;
  MatmulSizes sizes;
  SmallVector<ScheduleRange> ranges;

  // Values of the thread, then of the loops around the insertion point.
  Value tokens, weight, scratch, threadBegin, threadEnd;
  Value blockRow, blockRows, blockColumn, blockColumns, sliceK, sliceKSize,
      sums;
};

} // namespace

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// The static distance of the rows of a buffer, or an error on `op`.
static FailureOr<int64_t> getRowStride(gemm::MatmulOp op, Value buffer,
                                       StringRef name) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(buffer.getType());
  if (failed(type.getStridesAndOffset(strides, offset)) || strides[1] != 1 ||
      ShapedType::isDynamic(strides[0]))
    return op.emitOpError("needs ")
           << name << " with contiguous rows at a static distance, not "
           << type;
  return strides[0];
}

LogicalResult MatmulLowering::plan() {
  if (!op.getDestination())
    return op.emitOpError("must be in buffer form to become loops");
  auto function = op->getParentOfType<func::FuncOp>();
  phase::ProgramAttr program =
      function ? phase::getProgram(function) : phase::ProgramAttr();
  if (!program)
    return op.emitOpError("must be inside a phase program to become loops");
  if (!op.getSchedules())
    return op.emitOpError("needs schedules to become loops");

  lm::WeightOp weightOp = lm::lookupWeight(op, op.getWeightAttr());
  auto packing = dyn_cast_or_null<gemm::PackingAttr>(weightOp.getPackingAttr());
  if (!packing || !weightOp.getOffset())
    return op.emitOpError("needs a weight with a packing and a place: ")
           << op.getWeightAttr();
  for (FlatSymbolRefAttr name :
       {op.getBiasAttr(), op.getQueryNormAttr(), op.getKeyNormAttr()}) {
    if (name && !lm::lookupWeight(op, name).getOffset())
      return op.emitOpError("needs the place of weight ")
             << name << " in the artifact";
  }
  FailureOr<int64_t> inputStride = getRowStride(op, op.getInput(), "an input");
  if (failed(inputStride) ||
      failed(getRowStride(op, op.getDestination(), "a destination")) ||
      (op.getResidual() &&
       failed(getRowStride(op, op.getResidual(), "a residual"))))
    return failure();

  MatmulShape shape = gemm::getShape(op);
  sizes.k = shape.k;
  sizes.columns = weightOp.getStoredRows();
  sizes.packing = packing.getPacking();
  sizes.unit = std::lcm(sizes.packing.panel, shape.columnUnit);
  sizes.inputStride = *inputStride;
  sizes.weightElementBytes = shape.bf16Weights ? 2 : 4;
  sizes.widensWeights = shape.bf16Weights && sizes.packing.kPack == 1;
  sizes.maxTokens = program.getMaxTokens();

  int64_t minRows = 1;
  for (auto [maxRows, attribute] :
       llvm::zip_equal(op.getSchedules()->getMaxRows(),
                       op.getSchedules()->getSchedules())) {
    const Schedule &schedule = attribute.getSchedule();
    if (schedule.threads[1] > program.getThreads())
      return op.emitOpError("has a schedule for ")
             << schedule.threads[1] << " threads, the program has "
             << program.getThreads();
    if (failed(planSchedule(minRows, maxRows, schedule)))
      return failure();
    if (maxRows >= sizes.maxTokens)
      break;
    minRows = maxRows + 1;
  }
  return success();
}

LogicalResult MatmulLowering::planSchedule(int64_t minRows, int64_t maxRows,
                                           Schedule schedule) {
  if (schedule.threads[0] != 1 || schedule.threads[2] != 1)
    return op.emitOpError("has a thread grid of [")
           << ArrayRef(schedule.threads)
           << "], but only columns can be split over threads";
  const MicroKernel &kernel = schedule.microKernel;
  if (packingOf(kernel.isa) != sizes.packing)
    return op.emitOpError("has a micro-kernel ")
           << kernel.name() << " that does not read the packing of "
           << op.getWeightAttr();
  int64_t panel = sizes.packing.panel;
  if (kernel.columns % panel != 0 && panel % kernel.columns != 0)
    return op.emitOpError("has a micro-kernel ")
           << kernel.name()
           << " whose columns neither divide a panel nor are a multiple of "
              "its "
           << panel;

  // A slice never needs to be larger than the matmul, and its sums fit the
  // scratch memory.
  auto &[bM, bN, bK] = schedule.slice;
  bN = std::min(
      bN, roundUp(sizes.packedColumns(), std::lcm(sizes.unit, kernel.columns)));
  bK = std::min(bK, sizes.k);
  bM = std::min({bM, sizes.maxTokens, maxScratchBytes / (4 * bN)});
  if (bM == 0)
    return op.emitOpError("has a slice of ")
           << bN << " columns, more than its scratch memory holds";
  maxRows = std::min(maxRows, sizes.maxTokens);
  if (!ranges.empty() && ranges.back().schedule == schedule)
    ranges.back().maxRows = maxRows;
  else
    ranges.push_back({minRows, maxRows, schedule});
  return success();
}

int64_t MatmulLowering::scratchBytes() const {
  int64_t bytes = 0;
  for (const ScheduleRange &range : ranges)
    bytes = std::max(bytes, range.scratchBytes());
  return bytes;
}

std::set<int64_t> MatmulLowering::stripRows(const ScheduleRange &range) const {
  int64_t bM = range.schedule.slice[0];
  int64_t rows = range.schedule.microKernel.rows;
  // Blocks are balanced, so the smallest one is that of the fewest tokens, or
  // of the fewest that need one block more than those.
  int64_t blocks = sandwich::divideUp(range.minRows, bM);
  int64_t smallest = range.minRows / blocks;
  if (blocks * bM < range.maxRows)
    smallest = std::min(smallest, (blocks * bM + 1) / (blocks + 1));
  int64_t largest = std::min(bM, range.maxRows);
  std::set<int64_t> result;
  for (int64_t block = smallest; block <= largest; ++block) {
    int64_t strips = sandwich::divideUp(block, rows);
    result.insert(block / strips);
    result.insert(sandwich::divideUp(block, strips));
  }
  return result;
}

PrefetchPlan MatmulLowering::planPrefetch(const Schedule &schedule,
                                          int64_t width) const {
  const Packing &packing = sizes.packing;
  if (schedule.prefetchLines == 0)
    return {};
  int64_t step = getLoopStep(schedule.microKernel.isa);
  int64_t lines = schedule.prefetchLines * (step / (4 * packing.kPack));
  int64_t panelLines = std::max<int64_t>(
      step * packing.panel * sizes.weightElementBytes / cacheLineBytes, 1);
  int64_t panels = std::max<int64_t>(width / packing.panel, 1);
  PrefetchPlan plan;
  plan.lines = std::min(lines, panelLines);
  plan.panels = std::min(sandwich::divideUp(lines, panelLines), panels);
  plan.sharesOfPanel = sandwich::divideUp(panelLines, plan.lines);
  plan.shares = plan.sharesOfPanel * sandwich::divideUp(panels, plan.panels);
  return plan;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

LogicalResult MatmulLowering::emit(Value scratchBuffer) {
  auto function = op->getParentOfType<func::FuncOp>();
  scratch = scratchBuffer;
  tokens = memref::DimOp::create(builder, op.getInput(), index(0));
  Value slice = getWeightSlice(builder, op, op.getWeightAttr(), op.getLayer());
  // One dimension, so that micro-kernels do not depend on the weight's shape.
  ReassociationIndices all{0, 1, 2, 3, 4, 5};
  slice = memref::CollapseShapeOp::create(builder, slice,
                                          ArrayRef<ReassociationIndices>(all));
  weight = memref::CastOp::create(
      builder,
      MemRefType::get({ShapedType::kDynamic},
                      cast<MemRefType>(slice.getType()).getElementType()),
      slice);

  int64_t threads = ranges.front().schedule.threads[1];
  if (!llvm::all_of(ranges, [&](const ScheduleRange &range) {
        return range.schedule.threads[1] == threads;
      }))
    return op.emitOpError(
        "has schedules that differ in the threads that share the columns");
  // Threads beyond the grid get an empty share.
  Value thread =
      min(phase::getArgument(function, phase::ProgramArgument::Thread),
          index(threads));
  int64_t units = sandwich::divideUp(sizes.columns, sizes.unit);
  auto boundary = [&](Value part) {
    Value column = mul(div(mul(part, units), threads), sizes.unit);
    return min(column, index(sizes.packedColumns()));
  };
  Value next = min(add(thread, index(1)), index(threads));
  threadBegin = boundary(thread);
  threadEnd = boundary(next);
  emitRanges(ranges);
  op.erase();
  return success();
}

void MatmulLowering::emitRanges(ArrayRef<ScheduleRange> ranges) {
  if (ranges.size() == 1)
    return emitNest(ranges.front());
  Value few = arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, tokens,
                                    index(ranges.front().maxRows));
  OpBuilder::InsertionGuard guard(builder);
  auto conditional = scf::IfOp::create(builder, few, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(conditional.thenBlock());
  emitNest(ranges.front());
  builder.setInsertionPointToStart(conditional.elseBlock());
  emitRanges(ranges.drop_front());
}

void MatmulLowering::emitNest(const ScheduleRange &range) {
  auto [bM, bN, bK] = range.schedule.slice;
  OpBuilder::InsertionGuard guard(builder);
  auto sumsType = MemRefType::get({bM, bN}, builder.getF32Type());
  Value block = memref::ViewOp::create(builder, sumsType, scratch, index(0),
                                       ValueRange());
  Value blocks = divideUp(tokens, bM);
  forEach(index(0), blocks, 1, [&](Value number) {
    std::tie(blockRow, blockRows) = share(tokens, blocks, number);
    forEach(threadBegin, threadEnd, bN, [&](Value column) {
      blockColumn = column;
      blockColumns = min(index(bN), sub(threadEnd, column));
      sums = memref::SubViewOp::create(
          builder, block,
          ArrayRef<OpFoldResult>{builder.getIndexAttr(0),
                                 builder.getIndexAttr(0)},
          {blockRows, builder.getIndexAttr(bN)},
          {builder.getIndexAttr(1), builder.getIndexAttr(1)});
      forEach(index(0), index(sizes.k), bK, [&](Value k) {
        sliceK = k;
        sliceKSize = min(index(bK), sub(index(sizes.k), k));
        int64_t width = range.schedule.microKernel.columns;
        width = std::max(width, sizes.packing.panel);
        // Where a block can end between the panels of a wide micro-kernel, the
        // rest goes panel by panel.
        if (width == sizes.packing.panel ||
            (sizes.unit % width == 0 && sizes.columns % width == 0)) {
          emitPanels(range, index(0), blockColumns, width);
        } else {
          Value rest = rem(blockColumns, index(width));
          Value wide = sub(blockColumns, rest);
          emitPanels(range, index(0), wide, width);
          emitPanels(range, wide, blockColumns, sizes.packing.panel);
        }
      });
      Value columns = min(blockColumns, sub(index(sizes.columns), blockColumn));
      emitEpilogue(builder, op,
                   {sums, blockRow, blockRows, blockColumn, columns});
    });
  });
}

void MatmulLowering::emitPanels(const ScheduleRange &range, Value begin,
                                Value end, int64_t width) {
  forEach(begin, end, width,
          [&](Value column) { emitStrips(range, column, width); });
}

void MatmulLowering::emitStrips(const ScheduleRange &range, Value panelColumn,
                                int64_t width) {
  const Schedule &schedule = range.schedule;
  const Packing &packing = sizes.packing;
  PrefetchPlan prefetch = planPrefetch(schedule, width);
  Value strips = divideUp(blockRows, schedule.microKernel.rows);
  Value firstElement = weightElement(add(blockColumn, panelColumn), sliceK);
  Value accumulate = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                                           sliceK, index(0));
  // Micro-kernels narrower than a panel take it part by part.
  int64_t partColumns = std::min(schedule.microKernel.columns, packing.panel);
  for (int64_t part = 0; part < packing.panel / partColumns; ++part) {
    int64_t partColumn = part * partColumns;
    forEach(index(0), strips, 1, [&](Value strip) {
      auto [firstRow, rows] = share(blockRows, strips, strip);
      MicroKernelArguments arguments;
      arguments.input = op.getInput();
      arguments.firstRow = add(blockRow, firstRow);
      arguments.firstK = sliceK;
      arguments.k = sliceKSize;
      arguments.weight = weight;
      arguments.weightOffset =
          add(firstElement, index(getColumnOffset(packing, partColumn)));
      arguments.panelStride = index(sizes.k * packing.panel);
      arguments.sums = sums;
      arguments.sumsRow = firstRow;
      arguments.sumsColumn = add(panelColumn, index(partColumn));
      arguments.accumulate = accumulate;
      Value shareNumber = add(mul(strips, index(part)), strip);
      emitPrefetchArguments(range, width, prefetch, panelColumn, shareNumber,
                            arguments);
      emitCall(range, width, rows, prefetch, arguments);
    });
  }
}

void MatmulLowering::emitCall(const ScheduleRange &range, int64_t width,
                              Value rows, const PrefetchPlan &prefetch,
                              MicroKernelArguments arguments) {
  MicroKernelSpecialization specialization;
  specialization.kernel = range.schedule.microKernel;
  specialization.kernel.columns =
      std::min(specialization.kernel.columns, width);
  specialization.inputStride = sizes.inputStride;
  specialization.widensWeights = sizes.widensWeights;
  specialization.prefetchLines = prefetch.lines;
  specialization.prefetchPanels = prefetch.panels;

  std::set<int64_t> variants = stripRows(range);
  auto callVariant = [&](int64_t variant) {
    specialization.kernel.rows = variant;
    kernels.call(builder, specialization, arguments);
  };
  if (variants.size() == 1) {
    callVariant(*variants.begin());
    return;
  }
  int64_t largest = *variants.rbegin();
  SmallVector<int64_t> cases(variants.begin(), std::prev(variants.end()));
  OpBuilder::InsertionGuard guard(builder);
  auto choice = scf::IndexSwitchOp::create(builder, TypeRange(), rows, cases,
                                           cases.size());
  auto fill = [&](Region &region, int64_t variant) {
    builder.createBlock(&region);
    callVariant(variant);
    scf::YieldOp::create(builder);
  };
  for (auto [variant, region] : llvm::zip_equal(cases, choice.getCaseRegions()))
    fill(region, variant);
  fill(choice.getDefaultRegion(), largest);
}

void MatmulLowering::emitPrefetchArguments(const ScheduleRange &range,
                                           int64_t width,
                                           const PrefetchPlan &plan,
                                           Value panelColumn, Value share,
                                           MicroKernelArguments &arguments) {
  const Schedule &schedule = range.schedule;
  if (plan.lines == 0) {
    arguments.prefetchOffset = arguments.prefetchStride = index(0);
    return;
  }
  int64_t step = getLoopStep(schedule.microKernel.isa);
  int64_t shareElements =
      plan.lines * cacheLineBytes / sizes.weightElementBytes;
  Value panel = index(0), shareOfPanel = share;
  if (plan.shares > plan.sharesOfPanel) {
    panel = mul(div(share, plan.sharesOfPanel), plan.panels);
    shareOfPanel = rem(share, index(plan.sharesOfPanel));
  }
  Value base = mul(panel, arguments.panelStride), stride;
  if (schedule.prefetchDistance > 0) {
    int64_t distance = schedule.prefetchDistance / sizes.weightElementBytes;
    base = add(base, add(weightElement(add(blockColumn, panelColumn), sliceK),
                         index(distance)));
    base = add(base, mul(shareOfPanel, shareElements));
    stride = index(step * sizes.packing.panel);
  } else {
    base = add(base, emitNextSlice(range, panelColumn, width));
    Value steps = div(sliceKSize, step);
    base = add(base, mul(mul(shareOfPanel, steps), shareElements));
    stride = index(shareElements);
  }
  // Calls beyond those that share the lines out touch one line again and
  // again, which costs less than a second variant of the code.
  Value shares = less(share, index(plan.shares));
  arguments.prefetchOffset = select(shares, base, arguments.weightOffset);
  arguments.prefetchStride = select(shares, stride, index(0));
}

Value MatmulLowering::emitNextSlice(const ScheduleRange &range,
                                    Value panelColumn, int64_t width) {
  auto [bM, bN, bK] = range.schedule.slice;
  Value nextColumn = add(panelColumn, index(width));
  Value nextK = add(sliceK, index(bK));
  Value nextBlock = add(blockColumn, index(bN));
  // From the last of the thread's columns to the first: the next block of
  // tokens.
  nextBlock = select(less(nextBlock, threadEnd), nextBlock, threadBegin);
  Value inBlock = less(nextColumn, blockColumns);
  Value inK = less(nextK, index(sizes.k));
  Value column = select(inBlock, add(blockColumn, nextColumn),
                        select(inK, blockColumn, nextBlock));
  Value k = select(inBlock, sliceK, select(inK, nextK, index(0)));
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
    std::vector<MatmulLowering> lowerings;
    WalkResult planned = function.walk([&](gemm::MatmulOp op) {
      return WalkResult(lowerings.emplace_back(op, kernels).plan());
    });
    if (planned.wasInterrupted())
      return failure();
    if (lowerings.empty())
      return success();

    // All matmuls of the function use the same scratch memory in turn.
    int64_t bytes = 0;
    for (const MatmulLowering &lowering : lowerings)
      bytes = std::max(bytes, lowering.scratchBytes());
    auto builder = ImplicitLocOpBuilder::atBlockBegin(
        function.getLoc(), &function.getBody().front());
    Value scratch = memref::AllocaOp::create(
        builder, MemRefType::get({bytes}, builder.getI8Type()),
        builder.getI64IntegerAttr(cacheLineBytes));
    for (MatmulLowering &lowering : lowerings)
      if (failed(lowering.emit(scratch)))
        return failure();
    return success();
  }
};

} // namespace
