//===- CacheWriter.h - Keys and values into the cache -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_UTILS_CACHEWRITER_H
#define SANDWICH_DIALECT_LM_UTILS_CACHEWRITER_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"

namespace sandwich {

/// Writes keys and values of tokens to one layer of a paged cache, in its
/// layout and rounded to its elements.
class CacheWriter {
public:
  /// `cache` is the buffer of a `!lm.kv_cache`.
  CacheWriter(LoopBuilder &builder, mlir::Value cache, mlir::Value layer);

  /// A cache block, and the place of a token in it.
  struct Place {
    mlir::Value block, slot;
  };
  /// Where the keys and values of the token number `token` of a step go.
  Place locate(mlir::Value slots, mlir::Value token);

  /// `width` channels of a key, or a value, of one head from `first` on, as a
  /// vector of f32.
  using Channels =
      llvm::function_ref<mlir::Value(mlir::Value first, int64_t width)>;
  /// Stores a whole key, or a whole value, of one head; `channels` may be asked
  /// more than once.
  void storeKey(const Place &place, mlir::Value head, Channels channels);
  void storeValue(const Place &place, mlir::Value head, Channels channels);

  /// Whether channels are rounded one by one, so that a part of a key can be
  /// stored.
  bool storesParts() const { return !type.hasScales(); }
  /// Stores an f32 vector as the channels of a key of one head from
  /// `firstChannel` on: a multiple of those that lie together, as is the
  /// vector's width.
  void storeKeyPart(const Place &place, mlir::Value head,
                    mlir::Value firstChannel, mlir::Value vector);

  int64_t headDim() const { return type.getHeadDim(); }

private:
  mlir::Value roundToCache(mlir::Value vector);
  using StoreVector =
      llvm::function_ref<void(mlir::Value first, mlir::Value elements)>;
  /// Calls `store` for vectors of elements of a head's keys (`part` 0) or
  /// values (1), and stores their scale if they have one.
  void storeHead(const Place &place, mlir::Value head, int64_t part,
                 Channels channels, StoreVector store);
  mlir::Value findLargest(Channels channels);
  void storeElements(const Place &place, mlir::Value head, int64_t part,
                     mlir::Value offset, mlir::Value elements);
  void storeKeyElements(const Place &place, mlir::Value head,
                        mlir::Value firstChannel, mlir::Value elements);

  LoopBuilder &b;
  mlir::Value cache, layer;
  lm::KVCacheType type;
};

} // namespace sandwich

#endif // SANDWICH_DIALECT_LM_UTILS_CACHEWRITER_H
