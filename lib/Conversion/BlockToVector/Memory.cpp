//===- Memory.cpp - Blocks in memory --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "sandwich/Target/Target.h"

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
  SmallVector<SmallVector<Value>> places;
  for (auto [position, index] : llvm::enumerate(indices)) {
    if (isBlock(index.getType())) {
      positions.push_back(position);
      places.push_back(placesOf(index));
      sizes.push_back(static_cast<int64_t>(places.back().size()));
    } else if (isa<RangeType>(index.getType()) &&
               (areNumbers || position + 1 < indices.size())) {
      positions.push_back(position);
      places.emplace_back();
      sizes.push_back(rangeOf(index).size);
    }
  }
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (int64_t number = 0; number < count; ++number) {
    Piece piece;
    for (Value index : indices)
      piece.indices.push_back(startOf(index));
    if (!areNumbers)
      piece.count = rangeOf(indices.back()).count;
    Value isThere = isInside;
    int64_t rest = number;
    for (size_t i = positions.size(); i-- > 0;) {
      const int64_t at = rest % sizes[i];
      rest /= sizes[i];
      Value &index = piece.indices[positions[i]];
      if (!places[i].empty()) {
        index = places[i][at];
        continue;
      }
      const LoweredRange &range = rangeOf(indices[positions[i]]);
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

bool KernelLowering::arePlaces(Value block) {
  auto [found, isNew] = foundPlaces.try_emplace(block, false);
  if (!isNew)
    return found->second;
  const bool are = !block.use_empty() && llvm::all_of(block.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<LoadOp, PrefetchOp>(user))
      return use.getOperandNumber() >= 1;
    if (isa<StoreOp>(user))
      return use.getOperandNumber() >= 2;
    return user->hasTrait<OpTrait::Elementwise>() &&
           user->getNumResults() == 1 && isBlock(user->getResult(0).getType()) &&
           arePlaces(user->getResult(0));
  });
  return foundPlaces[block] = are;
}

SmallVector<Value> KernelLowering::placesOf(Value indices) {
  return blockOf(indices).getNumbers(b);
}

/// Where an access begins in the dimension of `index`; of a block of indices
/// there is no such place.
Value KernelLowering::startOf(Value index) {
  if (isa<RangeType>(index.getType()))
    return rangeOf(index).start;
  return isBlock(index.getType()) ? Value() : numberOf(index);
}

/// Whether nothing but single numbers of `block` are used, repeated in rows.
static bool isUsedByNumbers(Value block) {
  return llvm::all_of(block.getUses(), [](OpOperand &use) {
    auto expand = dyn_cast<ExpandOp>(use.getOwner());
    return expand && (expand.getAxis() + 1 ==
                          sizesOf(expand.getResult().getType()).size() ||
                      isUsedByNumbers(expand.getResult()));
  });
}

/// The last dimensions of `memory`, from `first` on, as one; null if they do not
/// lie so.
static Value collapseFrom(LoopBuilder &builder, Value memory, size_t first) {
  auto type = cast<MemRefType>(memory.getType());
  const auto rank = static_cast<size_t>(type.getRank());
  SmallVector<ReassociationIndices> dimensions;
  for (size_t i = 0; i < rank; ++i) {
    if (i <= first)
      dimensions.emplace_back();
    dimensions.back().push_back(static_cast<int64_t>(i));
  }
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(type, dimensions))
    return {};
  return memref::CollapseShapeOp::create(builder, memory, dimensions);
}

bool KernelLowering::lowerStridedLoad(LoadOp op, ArrayRef<int64_t> sizes) {
  ValueRange indices = op.getIndices();
  Value memory = numberOf(op.getMemory());
  auto type = cast<MemRefType>(memory.getType());
  // The dimension whose neighbors are apart, and how far.
  size_t dimension = indices.size();
  int64_t stride = 1, offset = 0;
  while (dimension-- > 0) {
    Value index = indices[dimension];
    if (isa<RangeType>(index.getType()))
      break;
    const int64_t extent = type.getDimSize(static_cast<int64_t>(dimension));
    std::optional<int64_t> known = isBlock(index.getType())
                                       ? std::nullopt
                                       : constantOf(numberOf(index));
    if (!known || *known < 0 || *known >= extent || extent > 2)
      return false;
    offset += *known * stride;
    stride *= extent;
    if (dimension == 0)
      return false;
  }
  const LoweredRange &range = rangeOf(indices[dimension]);
  if (stride > 2 || range.size == 1 || dimension + 1 == indices.size())
    return false;
  Value collapsed = collapseFrom(b, memory, dimension);
  if (!collapsed)
    return false;
  const Type element = type.getElementType();
  const int64_t width = range.size * stride;
  auto loadedType = VectorType::get({width}, element);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(loadedType));
  SmallVector<Value> values;
  forPieces(indices.take_front(dimension + 1), /*areNumbers=*/false, Value(),
            [&](Piece piece) {
              piece.indices.back() = b.mul(piece.indices.back(), stride);
              Value loaded;
              if (piece.count)
                loaded = vector::MaskedLoadOp::create(
                    b, loadedType, collapsed, piece.indices,
                    maskOf(b.mul(piece.count, stride), width), zero);
              else
                loaded = vector::LoadOp::create(b, loadedType, collapsed,
                                                piece.indices);
              if (stride == 2)
                loaded = vector::DeinterleaveOp::create(b, loaded)->getResult(
                    static_cast<unsigned>(offset));
              values.push_back(loaded);
            });
  set(op.getResult(), LoweredBlock::ofRows(sizes, element, std::move(values)));
  return true;
}

/// Neighbors that begin where a range does, and go on through all dimensions
/// behind it of which there is a range for the whole, are asked for line by
/// line.
void KernelLowering::lowerPrefetch(PrefetchOp op) {
  ValueRange indices = op.getIndices();
  Value memory = numberOf(op.getMemory());
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  const bool isStrided = succeeded(type.getStridesAndOffset(strides, offset));
  size_t first = indices.size();
  int64_t count = 1;
  while (isStrided && first > 0 && isa<RangeType>(indices[first - 1].getType()) &&
         strides[first - 1] == count) {
    --first;
    const int64_t size = rangeOf(indices[first]).size;
    count *= size;
    if (type.getDimSize(static_cast<int64_t>(first)) != size)
      break;
  }
  const int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
  const int64_t lineNumbers =
      std::max<int64_t>(1, static_cast<int64_t>(cacheLineBytes) / bytes);
  SmallVector<Value> rest = llvm::map_to_vector(
      indices.drop_front(first), [&](Value index) { return startOf(index); });
  forPieces(indices.take_front(first), /*areNumbers=*/true, Value(),
            [&](Piece piece) {
              for (int64_t number = 0; number < count; number += lineNumbers) {
                SmallVector<Value> places(piece.indices);
                int64_t left = number;
                for (size_t i = first; i < indices.size(); ++i) {
                  places.push_back(b.createOrFold<arith::AddIOp>(
                      rest[i - first], b.index(left / strides[i])));
                  left %= strides[i];
                }
                memref::PrefetchOp::create(b, memory, places, /*isWrite=*/false,
                                           /*localityHint=*/3,
                                           /*isDataCache=*/true);
              }
            });
}

LogicalResult KernelLowering::lowerLoad(LoadOp op) {
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return failure();
  if (!checks && lowerStridedLoad(op, *sizes))
    return success();
  Value memory = numberOf(op.getMemory());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  LoweredBlock shape(*sizes, element);
  Value isInside = checkBounds(op, op.getMemory(), op.getIndices());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(shape.rowType()));
  SmallVector<Value> values;
  const bool areAllThere =
      !isInside && llvm::none_of(op.getIndices(), [&](Value index) {
        return isa<RangeType>(index.getType()) && rangeOf(index).count;
      });
  if (areNeighbors(op.getIndices()) &&
      !(areAllThere &&
        (isUsedByNumbers(op.getResult()) || arePlaces(op.getResult())))) {
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
