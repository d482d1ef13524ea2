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
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Scheduling/NestParameters.h"

#include "Epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ArmNeon/ArmNeonDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Target/Target.h"

#include <cstddef>
#include <set>

namespace sandwich {
#define GEN_PASS_DEF_GEMMTOLOOPS
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// The most bytes of a nest on a thread's stack, of which attention takes more
/// than a megabyte (ModelLimits.h).
constexpr int64_t mostScratchOnStack = 128 << 10;

/// Epilogues read whole vectors that may begin at the last sum.
constexpr int64_t scratchPaddingBytes = vectorWidth * 4;

/// A prefetch plan whose numbers may be known only at run time.
struct PrefetchValues {
  /// Known ones, for the code of micro-kernels.
  PrefetchPlan plan;
  Value lines, streams, panels, sharesOfPanel, shares;
};

/// Lowers one nest. Rows are counted in units: single rows, or tiles of
/// `tileRows` rows. A thread's last tile begins early where its rows are no
/// multiple of that; its sums follow those of the tile before all the same, and
/// the body sees the ones that are not computed twice.
class NestLowering {
public:
  NestLowering(gemm::NestOp op, MicroKernelLibrary &kernels);

  /// The most bytes of sums, packed input and an unpacked slice of the weight
  /// that the nest needs.
  int64_t scratchBytes() const {
    return sumsBytes() + packedInputBytes() + copiedBytes();
  }
  /// Replaces the nest by its loops. The sums lie in `scratch`, aligned to a
  /// cache line.
  void emit(Value scratch);

private:
  int64_t blockRowsCapacity() const { return roundUp(schedule.slice[0], unit); }
  int64_t sumsBytes() const {
    int64_t sums = hasParameters() ? maxBlockSums
                                   : blockRowsCapacity() * schedule.slice[1];
    return sums * 4 + scratchPaddingBytes;
  }
  int64_t packedInputElements() const {
    if (hasParameters())
      return packedLength(mostPackedInput(schedule.microKernel.isa)) *
             (1 + fillingRows());
    // Each strip may add rows that fill its registers.
    const int64_t rows = blockRowsCapacity();
    const int64_t strips = sandwich::divideUp(rows, schedule.microKernel.rows);
    return (rows + strips * fillingRows()) * packedLength(schedule.slice[2]);
  }
  int64_t packedLength(int64_t ofK) const {
    return sandwich::packedLength(schedule.microKernel.isa,
                                  multiplied.groupOf(k), ofK);
  }
  int64_t packedInputBytes() const {
    if (!schedule.packsInput)
      return 0;
    return roundUp(packedInputElements() * multipliedBytes(), cacheLineBytes);
  }
  /// Of an element that micro-kernels multiply.
  int64_t multipliedBytes() const {
    switch (elementOf(schedule.microKernel.isa)) {
    case MatrixElement::F32:
      return 4;
    case MatrixElement::BF16:
      return 2;
    case MatrixElement::Int8:
      return 1;
    }
    llvm_unreachable("every element has a size");
  }
  bool multipliesGroups() const {
    return multipliesIntegers(schedule.microKernel.isa);
  }
  /// Whether micro-kernels read numbers with their scales.
  bool readsGroups() const { return multipliesGroups() || widens; }
  /// Whether slices are copied to longer groups.
  bool regroups() const { return schedule.groupK > 0; }
  /// Whether micro-kernels read a copy of the slice.
  bool copiesWeight() const {
    return storage.isQuantized() && (!readsGroups() || regroups());
  }
  /// Whether micro-kernels unpack one chunk of a panel while they multiply the
  /// one before.
  bool copiesAhead() const { return schedule.copiesAhead; }
  /// The elements of a chunk of a panel, at most.
  int64_t chunkElements() const {
    const int64_t chunk = schedule.chunkK > 0 ? schedule.chunkK : k;
    return packing.panel * std::min(chunk, k);
  }
  /// Of the copy of a slice of the weight, or of the chunk that is multiplied
  /// and the next one; none if there is none.
  int64_t copiedBytes() const {
    if (!copiesWeight())
      return 0;
    if (copiesAhead())
      return 2 * chunkElements() * multipliedBytes();
    const int64_t elements = hasParameters()
                                 ? maxUnpackedWeight
                                 : schedule.slice[1] * schedule.slice[2];
    return regroups()
               ? weightBytes(multiplied, 1, roundUp(elements, schedule.groupK))
               : elements * multipliedBytes();
  }
  /// The most rows that packing adds to those of a strip.
  int64_t fillingRows() const {
    const MatrixISA isa = schedule.microKernel.isa;
    return packedRows(isa, 1) - 1;
  }
  bool hasTiles() const { return sandwich::hasTiles(schedule.microKernel.isa); }
  /// Views of the scratch memory.
  void createBuffers(Value scratch);
  /// Says how many rows tiles have, all over the nest.
  void configureTiles();
  /// Copies the slice's rows of the block to where micro-kernels read them, if
  /// they are not there yet.
  void packInput();
  /// Copies the slice of the weight for the block, if that was not done yet.
  void copyWeight();
  /// Unpacks rounds of k from `firstK` up to `endK` of the panel at `column` to
  /// the copy at element `place` of a chunk that begins with `beginK`.
  void unpackRounds(Value column, Value firstK, Value endK, Value beginK,
                    Value place);
  /// Unpacks the thread's first chunk, where it has any.
  void copyFirstChunk();
  /// Sets what the call for strip `strip` unpacks ahead.
  void setAhead(Value panelColumn, int64_t width, Value strip,
                MicroKernelArguments &arguments);
  /// Unpacks what `strips` strips did not of the chunk that comes next, which
  /// is then the one to multiply.
  void finishAhead(Value panelColumn, int64_t width, Value strips);
  /// The steps of a round of unpacking, in which 32 k are, and so the k that a
  /// call unpacks ahead.
  int64_t stepsOfRound();
  Value kAheadOfCall() { return b.div(chunkKSize, stepsOfRound()); }
  /// The rows that a packed unit takes: integers of tiles lie in whole ones, so
  /// that each tile begins at a cache line.
  Value packedUnit() { return multipliesGroups() ? b.index(unit) : tileRows; }
  /// The element of the packed input that strip `strip`, or tile, from the unit
  /// `firstUnit` on begins at.
  Value packedPlace(Value firstUnit, Value strip) {
    Value rows =
        b.add(b.mul(firstUnit, packedUnit()), b.mul(strip, fillingRows()));
    return b.mul(rows, packedLength(sliceKSize));
  }
  /// The elements that `ofK` elements of a row take packed, whole groups of
  /// integers.
  Value packedLength(Value ofK) {
    if (!multipliesGroups())
      return ofK;
    const int64_t group = multiplied.groupOf(k);
    return b.mul(b.div(ofK, group), packedLength(group));
  }
  /// The input's first row of the tile that begins `row` rows into the block.
  Value clampTile(Value row) {
    Value last = b.sub(op.getRowEnd(), tileRows);
    return b.min(b.add(blockRow, row), last);
  }
  void emitRowBlocks(function_ref<void()> body);
  void emitColumnBlocks(function_ref<void()> body);
  /// One block of sums: its loops over K, panels and strips, and the body.
  void emitBlock();
  void emitPanels(Value begin, Value end, int64_t width);
  void emitStrips(Value panelColumn, int64_t width);
  /// Where the strip number `strip` of `units` units from `firstUnit` on finds
  /// its input.
  void setInput(Value strip, Value firstUnit, Value units,
                MicroKernelArguments &arguments);
  void emitCall(int64_t width, Value units, const PrefetchPlan &prefetch,
                MicroKernelArguments arguments);
  void inlineBody();
  /// Calls `body` with the block's rows that have their sums one behind the
  /// other: the first of the block's rows, how many, and the first row of sums.
  void forPiecesOfRows(function_ref<void(Value, Value, Value)> body);

  PrefetchValues getPrefetch(int64_t width);
  /// Sets where the call number `share` for the slice prefetches.
  void emitPrefetchArguments(int64_t width, const PrefetchValues &prefetch,
                             Value panelColumn, Value share,
                             MicroKernelArguments &arguments);
  /// The first element of the slice that the thread reads after this one.
  Value emitNextSlice(Value panelColumn, int64_t width);
  /// Its column, its k and how many k of it are one chunk.
  struct NextChunk {
    Value column, k, length;
  };
  NextChunk nextChunk(Value panelColumn, int64_t width);
  /// Where the slice begins that follows all panels of this one: its column and
  /// its k.
  std::pair<Value, Value> nextSliceOfAll();
  /// The same of the slice that is copied next.
  std::pair<Value, Value> nextCopy();
  /// The first column of the next block of columns, or of the first one.
  Value nextColumns();
  /// Whether blocks of rows need a copy each, even with columns outer.
  Value copiesAgain() { return less(bK, b.sub(op.getKEnd(), op.getKBegin())); }
  /// Prefetches the part of the call number `call` of `calls` on `width`
  /// columns of what is copied next.
  void prefetchNextCopy(Value panelColumn, int64_t width, Value call,
                        Value calls);

  bool hasParameters() const {
    return static_cast<bool>(const_cast<gemm::NestOp &>(op).getParameters());
  }
  /// The field of `NestParameters` at `offset` bytes.
  Value loadParameter(size_t offset) {
    return memref::LoadOp::create(
        b, op.getParameters(),
        b.index(static_cast<int64_t>(offset / sizeof(int64_t))));
  }
  /// Where the calls on `width` columns lie in `NestParameters`.
  size_t callsOffset(int64_t width) {
    int64_t wide = std::max(schedule.microKernel.columns, packing.panel);
    return width == wide ? offsetof(NestParameters, wide)
                         : offsetof(NestParameters, panel);
  }
  WeightUnpacking unpacking() const {
    return {.storage = storage,
            .group = storage.groupOf(k),
            .to = packing,
            .element = elementOf(schedule.microKernel.isa),
            .groupOfCopy = schedule.groupK};
  }
  Value select(Value condition, Value a, Value b_) {
    return b.createOrFold<arith::SelectOp>(condition, a, b_);
  }
  Value less(Value a, Value b_) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, a, b_);
  }
  Value divideUp(Value a, Value b_) {
    return b.div(b.add(a, b.sub(b_, b.index(1))), b_);
  }
  /// Elements from one panel that micro-kernels read to the next.
  Value panelStride() {
    return copiesWeight() ? copiedElements(bK) : b.index(panelElements());
  }
  /// Of the packed weight.
  int64_t panelElements() const {
    return readsGroups() ? weightBytes(storage, packing.panel, k)
                         : k * packing.panel;
  }
  /// Of `ofK` k of a panel of the copy.
  Value copiedElements(Value ofK) {
    if (!regroups())
      return b.mul(ofK, packing.panel);
    return b.mul(b.div(ofK, schedule.groupK),
                 groupBytes(multiplied, packing.panel, schedule.groupK));
  }
  /// The element of the packed weight, or of the copy, at a column, a multiple
  /// of the panel, and a k.
  Value weightElement(Value column, Value k) {
    if (copiesWeight())
      return b.add(b.mul(b.div(b.sub(column, blockColumn), packing.panel),
                         panelStride()),
                   copiedElements(b.sub(k, sliceK)));
    Value panel = b.mul(b.div(column, packing.panel), panelElements());
    if (!readsGroups())
      return b.add(panel, b.mul(k, packing.panel));
    return b.add(panel, storedBytes(k));
  }
  /// Of `ofK` k of a panel of a quantized weight as it is stored, whole groups.
  Value storedBytes(Value ofK) {
    const int64_t group = storage.groupOf(k);
    return b.mul(b.div(ofK, group), groupBytes(storage, packing.panel, group));
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
  /// Of the weight, and of what micro-kernels of integers read.
  StorageFormat storage, multiplied;
  /// Its numbers become floats in registers.
  bool widens;
  /// Of the weight that micro-kernels read.
  Packing packing;
  /// Rows of a unit, at most.
  int64_t unit;
  /// Of the weight.
  int64_t k, elementBytes;
  int64_t inputStride;

  /// Sizes of the slice, with units for rows; K of a chunk; units of the
  /// micro-kernel; prefetch distance in bytes.
  Value blockUnitsMost, bN, bK, bC, kernelUnits, distance;
  /// The thread's units, and the rows of each.
  Value units, tileRows;
  /// `packed` has the rows of one tile or strip after those of another, `copy`
  /// the panels of the slice that are copied.
  Value weight, block, packed, copy;
  /// Of copies ahead: the element of `copy` of the chunk that is multiplied,
  /// in memory.
  Value chunkPlace;
  // Values of the loops around the insertion point.
  Value nextBlockRow, blockRow, blockUnits, blockRows, blockColumn,
      blockColumns;
  Value sliceK, sliceKSize, chunkK, chunkKSize, sums;
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
      schedule(op.getSchedule().getSchedule()), storage(op.getStorageFormat()),
      multiplied(multipliedStorage(schedule, storage)),
      widens(op.widensGroups()),
      packing(widens ? op.getWeightPacking()
                     : multipliedPacking(schedule.microKernel.isa,
                                         op.getWeightPacking(), storage)),
      unit(rowUnitOf(schedule.microKernel.isa)), k(op.getK()),
      inputStride(getRowStride(op.getInput())) {
  elementBytes = storage.isQuantized() ? multipliedBytes() : storage.bits() / 8;
}

PrefetchValues NestLowering::getPrefetch(int64_t width) {
  PrefetchValues values;
  if (hasParameters()) {
    size_t offset =
        callsOffset(width) + offsetof(NestParameters::Calls, prefetch);
    values.lines = loadParameter(offset + offsetof(PrefetchPlan, lines));
    values.streams = loadParameter(offset + offsetof(PrefetchPlan, streams));
    values.panels = loadParameter(offset + offsetof(PrefetchPlan, panels));
    values.sharesOfPanel =
        loadParameter(offset + offsetof(PrefetchPlan, sharesOfPanel));
    values.shares = loadParameter(offset + offsetof(PrefetchPlan, shares));
    return values;
  }
  if (!copiesWeight())
    values.plan = planPrefetch(schedule, packing, width, storage);
  values.lines = b.index(values.plan.lines);
  values.streams = b.index(values.plan.streams);
  values.panels = b.index(values.plan.panels);
  values.sharesOfPanel = b.index(values.plan.sharesOfPanel);
  values.shares = b.index(values.plan.shares);
  return values;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

void NestLowering::emit(Value scratch) {
  // One dimension, so that micro-kernels do not depend on the weight's shape.
  ReassociationIndices all = llvm::to_vector(
      llvm::seq<int64_t>(cast<MemRefType>(op.getWeight().getType()).getRank()));
  weight = memref::CollapseShapeOp::create(b, op.getWeight(),
                                           ArrayRef<ReassociationIndices>(all));
  Type element = cast<MemRefType>(weight.getType()).getElementType();
  weight = memref::CastOp::create(
      b, MemRefType::get({ShapedType::kDynamic}, element), weight);

  if (hasParameters()) {
    blockUnitsMost = loadParameter(offsetof(NestParameters, sliceUnits));
    bN = loadParameter(offsetof(NestParameters, sliceColumns));
    bK = loadParameter(offsetof(NestParameters, sliceK));
    bC = loadParameter(offsetof(NestParameters, chunkK));
    kernelUnits = loadParameter(offsetof(NestParameters, stripUnits));
    distance = loadParameter(offsetof(NestParameters, prefetchDistance));
  } else {
    blockUnitsMost = b.index(blockRowsCapacity() / unit);
    bN = b.index(schedule.slice[1]);
    bK = b.index(schedule.slice[2]);
    bC = b.index(schedule.chunkK);
    kernelUnits = b.index(schedule.microKernel.rows / unit);
    distance = b.index(schedule.prefetchDistance);
  }
  units = b.sub(op.getRowEnd(), op.getRowBegin());
  tileRows = b.index(1);
  if (hasTiles())
    configureTiles();
  createBuffers(scratch);
  if (copiesAhead())
    copyFirstChunk();
  if (schedule.order == LoopOrder::RowsOuter)
    emitRowBlocks([&] { emitColumnBlocks([&] { emitBlock(); }); });
  else
    emitColumnBlocks([&] { emitRowBlocks([&] { emitBlock(); }); });
  op.erase();
}

void NestLowering::createBuffers(Value scratch) {
  SmallVector<int64_t> shape = {blockRowsCapacity(), schedule.slice[1]};
  SmallVector<Value> sizes;
  if (hasParameters()) {
    shape.assign(2, ShapedType::kDynamic);
    sizes = {b.mul(blockUnitsMost, unit), bN};
  }
  block = memref::ViewOp::create(b, MemRefType::get(shape, b.getF32Type()),
                                 scratch, b.index(0), sizes);
  if (copiesWeight()) {
    Type element = unpacking().type(b.getContext());
    auto type = MemRefType::get({copiedBytes() / multipliedBytes()}, element);
    Value view = memref::ViewOp::create(
        b, type, scratch, b.index(sumsBytes() + packedInputBytes()),
        ValueRange());
    copy = memref::CastOp::create(
        b, MemRefType::get({ShapedType::kDynamic}, element), view);
  }
  if (!schedule.packsInput)
    return;
  Type element = cast<MemRefType>(op.getInput().getType()).getElementType();
  if (multipliesGroups())
    element = b.getI8Type();
  const int64_t elements = packedInputElements();
  if (hasTiles() && !multipliesGroups())
    shape = {elements / packing.kStep, packing.kStep};
  else
    shape = {1, elements};
  packed = memref::ViewOp::create(b, MemRefType::get(shape, element), scratch,
                                  b.index(sumsBytes()), ValueRange());
}

void NestLowering::configureTiles() {
  Value one = b.index(1);
  Value rows = units;
  units = divideUp(rows, b.index(unit));
  // A thread without rows has no tile either.
  auto atLeastOne = [&](Value value) {
    return b.createOrFold<arith::MaxUIOp>(value, one);
  };
  tileRows = divideUp(atLeastOne(rows), atLeastOne(units));
  tile::ConfigureOp::create(
      b, tileRows,
      halvesInputTiles(schedule.microKernel.isa, multiplied.groupOf(k)));
}

void NestLowering::packInput() {
  const MicroKernelEmitter &emitter =
      getMicroKernelEmitter(schedule.microKernel.isa);
  auto pack = [&] {
    InputPiece piece;
    piece.input = op.getInput();
    piece.firstK = sliceK;
    piece.k = sliceKSize;
    piece.packed = packed;
    piece.storage = multiplied;
    piece.group = multiplied.groupOf(k);
    if (hasTiles()) {
      piece.rows = tileRows;
      b.forLoop(b.index(0), blockUnits, 1, [&](Value number) {
        piece.firstRow = clampTile(b.mul(number, tileRows));
        piece.place = packedPlace(number, number);
        emitter.emitInputPacking(b, packing, piece);
      });
      return;
    }
    Value strips = divideUp(blockUnits, kernelUnits);
    b.forLoop(b.index(0), strips, 1, [&](Value strip) {
      auto [first, rows] = share(blockUnits, strips, strip);
      piece.firstRow = b.add(blockRow, first);
      piece.rows = rows;
      piece.place = packedPlace(first, strip);
      emitter.emitInputPacking(b, packing, piece);
    });
  };
  // All of K at once stays for the other columns.
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        blockColumn, op.getColumnBegin());
  Value again = less(bK, b.sub(op.getKEnd(), op.getKBegin()));
  if (schedule.order == LoopOrder::RowsOuter)
    b.ifThen(b.createOrFold<arith::OrIOp>(isFirst, again), pack);
  else
    pack();
}

void NestLowering::copyWeight() {
  const Packing stored = op.getWeightPacking();
  const int64_t group = storage.groupOf(k);
  const int64_t bytes = groupBytes(storage, stored.panel, group);
  auto copyPanels = [&] {
    // Whole groups, or a part of one.
    Value begin = b.index(0), size = b.index(group), groups;
    if (hasParameters()) {
      begin = b.rem(sliceK, group);
      size = b.min(sliceKSize, size);
      groups = divideUp(sliceKSize, b.index(group));
    } else if (schedule.slice[2] < group) {
      begin = b.rem(sliceK, group);
      size = sliceKSize;
      groups = b.index(1);
    } else {
      groups = b.div(sliceKSize, group);
    }
    b.forLoop(b.index(0), blockColumns, stored.panel, [&](Value column) {
      Value panel = b.div(b.add(blockColumn, column), stored.panel);
      Value first = b.add(b.mul(panel, k / group), b.div(sliceK, group));
      kernels.unpack(
          b, unpacking(),
          {.weight = weight,
           .weightOffset = b.mul(first, bytes),
           .groups = groups,
           .begin = begin,
           .end = b.add(begin, size),
           .copy = copy,
           .place = b.mul(b.div(column, stored.panel), panelStride())});
    });
  };
  if (schedule.order == LoopOrder::RowsOuter)
    return copyPanels();
  // All of K at once stays for the other rows.
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, blockRow,
                                        op.getRowBegin());
  b.ifThen(b.createOrFold<arith::OrIOp>(isFirst, copiesAgain()), copyPanels);
}

void NestLowering::emitRowBlocks(function_ref<void()> body) {
  Value blocks = divideUp(units, blockUnitsMost);
  b.forLoop(b.index(0), blocks, 1, [&](Value number) {
    auto [first, count] = share(units, blocks, number);
    blockRow = b.add(op.getRowBegin(), b.mul(first, tileRows));
    blockUnits = blockRows = count;
    if (hasTiles())
      blockRows =
          b.min(b.mul(count, tileRows), b.sub(op.getRowEnd(), blockRow));
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
  if (!hasParameters())
    blockWidth = b.getIndexAttr(schedule.slice[1]);
  sums = memref::SubViewOp::create(
      b, block, ArrayRef<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(0)},
      {b.mul(blockUnits, tileRows), blockWidth},
      {b.getIndexAttr(1), b.getIndexAttr(1)});
  auto loop = scf::ForOp::create(b, op.getKBegin(), op.getKEnd(), bK);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    sliceK = loop.getInductionVar();
    sliceKSize = b.min(bK, b.sub(op.getKEnd(), sliceK));
    if (packed)
      packInput();
    if (copiesWeight() && !copiesAhead())
      copyWeight();
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
  b.forLoop(begin, end, width, [&](Value column) {
    if (!hasParameters() && schedule.chunkK == 0) {
      chunkK = sliceK;
      chunkKSize = sliceKSize;
      return emitStrips(column, width);
    }
    Value sliceEnd = b.add(sliceK, sliceKSize);
    auto loop = scf::ForOp::create(b, sliceK, sliceEnd, bC);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    chunkK = loop.getInductionVar();
    chunkKSize = b.min(bC, b.sub(sliceEnd, chunkK));
    emitStrips(column, width);
  });
}

void NestLowering::setInput(Value strip, Value firstUnit, Value units,
                            MicroKernelArguments &arguments) {
  arguments.input = packed ? packed : op.getInput();
  Value lastUnit = b.add(firstUnit, b.sub(units, b.index(1)));
  if (hasTiles())
    arguments.tileRows = tileRows;
  if (!packed) {
    arguments.firstK = chunkK;
    arguments.firstRow = b.add(blockRow, firstUnit);
    if (hasTiles()) {
      arguments.firstRow = clampTile(b.mul(firstUnit, tileRows));
      arguments.lastTileRow = clampTile(b.mul(lastUnit, tileRows));
    }
    return;
  }
  Value fromSlice = b.sub(chunkK, sliceK);
  if (hasTiles()) {
    auto placeOf = [&](Value number) {
      return b.add(packedPlace(number, number),
                   b.mul(packedLength(fromSlice), packedUnit()));
    };
    arguments.firstRow = arguments.firstK = b.index(0);
    if (multipliesGroups()) {
      arguments.firstK = placeOf(firstUnit);
      arguments.lastTileRow = placeOf(lastUnit);
    } else {
      arguments.firstRow = b.div(placeOf(firstUnit), packing.kStep);
      arguments.lastTileRow = b.div(placeOf(lastUnit), packing.kStep);
    }
    return;
  }
  // What `packedRows` says, of rows that are known only here.
  const int64_t together = 1 + fillingRows();
  Value rows = b.mul(divideUp(units, b.index(together)), together);
  arguments.firstRow = b.index(0);
  arguments.firstK = b.add(packedPlace(firstUnit, strip),
                           b.mul(packedLength(fromSlice), rows));
}

void NestLowering::emitStrips(Value panelColumn, int64_t width) {
  PrefetchValues prefetch = getPrefetch(width);
  Value strips = divideUp(blockUnits, kernelUnits);
  Value firstElement =
      copiesAhead()
          ? memref::LoadOp::create(b, chunkPlace, b.index(0)).getResult()
          : weightElement(b.add(blockColumn, panelColumn), chunkK);
  Value accumulate = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, chunkK,
                                           op.getKBegin());
  // Micro-kernels narrower than a panel take it part by part.
  int64_t partColumns = std::min(schedule.microKernel.columns, packing.panel);
  for (int64_t part = 0; part < packing.panel / partColumns; ++part) {
    int64_t partColumn = part * partColumns;
    b.forLoop(b.index(0), strips, 1, [&](Value strip) {
      auto [firstUnit, stripUnits] = share(blockUnits, strips, strip);
      MicroKernelArguments arguments;
      setInput(strip, firstUnit, stripUnits, arguments);
      arguments.k = chunkKSize;
      arguments.weight = copy ? copy : weight;
      arguments.weightOffset =
          b.add(firstElement, getColumnOffset(packing, partColumn));
      arguments.panelStride = panelStride();
      arguments.sums = sums;
      arguments.sumsRow = b.mul(firstUnit, tileRows);
      arguments.sumsColumn = b.add(panelColumn, partColumn);
      arguments.accumulate = accumulate;
      Value shareNumber = b.add(b.mul(strips, part), strip);
      if (copiesWeight() && !copiesAhead() && schedule.prefetchLines > 0)
        prefetchNextCopy(panelColumn, width, shareNumber,
                         b.mul(strips, packing.panel / partColumns));
      emitPrefetchArguments(width, prefetch, panelColumn, shareNumber,
                            arguments);
      if (!copiesAhead())
        return emitCall(width, stripUnits, prefetch.plan, arguments);
      // Strips beyond those that unpack it all only multiply.
      auto callAhead = [&] {
        MicroKernelArguments ahead = arguments;
        setAhead(panelColumn, width, strip, ahead);
        emitCall(width, stripUnits, prefetch.plan, ahead);
      };
      Value done = b.mul(strip, kAheadOfCall());
      b.ifThenElse(
          less(done, nextChunk(panelColumn, width).length), callAhead,
          [&] { emitCall(width, stripUnits, prefetch.plan, arguments); });
    });
  }
  if (copiesAhead())
    finishAhead(panelColumn, width, strips);
}

int64_t NestLowering::stepsOfRound() {
  // As many as the smallest block has strips for: that of the fewest rows, or
  // half of those that are just too many for one. They are the thread's.
  ArrayRef<int64_t> rows = op.getRowsBetween();
  Schedule ofThread = schedule;
  ofThread.threads[0] = 1;
  const int64_t strips = std::min(
      stripsOfBlock(ofThread, std::max<int64_t>(rows[0], 1)),
      stripsOfBlock(ofThread, std::min(rows[1], schedule.slice[0] + 1)));
  return stepsOfAheadRound(schedule, k, strips);
}

void NestLowering::unpackRounds(Value column, Value firstK, Value endK,
                                Value beginK, Value place) {
  const int64_t group = storage.groupOf(k);
  Value panel = b.mul(b.div(column, packing.panel),
                      weightBytes(storage, packing.panel, k));
  auto loop = scf::ForOp::create(b, firstK, endK, b.index(kOfAheadRound));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value ofRound = loop.getInductionVar();
  Value begin = b.rem(ofRound, group);
  kernels.unpack(
      b, unpacking(),
      {.weight = weight,
       .weightOffset = b.add(panel, storedBytes(b.sub(ofRound, begin))),
       .groups = b.index(1),
       .begin = begin,
       .end = b.add(begin, kOfAheadRound),
       .copy = copy,
       .place = b.add(place, b.mul(b.sub(ofRound, beginK), packing.panel))});
}

void NestLowering::copyFirstChunk() {
  auto function = op->getParentOfType<func::FuncOp>();
  chunkPlace = b.scratch(function, {1}, b.getIndexType());
  Value zero = b.index(0);
  memref::StoreOp::create(b, zero, chunkPlace, zero);
  Value hasRows = less(op.getRowBegin(), op.getRowEnd());
  Value hasColumns = less(op.getColumnBegin(), op.getColumnEnd());
  Value length =
      schedule.chunkK > 0 ? b.index(std::min(schedule.chunkK, k)) : b.index(k);
  b.ifThen(b.createOrFold<arith::AndIOp>(hasRows, hasColumns), [&] {
    unpackRounds(op.getColumnBegin(), zero, length, zero, zero);
  });
}

NestLowering::NextChunk NestLowering::nextChunk(Value panelColumn,
                                                int64_t width) {
  Value nextColumn = b.add(panelColumn, width);
  // The next chunk of the panel, the first one of the next panel, or that of
  // the next slice.
  auto [afterColumn, afterK] = nextSliceOfAll();
  Value inBlock = less(nextColumn, blockColumns);
  NextChunk next;
  next.column = select(inBlock, b.add(blockColumn, nextColumn), afterColumn);
  next.k = select(inBlock, sliceK, afterK);
  if (hasParameters() || schedule.chunkK > 0) {
    Value nextChunk = b.add(chunkK, bC);
    Value inSlice = less(nextChunk, b.add(sliceK, sliceKSize));
    next.column = select(inSlice, b.add(blockColumn, panelColumn), next.column);
    next.k = select(inSlice, nextChunk, next.k);
    next.length = b.min(bC, b.sub(op.getKEnd(), next.k));
  } else {
    next.length = b.min(bK, b.sub(op.getKEnd(), next.k));
  }
  return next;
}

void NestLowering::setAhead(Value panelColumn, int64_t width, Value strip,
                            MicroKernelArguments &arguments) {
  const NextChunk next = nextChunk(panelColumn, width);
  arguments.stored = weight;
  arguments.storedPanel = b.mul(b.div(next.column, packing.panel),
                                weightBytes(storage, packing.panel, k));
  arguments.aheadK = b.add(next.k, b.mul(strip, kAheadOfCall()));
  arguments.lastAheadK =
      b.add(next.k, b.sub(next.length, b.index(kOfAheadRound)));
  arguments.aheadPlace =
      b.sub(b.index(chunkElements()),
            memref::LoadOp::create(b, chunkPlace, b.index(0)));
  arguments.aheadBegin = next.k;
}

void NestLowering::finishAhead(Value panelColumn, int64_t width, Value strips) {
  const NextChunk next = nextChunk(panelColumn, width);
  Value place = b.sub(b.index(chunkElements()),
                      memref::LoadOp::create(b, chunkPlace, b.index(0)));
  Value done = b.mul(strips, kAheadOfCall());
  unpackRounds(next.column, b.add(next.k, b.min(done, next.length)),
               b.add(next.k, next.length), next.k, place);
  memref::StoreOp::create(b, place, chunkPlace, b.index(0));
}

void NestLowering::emitCall(int64_t width, Value units,
                            const PrefetchPlan &prefetch,
                            MicroKernelArguments arguments) {
  MicroKernelSpecialization specialization;
  specialization.kernel = schedule.microKernel;
  specialization.kernel.columns =
      std::min(specialization.kernel.columns, width);
  specialization.inputStride = inputStride;
  specialization.widensWeights =
      widensWeights(schedule.microKernel.isa, storage);
  specialization.packing = packing;
  if (readsGroups()) {
    specialization.storage = multiplied;
    specialization.group = multiplied.groupOf(k);
  }
  specialization.prefetchLines = prefetch.lines;
  specialization.prefetchStreams = prefetch.streams;
  specialization.prefetchHint = schedule.prefetchHint;
  specialization.prefetchPanels = prefetch.panels;
  specialization.packedInput = schedule.packsInput;
  specialization.streamed = schedule.streamed;
  if (arguments.stored) {
    specialization.ahead = unpacking();
    specialization.stepsOfRound = stepsOfRound();
    if (schedule.prefetchLines > 0)
      specialization.aheadDistance = schedule.prefetchDistance;
  }

  if (hasParameters()) {
    Value place = b.add(
        units,
        static_cast<int64_t>(
            (callsOffset(width) + offsetof(NestParameters::Calls, addresses)) /
            sizeof(int64_t)));
    Value address = memref::LoadOp::create(b, op.getParameters(), place);
    MicroKernelLibrary::callAddress(b, address, specialization, arguments);
    return;
  }
  std::set<int64_t> variants =
      stripRows(op.getRowsBetween()[0], op.getRowsBetween()[1],
                schedule.slice[0], schedule.microKernel);
  auto callVariant = [&](int64_t variant) {
    specialization.kernel.rows = variant;
    kernels.call(b, specialization, arguments);
  };
  if (variants.size() == 1) {
    callVariant(*variants.begin());
    return;
  }
  int64_t largest = *variants.rbegin();
  SmallVector<int64_t> fewer(variants.begin(), std::prev(variants.end()));
  auto cases = llvm::map_to_vector(
      fewer, [&](int64_t variant) { return variant / unit; });
  OpBuilder::InsertionGuard guard(b);
  auto choice =
      scf::IndexSwitchOp::create(b, TypeRange(), units, cases, cases.size());
  auto fill = [&](Region &region, int64_t variant) {
    b.createBlock(&region);
    callVariant(variant);
    scf::YieldOp::create(b);
  };
  for (auto [variant, region] : llvm::zip_equal(fewer, choice.getCaseRegions()))
    fill(region, variant);
  fill(choice.getDefaultRegion(), largest);
}

void NestLowering::forPiecesOfRows(
    function_ref<void(Value, Value, Value)> body) {
  Value zero = b.index(0);
  if (!hasTiles())
    return body(zero, blockRows, zero);
  // The last tile's first rows were computed by the tile before.
  Value twice = b.sub(b.mul(blockUnits, tileRows), blockRows);
  Value first = b.mul(b.sub(blockUnits, b.index(1)), tileRows);
  Value overlap = less(zero, twice);
  b.forLoop(zero, select(overlap, b.index(2), b.index(1)), 1, [&](Value piece) {
    Value isLast = less(zero, piece);
    Value begin = select(isLast, first, zero);
    Value rows = select(isLast, b.sub(blockRows, first),
                        select(overlap, first, blockRows));
    body(begin, rows, select(isLast, b.add(first, twice), zero));
  });
}

void NestLowering::inlineBody() {
  forPiecesOfRows([&](Value firstRow, Value rows, Value firstSums) {
    Value part = sums;
    if (hasTiles()) {
      auto all = cast<MemRefType>(sums.getType());
      OpFoldResult width = b.getIndexAttr(all.getDimSize(1));
      if (all.isDynamicDim(1))
        width = bN;
      part = memref::SubViewOp::create(
          b, sums, ArrayRef<OpFoldResult>{firstSums, b.getIndexAttr(0)},
          {rows, width}, {b.getIndexAttr(1), b.getIndexAttr(1)});
    }
    // Uses that can do with the type that is known here get it.
    Value cast = memref::CastOp::create(b, op.getSums().getType(), part);
    for (OpOperand &use : llvm::make_early_inc_range(op.getSums().getUses()))
      use.set(isa<gemm::EpilogueOp>(use.getOwner()) ? part : cast);
    Value place[] = {b.add(blockRow, firstRow), rows, blockColumn,
                     blockColumns};
    for (auto [argument, value] : llvm::zip_equal(op.getPlace(), place))
      argument.replaceAllUsesWith(value);
    b.getInsertionBlock()->getOperations().splice(
        b.getInsertionPoint(), op.getBody()->getOperations());
  });
}

void NestLowering::emitPrefetchArguments(int64_t width,
                                         const PrefetchValues &prefetch,
                                         Value panelColumn, Value share,
                                         MicroKernelArguments &arguments) {
  Value zero = b.index(0);
  arguments.prefetchOffset = arguments.prefetchStride = zero;
  arguments.prefetchStreamStride = zero;
  if (!hasParameters() && prefetch.plan.lines == 0)
    return;
  if (readsGroups()) {
    // Each panel ahead of itself. Calls beyond those that share the lines out
    // touch what they read.
    Value isShare = less(share, prefetch.shares);
    Value first = b.mul(share, b.mul(prefetch.lines, cacheLineBytes));
    arguments.prefetchOffset = b.add(
        arguments.weightOffset, select(isShare, b.add(distance, first), zero));
    arguments.prefetchStride = select(isShare, distance, zero);
    return;
  }
  int64_t step = loopStep(schedule.microKernel.isa);
  int64_t lineElements = cacheLineBytes / elementBytes;
  Value shareElements = b.mul(prefetch.lines, lineElements);
  Value panel = b.mul(b.div(share, prefetch.sharesOfPanel), prefetch.panels);
  Value shareOfPanel = b.rem(share, prefetch.sharesOfPanel);
  Value base = b.mul(panel, arguments.panelStride);

  // At a distance from what the call reads itself.
  Value ahead = weightElement(b.add(blockColumn, panelColumn), chunkK);
  ahead = b.add(ahead, b.div(distance, elementBytes));
  ahead = b.add(ahead, b.mul(shareOfPanel, shareElements));
  // Or of the next slice, all of it at the end of its rounds, each stream a
  // part of its lines.
  Value rounds = b.div(chunkKSize, step);
  Value next = emitNextSlice(panelColumn, width);
  next = b.add(next, b.mul(b.mul(shareOfPanel, rounds), shareElements));
  int64_t panelLines = std::max<int64_t>(
      step * packing.panel * elementBytes / cacheLineBytes, 1);
  Value streamLines = divideUp(b.mul(rounds, panelLines), prefetch.streams);

  Value hasDistance = less(zero, distance);
  base = b.add(base, select(hasDistance, ahead, next));
  Value stride =
      select(hasDistance, b.index(step * packing.panel), shareElements);
  arguments.prefetchStreamStride = b.mul(streamLines, lineElements);
  // Calls beyond those that share the lines out touch one line again and
  // again, which costs less than a second variant of the code.
  Value shares = less(share, prefetch.shares);
  arguments.prefetchOffset = select(shares, base, arguments.weightOffset);
  arguments.prefetchStride = select(shares, stride, zero);
}

Value NestLowering::nextColumns() {
  Value next = b.add(blockColumn, bN);
  return select(less(next, op.getColumnEnd()), next, op.getColumnBegin());
}

std::pair<Value, Value> NestLowering::nextCopy() {
  auto [column, firstK] = nextSliceOfAll();
  if (schedule.order == LoopOrder::RowsOuter)
    return {column, firstK};
  // A copy of all of K stays for the other rows.
  Value again = copiesAgain();
  return {select(again, column, nextColumns()),
          select(again, firstK, op.getKBegin())};
}

std::pair<Value, Value> NestLowering::nextSliceOfAll() {
  // After the last slice of a block: the next one of the inner loop, or the
  // first one of the next block of the outer loop.
  Value nextBlock = nextColumns();
  if (schedule.order == LoopOrder::ColumnsOuter)
    nextBlock = select(nextBlockRow, blockColumn, nextBlock);
  Value nextK = b.add(sliceK, bK);
  Value inK = less(nextK, op.getKEnd());
  return {select(inK, blockColumn, nextBlock),
          select(inK, nextK, op.getKBegin())};
}

void NestLowering::prefetchNextCopy(Value panelColumn, int64_t width,
                                    Value call, Value calls) {
  // Those on all chunks of K share the lines of a panel.
  if (hasParameters() || schedule.chunkK > 0) {
    Value chunk = b.div(b.sub(chunkK, sliceK), bC);
    call = b.add(call, b.mul(calls, chunk));
    calls = b.mul(calls, divideUp(sliceKSize, bC));
  }
  auto [column, firstK] = nextCopy();
  Value ofK = b.min(bK, b.sub(op.getKEnd(), firstK));
  const int64_t group = storage.groupOf(k);
  Value bytes = storedBytes(b.mul(divideUp(ofK, b.index(group)), group));
  Value lines = divideUp(bytes, b.index(cacheLineBytes));
  Value linesOfCall = divideUp(lines, calls);
  Value first = b.mul(call, linesOfCall);
  Value end = b.min(b.add(first, linesOfCall), lines);
  const int64_t panelBytes = weightBytes(storage, packing.panel, k);
  for (int64_t panel = 0; panel < width; panel += packing.panel) {
    Value panelBegin = b.add(column, b.add(panelColumn, panel));
    Value place = b.add(b.mul(b.div(panelBegin, packing.panel), panelBytes),
                        storedBytes(firstK));
    // The next block may have fewer columns.
    Value isThere = less(panelBegin, op.getColumnEnd());
    b.forLoop(first, select(isThere, end, first), 1, [&](Value line) {
      memref::PrefetchOp::create(
          b, weight, ValueRange{b.add(place, b.mul(line, cacheLineBytes))},
          /*isWrite=*/false, localityOf(schedule.prefetchHint),
          /*isDataCache=*/true);
    });
  }
}

Value NestLowering::emitNextSlice(Value panelColumn, int64_t width) {
  const NextChunk next = nextChunk(panelColumn, width);
  return weightElement(next.column, next.k);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct GemmToLoops : public sandwich::impl::GemmToLoopsBase<GemmToLoops> {
  void runOnOperation() override {
    ranks.reset();
    MicroKernelLibrary kernels(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    SymbolTableCollection symbols;
    for (func::FuncOp function : functions)
      if (failed(lowerFunction(function, kernels, symbols)))
        return signalPassFailure();
  }

  LogicalResult lowerFunction(func::FuncOp function,
                              MicroKernelLibrary &kernels,
                              SymbolTableCollection &symbols) {
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
      bytes = std::max(bytes, nests.back().scratchBytes());
    });
    // All nests of the function use the same memory in turn.
    Value scratch = bytes > 0 ? createScratch(function, bytes) : Value();
    for (NestLowering &nest : nests)
      nest.emit(scratch);

    SmallVector<gemm::EpilogueOp> epilogues;
    function.walk([&](gemm::EpilogueOp op) { epilogues.push_back(op); });
    for (gemm::EpilogueOp op : epilogues) {
      if (failed(checkProgram(op, symbols)))
        return failure();
      emitEpilogue(op, symbols);
    }
    return success();
  }

  /// `bytes` for each thread, aligned to a cache line: on its stack, or, if
  /// that would be much, behind the workspace of the program, which grows.
  static Value createScratch(func::FuncOp function, int64_t bytes) {
    LoopBuilder b(function.getLoc(), function.getContext());
    b.setInsertionPointToStart(&function.getBody().front());
    auto type = MemRefType::get({bytes}, b.getI8Type());
    phase::ProgramAttr program = phase::getProgram(function);
    if (bytes <= mostScratchOnStack || !program)
      return memref::AllocaOp::create(b, type,
                                      b.getI64IntegerAttr(cacheLineBytes));
    // Threads do not share pages.
    constexpr int64_t pageBytes = 4096;
    const int64_t first = roundUp(program.getWorkspaceBytes(), pageBytes);
    const int64_t ofThread = roundUp(bytes, pageBytes);
    function->setAttr(phase::programAttributeName,
                      phase::ProgramAttr::get(
                          b.getContext(), program.getThreads(),
                          program.getMaxTokens(), program.getMaxLogitRows(),
                          first + program.getThreads() * ofThread,
                          program.getTables()));
    Value thread = phase::getArgument(function, phase::ProgramArgument::Thread);
    return memref::ViewOp::create(
        b, type,
        phase::getArgument(function, phase::ProgramArgument::Workspace),
        b.add(b.index(first), b.mul(thread, ofThread)), ValueRange());
  }

  /// Bias and norms are read from the artifact's memory, and the rank is the
  /// program's.
  LogicalResult checkProgram(gemm::EpilogueOp op,
                             SymbolTableCollection &symbols) {
    if (op.getResidualRanks()) {
      if (!phase::getProgram(op->getParentOfType<func::FuncOp>()))
        return op.emitOpError(
            "must be inside a phase program to know its rank");
      if (!ranks) {
        FailureOr<int64_t> found = lm::getRanks(getOperation());
        if (failed(found))
          return failure();
        ranks = *found;
      }
      if (*ranks != static_cast<int64_t>(*op.getResidualRanks()))
        return op.emitOpError("deals a residual among ")
               << *op.getResidualRanks() << " ranks, the weights are for "
               << *ranks;
    }
    for (FlatSymbolRefAttr name :
         {op.getBiasAttr(), op.getQueryNormAttr(), op.getKeyNormAttr()}) {
      if (!name)
        continue;
      if (!phase::getProgram(op->getParentOfType<func::FuncOp>()))
        return op.emitOpError("must be inside a phase program to read ")
               << name;
      if (!lm::lookupWeight(symbols, op, name).getOffset())
        return op.emitOpError("needs the place of weight ")
               << name << " in the artifact";
    }
    return success();
  }

  /// Among how many the weights are divided, once an epilogue asks for it: the
  /// answer is in the whole module.
  std::optional<int64_t> ranks;
};

} // namespace
