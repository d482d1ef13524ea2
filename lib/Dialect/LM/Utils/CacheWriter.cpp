//===- CacheWriter.cpp - Keys and values into the cache -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/Utils/CacheWriter.h"

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

void CacheWriter::storeKey(const Place &place, Value head, Value firstChannel,
                           Value vector) {
  const int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  // Of a token, only channels that lie together are neighbors.
  const int64_t together = type.getKeyChannelsTogether();
  Value keys = roundToCache(vector);
  Value offset =
      b.add(b.mul(firstChannel, blockTokens), b.mul(place.slot, together));
  for (int64_t i = 0; i < width; i += together) {
    Value key = vector::ExtractStridedSliceOp::create(b, keys, i, together,
                                                      /*strides=*/1);
    vector::StoreOp::create(b, key, cache,
                            ValueRange{place.block, layer, head, b.index(0),
                                       b.add(offset, i * blockTokens)});
  }
}

void CacheWriter::storeValue(const Place &place, Value head, Value firstChannel,
                             Value vector) {
  Value offset = b.mul(place.slot, type.getHeadDim());
  vector::StoreOp::create(b, roundToCache(vector), cache,
                          ValueRange{place.block, layer, head, b.index(1),
                                     b.add(offset, firstChannel)});
}
