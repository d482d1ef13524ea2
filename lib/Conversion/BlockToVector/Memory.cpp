//===- Memory.cpp - Blocks in memory --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

/// A thread's stack holds that of one kernel beside all else.
static constexpr int64_t mostScratchBytes = int64_t(1) << 20;

LogicalResult KernelLowering::lowerScratch(ScratchOp op) {
  Type element = cast<MemRefType>(op.getMemory().getType()).getElementType();
  if (Value known = scratch.lookup(op)) {
    set(op.getMemory(), known);
    return success();
  }
  SmallVector<int64_t> shape;
  int64_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  for (SizeAttr size : op.getSizes().getSizes()) {
    FailureOr<int64_t> known = blockSize(op, size);
    if (failed(known))
      return failure();
    shape.push_back(*known);
    if (llvm::MulOverflow(bytes, *known, bytes) ||
        bytes > mostScratchBytes - scratchBytes)
      return op.emitError("takes, with what is before it, more than ")
             << mostScratchBytes << " bytes";
  }
  scratchBytes += llvm::alignTo(bytes, 64);
  Value memory = b.scratch(function, shape, element);
  scratch[op] = memory;
  set(op.getMemory(), memory);
  return success();
}

/// Whether the last dimension of the block is that of the memory.
bool KernelLowering::areNeighbors(ValueRange indices) const {
  return isa<RangeType>(indices.back().getType()) &&
         rangeOf(indices.back()).size > 1;
}

void KernelLowering::forPieces(ValueRange indices, bool areNumbers,
                               Value isInside,
                               function_ref<void(const Piece &)> visit) {
  // The ranges that are gone through; of rows all but the last.
  SmallVector<size_t> positions;
  SmallVector<int64_t> sizes;
  for (auto [position, index] : llvm::enumerate(indices))
    if (isa<RangeType>(index.getType()) &&
        (areNumbers || position + 1 < indices.size())) {
      positions.push_back(position);
      sizes.push_back(rangeOf(index).size);
    }
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (int64_t number = 0; number < count; ++number) {
    Piece piece;
    for (Value index : indices)
      piece.indices.push_back(isa<RangeType>(index.getType())
                                  ? rangeOf(index).start
                                  : numberOf(index));
    if (!areNumbers)
      piece.count = rangeOf(indices.back()).count;
    Value isThere = isInside;
    int64_t rest = number;
    for (size_t i = positions.size(); i-- > 0;) {
      const LoweredRange &range = rangeOf(indices[positions[i]]);
      const int64_t at = rest % sizes[i];
      rest /= sizes[i];
      Value &index = piece.indices[positions[i]];
      index = b.createOrFold<arith::AddIOp>(index, b.index(at),
                                            arith::IntegerOverflowFlags::nsw);
      if (!range.count)
        continue;
      Value isBefore = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                                     b.index(at), range.count);
      isThere = isThere
                    ? arith::AndIOp::create(b, isThere, isBefore).getResult()
                    : isBefore;
    }
    if (isThere) {
      Value all = piece.count
                      ? piece.count
                      : b.index(areNumbers ? 1 : rangeOf(indices.back()).size);
      piece.count = b.createOrFold<arith::SelectOp>(isThere, all, b.index(0));
    }
    visit(piece);
  }
}

LogicalResult KernelLowering::lowerLoad(LoadOp op) {
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return failure();
  Value memory = numberOf(op.getMemory());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  LoweredBlock shape(*sizes, element);
  Value isInside = checkBounds(op, op.getMemory(), op.getIndices());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(shape.rowType()));
  SmallVector<Value> values;
  if (areNeighbors(op.getIndices())) {
    auto type = cast<VectorType>(shape.rowType());
    forPieces(op.getIndices(), /*areNumbers=*/false, isInside,
              [&](const Piece &piece) {
                if (!piece.count)
                  values.push_back(
                      vector::LoadOp::create(b, type, memory, piece.indices));
                else
                  values.push_back(vector::MaskedLoadOp::create(
                      b, type, memory, piece.indices,
                      maskOf(piece.count, shape.width()), zero));
              });
    set(op.getResult(),
        LoweredBlock::ofRows(*sizes, element, std::move(values)));
    return success();
  }
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(element));
  forPieces(
      op.getIndices(), /*areNumbers=*/true, isInside, [&](const Piece &piece) {
        if (!piece.count) {
          values.push_back(memref::LoadOp::create(b, memory, piece.indices));
          return;
        }
        Value isThere = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                                      piece.count, b.index(0));
        auto branch = scf::IfOp::create(b, element, isThere,
                                        /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(branch.thenBlock());
        Value loaded = memref::LoadOp::create(b, memory, piece.indices);
        scf::YieldOp::create(b, loaded);
        b.setInsertionPointToStart(branch.elseBlock());
        scf::YieldOp::create(b, none);
        values.push_back(branch.getResult(0));
      });
  set(op.getResult(),
      LoweredBlock::ofNumbers(*sizes, element, std::move(values)));
  return success();
}

LogicalResult KernelLowering::lowerStore(StoreOp op) {
  Value memory = numberOf(op.getMemory());
  const LoweredBlock &value = blockOf(op.getValue());
  size_t next = 0;
  Value isInside = checkBounds(op, op.getMemory(), op.getIndices());
  if (areNeighbors(op.getIndices())) {
    SmallVector<Value> rows = value.getRows(b);
    forPieces(op.getIndices(), /*areNumbers=*/false, isInside,
              [&](const Piece &piece) {
                Value row = rows[next++];
                if (!piece.count)
                  vector::StoreOp::create(b, row, memory, piece.indices);
                else
                  vector::MaskedStoreOp::create(
                      b, memory, piece.indices,
                      maskOf(piece.count, value.width()), row);
              });
    return success();
  }
  SmallVector<Value> numbers = value.getNumbers(b);
  forPieces(op.getIndices(), /*areNumbers=*/true, isInside,
            [&](const Piece &piece) {
              Value number = numbers[next++];
              const auto store = [&] {
                memref::StoreOp::create(b, number, memory, piece.indices);
              };
              if (!piece.count)
                store();
              else
                b.ifThen(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                                       piece.count, b.index(0)),
                         store);
            });
  return success();
}

void KernelLowering::lowerNumber(memref::LoadOp load) {
  SmallVector<Value> indices = llvm::map_to_vector(
      load.getIndices(), [&](Value each) { return numberOf(each); });
  Value memory = numberOf(load.getMemRef());
  Value isInside = checkBounds(load, load.getMemRef(), load.getIndices());
  if (!isInside) {
    set(load.getResult(),
        memref::LoadOp::create(b, memory, indices).getResult());
    return;
  }
  auto branch = scf::IfOp::create(b, load.getType(), isInside,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value loaded = memref::LoadOp::create(b, memory, indices);
  scf::YieldOp::create(b, loaded);
  b.setInsertionPointToStart(branch.elseBlock());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(load.getType()));
  scf::YieldOp::create(b, zero);
  set(load.getResult(), branch.getResult(0));
}

void KernelLowering::lowerNumber(memref::StoreOp store) {
  SmallVector<Value> indices = llvm::map_to_vector(
      store.getIndices(), [&](Value each) { return numberOf(each); });
  const auto write = [&] {
    memref::StoreOp::create(b, numberOf(store.getValue()),
                            numberOf(store.getMemRef()), indices);
  };
  Value isInside = checkBounds(store, store.getMemRef(), store.getIndices());
  if (isInside)
    b.ifThen(isInside, write);
  else
    write();
}
