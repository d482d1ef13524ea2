//===- RotateAppendKV.cpp - Queries, keys and values ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "sandwich/Dialect/LM/Utils/CacheWriter.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Writes the heads of one block of sums, head by head.
class HeadWriter {
public:
  HeadWriter(gemm::EpilogueOp op, SymbolTableCollection &symbols)
      : b(op.getLoc(), op), op(op), symbols(symbols),
        headDim(gemm::getHeadDim(op)),
        cache(b, op.getKvCache(), op.getLayer() ? op.getLayer() : b.index(0)) {}

  void write();

private:
  using RotatedBody = function_ref<void(Value first, Value lower, Value upper)>;

  void writeQueries(Value head, Value column);
  void writeKeys(Value head, Value column);
  void writeValues(Value head, Value column);

  /// Sums of the block's row from channel `first` of the head at `column`,
  /// with their bias.
  Value loadBiased(Value row, Value column, Value first, int64_t width);
  /// `1 / sqrt(mean(x * x) + epsilon)` of a head.
  Value normFactor(Value row, Value column);
  /// Calls `body` for the pairs of a head in vectors, after `norm` (null for
  /// none) and rotation: channels from `first` on, and from `first +
  /// head_dim / 2` on.
  void rotate(Value row, Value column, FlatSymbolRefAttr norm,
              RotatedBody body);
  Value token(Value row) { return b.add(op.getFirstRow(), row); }

  LoopBuilder b;
  gemm::EpilogueOp op;
  SymbolTableCollection &symbols;
  int64_t headDim;
  CacheWriter cache;
};

} // namespace

Value HeadWriter::loadBiased(Value row, Value column, Value first,
                             int64_t width) {
  Value blockColumn = b.add(column, first);
  Value sums = b.loadVector(op.getSums(), {row, blockColumn}, width);
  if (!op.getBiasAttr())
    return sums;
  Value bias = getWeightSlice(b, symbols, op, op.getBiasAttr(), op.getLayer());
  return b.addf(
      sums, b.loadVector(bias, b.add(op.getFirstColumn(), blockColumn), width));
}

Value HeadWriter::normFactor(Value row, Value column) {
  // A head has few vectors: one chain of sums for each.
  Value total;
  for (VectorPiece piece : cutIntoVectors(headDim)) {
    Value x = loadBiased(row, column, b.index(piece.first), piece.width);
    Value sum = b.reduceAdd(b.mulf(x, x));
    total = total ? b.addf(total, sum) : sum;
  }
  Value mean =
      arith::DivFOp::create(b, total, b.constant(static_cast<float>(headDim)));
  Value epsilon = b.constant(op.getNormEpsilon()->convertToFloat());
  Value root = math::SqrtOp::create(b, b.addf(mean, epsilon));
  return arith::DivFOp::create(b, b.constant(1), root);
}

void HeadWriter::rotate(Value row, Value column, FlatSymbolRefAttr norm,
                        RotatedBody body) {
  int64_t half = headDim / 2;
  Value factor, weight;
  if (norm) {
    factor = normFactor(row, column);
    weight = getWeightSlice(b, symbols, op, norm, op.getLayer());
  }
  auto load = [&](Value first, int64_t width) {
    Value x = loadBiased(row, column, first, width);
    if (!norm)
      return x;
    return b.mulf(b.mulf(x, b.broadcast(factor, width)),
                  b.loadVector(weight, first, width));
  };
  b.forVectors(half, [&](Value first, int64_t width) {
    Value second = b.add(first, half);
    Value lower = load(first, width), upper = load(second, width);
    Value table = op.getRotaryTable();
    Value cosine = b.loadVector(table, {token(row), first}, width);
    Value sine = b.loadVector(table, {token(row), second}, width);
    body(first, b.subf(b.mulf(lower, cosine), b.mulf(upper, sine)),
         b.addf(b.mulf(upper, cosine), b.mulf(lower, sine)));
  });
}

void HeadWriter::writeQueries(Value head, Value column) {
  Value channel = b.mul(head, headDim);
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value row) {
    rotate(row, column, op.getQueryNormAttr(),
           [&](Value first, Value lower, Value upper) {
             Value lowerChannel = b.add(channel, first);
             b.storeVector(lower, op.getDestination(),
                           {token(row), lowerChannel});
             b.storeVector(upper, op.getDestination(),
                           {token(row), b.add(lowerChannel, headDim / 2)});
           });
  });
}

void HeadWriter::writeKeys(Value head, Value column) {
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value row) {
    CacheWriter::Place place = cache.locate(op.getSlots(), token(row));
    // A whole key is rotated in the place of its sums, which nothing reads
    // again.
    auto store = [&](Value first, Value channels) {
      if (cache.storesParts())
        cache.storeKeyPart(place, head, first, channels);
      else
        b.storeVector(channels, op.getSums(), {row, b.add(column, first)});
    };
    rotate(row, column, op.getKeyNormAttr(),
           [&](Value first, Value lower, Value upper) {
             store(first, lower);
             store(b.add(first, headDim / 2), upper);
           });
    if (!cache.storesParts())
      cache.storeKey(place, head, [&](Value first, int64_t width) {
        return b.loadVector(op.getSums(), {row, b.add(column, first)}, width);
      });
  });
}

void HeadWriter::writeValues(Value head, Value column) {
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value row) {
    CacheWriter::Place place = cache.locate(op.getSlots(), token(row));
    cache.storeValue(place, head, [&](Value first, int64_t width) {
      return loadBiased(row, column, first, width);
    });
  });
}

void HeadWriter::write() {
  int64_t queryHeads =
      cast<MemRefType>(op.getDestination().getType()).getDimSize(1) / headDim;
  int64_t cacheHeads =
      cast<MemRefType>(op.getKvCache().getType()).getDimSize(2);
  Value firstHead = b.div(op.getFirstColumn(), headDim);
  auto isBelow = [&](Value head, int64_t limit) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, head,
                                 b.index(limit));
  };
  b.forLoop(b.index(0), op.getColumns(), headDim, [&](Value column) {
    Value head = b.add(firstHead, b.div(column, headDim));
    b.ifThenElse(
        isBelow(head, queryHeads), [&] { writeQueries(head, column); },
        [&] {
          Value key = b.sub(head, b.index(queryHeads));
          b.ifThenElse(
              isBelow(key, cacheHeads), [&] { writeKeys(key, column); },
              [&] { writeValues(b.sub(key, b.index(cacheHeads)), column); });
        });
  });
}

void sandwich::emitRotateAppendKV(gemm::EpilogueOp op,
                                  SymbolTableCollection &symbols) {
  HeadWriter(op, symbols).write();
}
