//===- CacheWriter.cpp - Keys and values into the cache -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/Utils/CacheWriter.h"
#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include <limits>

using namespace mlir;
using namespace sandwich;

static constexpr int64_t blockTokens = lm::KVCacheType::blockTokens;

CacheWriter::CacheWriter(LoopBuilder &builder, Value cache, Value layer)
    : b(builder), cache(cache), layer(layer),
      type(lm::getKVCacheType(cache.getType())) {}

CacheWriter::Place CacheWriter::locate(Value slots, Value token) {
  Value slot = b.loadIndex(slots, token);
  return {b.div(slot, blockTokens), b.rem(slot, blockTokens)};
}

/// The f32 `vector` rounded to elements of the cache.
Value CacheWriter::roundToCache(Value vector) {
  auto vectorType = cast<VectorType>(vector.getType());
  Type element = type.getElementType();
  if (element.isF32())
    return vector;
  if (!element.isBF16())
    return arith::TruncFOp::create(b, vectorType.clone(element), vector);
  // Not vcvtneps2bf16, which takes subnormal numbers for zero: all CPUs are to
  // write the same. Adding just less than half of the last bit that stays, and
  // that bit, carries into it where the nearest, or the even one of two as
  // near, is the larger.
  auto bitsType = vectorType.clone(b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b,
                                     DenseElementsAttr::get(bitsType, value));
  };
  Value sixteen = constant(16);
  Value bits = arith::BitcastOp::create(b, bitsType, vector);
  Value last = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, sixteen), constant(1));
  Value half = arith::AddIOp::create(b, last, constant(0x7fff));
  Value upper =
      arith::ShRUIOp::create(b, arith::AddIOp::create(b, bits, half), sixteen);
  // Of a NaN the sum could be anything.
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, vector, vector);
  Value rounded = arith::SelectOp::create(b, isNaN, constant(0x7fc0), upper);
  Value narrow =
      arith::TruncIOp::create(b, vectorType.clone(b.getI16Type()), rounded);
  return arith::BitcastOp::create(b, vectorType.clone(element), narrow);
}

/// The largest magnitude of a head's channels; no number, or infinite, if one
/// is.
Value CacheWriter::findLargest(Channels channels) {
  const int64_t rest = headDim() % vectorWidth, whole = headDim() - rest;
  auto load = [&](Value first, int64_t width) {
    return magnitudeBits(b, channels(first, width));
  };
  auto reduce = [&](Value bits) -> Value {
    return vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, bits);
  };
  Value largest;
  if (whole > 0) {
    auto bitsType = VectorType::get({vectorWidth}, b.getI32Type());
    Value none = arith::ConstantOp::create(
        b, DenseElementsAttr::get(bitsType, b.getI32IntegerAttr(0)));
    Value bits =
        b.forLoop(b.index(0), b.index(whole), vectorWidth, none,
                  [&](Value first, ValueRange carried) -> SmallVector<Value> {
                    return {arith::MaxSIOp::create(b, carried.front(),
                                                   load(first, vectorWidth))};
                  })[0];
    largest = reduce(bits);
  }
  if (rest > 0) {
    Value ofRest = reduce(load(b.index(whole), rest));
    largest =
        largest ? arith::MaxSIOp::create(b, largest, ofRest) : Value(ofRest);
  }
  return arith::BitcastOp::create(b, b.getF32Type(), largest);
}

void CacheWriter::storeHead(const Place &place, Value head, int64_t part,
                            Channels channels, StoreVector store) {
  if (!type.hasScales()) {
    b.forVectors(headDim(), [&](Value first, int64_t width) {
      store(first, roundToCache(channels(first, width)));
    });
    return;
  }
  Value largest = findLargest(channels);
  auto [scale, inverse] = scaleToInt8(b, largest);
  // What is infinite must not become a number where it is weighed by zero.
  Value isFinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, largest,
                            b.constant(std::numeric_limits<float>::infinity()));
  scale = arith::SelectOp::create(
      b, isFinite, scale, b.constant(std::numeric_limits<float>::quiet_NaN()));
  b.forVectors(headDim(), [&](Value first, int64_t width) {
    Value integers =
        roundToIntegers(b, channels(first, width), b.broadcast(inverse, width));
    store(first, arith::TruncIOp::create(
                     b, VectorType::get({width}, b.getI8Type()), integers));
  });
  Value bytes = vector::BitCastOp::create(
      b, VectorType::get({lm::KVCacheType::scaleBytes}, b.getI8Type()),
      b.broadcast(scale, 1));
  storeElements(place, head, part,
                b.add(b.mul(place.slot, lm::KVCacheType::scaleBytes),
                      type.getScalesOffset()),
                bytes);
}

void CacheWriter::storeElements(const Place &place, Value head, int64_t part,
                                Value offset, Value elements) {
  vector::StoreOp::create(
      b, elements, cache,
      ValueRange{place.block, layer, head, b.index(part), offset});
}

void CacheWriter::storeKeyElements(const Place &place, Value head,
                                   Value firstChannel, Value elements) {
  const int64_t width = cast<VectorType>(elements.getType()).getNumElements();
  // Of a token, only channels that lie together are neighbors.
  const int64_t together = type.getKeyChannelsTogether();
  Value offset =
      b.add(b.mul(firstChannel, blockTokens), b.mul(place.slot, together));
  for (int64_t i = 0; i < width; i += together) {
    Value key = vector::ExtractStridedSliceOp::create(b, elements, i, together,
                                                      /*strides=*/1);
    storeElements(place, head, 0, b.add(offset, i * blockTokens), key);
  }
}

void CacheWriter::storeKey(const Place &place, Value head, Channels channels) {
  storeHead(place, head, 0, channels, [&](Value first, Value elements) {
    storeKeyElements(place, head, first, elements);
  });
}

void CacheWriter::storeKeyPart(const Place &place, Value head,
                               Value firstChannel, Value vector) {
  storeKeyElements(place, head, firstChannel, roundToCache(vector));
}

void CacheWriter::storeValue(const Place &place, Value head,
                             Channels channels) {
  Value offset = b.mul(place.slot, headDim());
  storeHead(place, head, 1, channels, [&](Value first, Value elements) {
    storeElements(place, head, 1, b.add(offset, first), elements);
  });
}
