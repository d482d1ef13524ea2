//===- Memory.cpp - Blocks in memory --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "sandwich/Target/Target.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

/// A thread's stack holds that of one kernel beside all else.
static constexpr int64_t mostScratchBytes = int64_t(5) << 18;

/// Memory with its last two dimensions in the other order.
static memref::TransposeOp swapLastDimensions(LoopBuilder &builder,
                                              Value memory) {
  const int64_t rank = cast<MemRefType>(memory.getType()).getRank();
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  auto map = AffineMap::getPermutationMap(order, builder.getContext());
  return memref::TransposeOp::create(builder, memory, AffineMapAttr::get(map));
}

Value KernelLowering::allocate(Operation *op, ArrayRef<int64_t> shape,
                               Type element) {
  int64_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  for (int64_t size : shape)
    if (llvm::MulOverflow(bytes, size, bytes) ||
        bytes > mostScratchBytes - scratchBytes) {
      op->emitError("takes, with what is before it, more than ")
          << mostScratchBytes << " bytes";
      return {};
    }
  scratchBytes += llvm::alignTo(bytes, 64);
  return b.scratch(function, shape, element);
}

LogicalResult KernelLowering::lowerScratch(ScratchOp op) {
  Type element = cast<MemRefType>(op.getMemory().getType()).getElementType();
  if (Value known = scratch.lookup(op)) {
    set(op.getMemory(), known);
    return success();
  }
  SmallVector<int64_t> shape;
  for (SizeAttr size : op.getSizes().getSizes()) {
    FailureOr<int64_t> known = blockSize(op, size);
    if (failed(known))
      return failure();
    shape.push_back(*known);
  }
  if (op.getPairs())
    std::swap(shape.end()[-1], shape.end()[-2]);
  Value memory = allocate(op, shape, element);
  if (!memory)
    return failure();
  if (op.getPairs()) {
    // As it lies at the function's beginning, and in the order of its sizes.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(memory);
    memory = swapLastDimensions(b, memory);
  }
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
  // Long chains are no places.
  constexpr int mostDepth = 64;
  if (placesDepth == mostDepth)
    return false;
  ++placesDepth;
  const bool are =
      !block.use_empty() && llvm::all_of(block.getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        if (isa<LoadOp, PrefetchOp>(user))
          return use.getOperandNumber() >= 1;
        if (isa<StoreOp>(user))
          return use.getOperandNumber() >= 2;
        return user->hasTrait<OpTrait::Elementwise>() &&
               user->getNumResults() == 1 &&
               isBlock(user->getResult(0).getType()) &&
               arePlaces(user->getResult(0));
      });
  --placesDepth;
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

bool block::liesInPairs(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  const int64_t rank = type.getRank();
  return rank > 1 && succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[rank - 1] == 2 && strides[rank - 2] == 1 &&
         type.getDimSize(rank - 2) == 2;
}

Value block::asItLies(LoopBuilder &builder, Value memory) {
  const int64_t rank = cast<MemRefType>(memory.getType()).getRank();
  auto turned = swapLastDimensions(builder, memory);
  SmallVector<ReassociationIndices> dimensions;
  for (int64_t i = 0; i + 2 < rank; ++i)
    dimensions.push_back({i});
  dimensions.push_back({rank - 2, rank - 1});
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(turned.getType(),
                                                        dimensions))
    return {};
  return memref::CollapseShapeOp::create(builder, turned, dimensions);
}

bool KernelLowering::areBothOfPairs(Value index) const {
  if (!isa<RangeType>(index.getType()))
    return false;
  const LoweredRange &range = rangeOf(index);
  return range.size == 2 && !range.count && constantOf(range.start) == 0;
}

bool KernelLowering::lowerPairs(LoadOp op, Value isInside) {
  ValueRange indices = op.getIndices();
  Value memory = numberOf(op.getMemory());
  auto type = cast<MemRefType>(memory.getType());
  Value before = indices[indices.size() - 2];
  if (isBlock(before.getType()) || !constantOf(startOf(before)))
    return false;
  Value flat = asItLies(b, memory);
  if (!flat)
    return false;
  const LoweredRange &range = rangeOf(indices.back());
  auto both = VectorType::get({2 * range.size}, type.getElementType());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(both));
  SmallVector<int64_t> sizes =
      *blockSizes(op, sizesOf(op.getResult().getType()));
  SmallVector<Value> values;
  const bool areBoth = areBothOfPairs(before);
  forPieces(indices, /*areNumbers=*/false, isInside, [&](Piece piece) {
    const int64_t which = *constantOf(piece.indices.end()[-2]);
    // What was loaded for the first one of a pair.
    if (areBoth && which == 1) {
      values.push_back(
          values.back().getDefiningOp<vector::DeinterleaveOp>().getRes2());
      return;
    }
    Value place = b.mul(piece.indices.pop_back_val(), 2);
    piece.indices.back() = place;
    Value loaded;
    if (piece.count)
      loaded = vector::MaskedLoadOp::create(
          b, both, flat, piece.indices,
          maskOf(b.mul(piece.count, 2), 2 * range.size), zero);
    else
      loaded = vector::LoadOp::create(b, both, flat, piece.indices);
    values.push_back(vector::DeinterleaveOp::create(b, loaded)->getResult(
        static_cast<unsigned>(which & 1)));
  });
  set(op.getResult(),
      LoweredBlock::ofRows(sizes, type.getElementType(), std::move(values)));
  return true;
}

/// Each cache line that numbers of a block are in, taken as if its first one
/// began one, is asked for once.
LogicalResult KernelLowering::lowerPrefetch(PrefetchOp op) {
  // No more than a block that is loaded.
  if (failed(blockSizes(op, sizesOfPlaces(op.getIndices().getTypes()))))
    return failure();
  ValueRange indices = op.getIndices();
  Value memory = numberOf(op.getMemory());
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides;
  int64_t unused = 0;
  if (failed(type.getStridesAndOffset(strides, unused)))
    strides.assign(indices.size(), ShapedType::kDynamic);
  const int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8;
  // The places of each dimension, and how many bytes each is behind the first.
  // What is known not to be in the same line is told apart by a number.
  struct Places {
    SmallVector<Value> indices;
    bool areNear;
  };
  SmallVector<Places> places;
  int64_t count = 1;
  for (auto [dimension, index] : llvm::enumerate(indices)) {
    Places each{{}, false};
    if (isBlock(index.getType())) {
      each.indices = placesOf(index);
    } else if (isa<RangeType>(index.getType())) {
      const LoweredRange &range = rangeOf(index);
      for (int64_t i = 0; i < range.size; ++i)
        each.indices.push_back(
            b.createOrFold<arith::AddIOp>(range.start, b.index(i)));
      each.areNear = !ShapedType::isDynamic(strides[dimension]);
    } else {
      each.indices.push_back(numberOf(index));
    }
    count *= static_cast<int64_t>(each.indices.size());
    places.push_back(std::move(each));
  }
  rowsMade += count;
  llvm::DenseSet<std::pair<int64_t, int64_t>> lines;
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<Value> own(indices.size());
    int64_t rest = number, apart = 0, offset = 0;
    for (size_t i = indices.size(); i-- > 0;) {
      const auto most = static_cast<int64_t>(places[i].indices.size());
      const int64_t at = rest % most;
      rest /= most;
      own[i] = places[i].indices[at];
      if (places[i].areNear)
        offset += at * strides[i] * bytes;
      else
        apart = apart * most + at;
    }
    if (lines.insert({apart, offset / cacheLineBytes}).second)
      memref::PrefetchOp::create(b, memory, own, /*isWrite=*/false,
                                 /*localityHint=*/3, /*isDataCache=*/true);
  }
  return success();
}

bool KernelLowering::storePairs(StoreOp op, Value isInside) {
  ValueRange indices = op.getIndices();
  Value flat = areBothOfPairs(indices[indices.size() - 2])
                   ? asItLies(b, numberOf(op.getMemory()))
                   : Value();
  if (!flat)
    return false;
  SmallVector<Value> rows = blockOf(op.getValue()).getRows(b);
  const int64_t width = 2 * rangeOf(indices.back()).size;
  size_t next = 0;
  forPieces(indices, /*areNumbers=*/false, isInside, [&](Piece piece) {
    if (next++ % 2 == 1)
      return;
    Value both = interleaveRows(b, rows[next - 1], rows[next]);
    piece.indices.end()[-2] = b.mul(piece.indices.back(), 2);
    piece.indices.pop_back();
    if (piece.count)
      vector::MaskedStoreOp::create(b, flat, piece.indices,
                                    maskOf(b.mul(piece.count, 2), width), both);
    else
      vector::StoreOp::create(b, both, flat, piece.indices);
  });
  return true;
}

LogicalResult KernelLowering::lowerLoad(LoadOp op) {
  if (staysInMemory(op))
    return success();
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return failure();
  Value memory = numberOf(op.getMemory());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  LoweredBlock shape(*sizes, element);
  Value isInside = checkBounds(op, op.getMemory(), op.getIndices());
  const bool isPaired = liesInPairs(cast<MemRefType>(memory.getType()));
  if (isPaired && areNeighbors(op.getIndices()) && lowerPairs(op, isInside))
    return success();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(shape.rowType()));
  SmallVector<Value> values;
  const bool areAllThere =
      !isInside && llvm::none_of(op.getIndices(), [&](Value index) {
        return isa<RangeType>(index.getType()) && rangeOf(index).count;
      });
  if (areNeighbors(op.getIndices()) && !isPaired &&
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
  FailureOr<bool> isStored = storeFromTiles(op);
  if (failed(isStored) || *isStored)
    return success(succeeded(isStored));
  Value memory = numberOf(op.getMemory());
  const LoweredBlock &value = blockOf(op.getValue());
  size_t next = 0;
  Value isInside = checkBounds(op, op.getMemory(), op.getIndices());
  const bool isPaired = liesInPairs(cast<MemRefType>(memory.getType()));
  if (isPaired && areNeighbors(op.getIndices()) && storePairs(op, isInside))
    return success();
  if (areNeighbors(op.getIndices()) && !isPaired) {
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
