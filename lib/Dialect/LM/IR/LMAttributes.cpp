//===- LMAttributes.cpp - Attributes and types of lm ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

#include "sandwich/Dialect/LM/IR/LMEnums.cpp.inc"
#include "sandwich/Dialect/LM/IR/LMInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"

void LMDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"
      >();
}

void LMDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"
      >();
}

/// Constraint (C1) of `!lm.kv_cache`.
static bool areCacheSizes(int64_t layers, int64_t heads, int64_t headDim) {
  return layers > 0 && layers <= maxLayers && heads > 0 && heads <= maxHeads &&
         headDim > 0 && headDim <= maxHeadDim;
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ShardKind kind, int64_t ranks) {
  if (!canShareModel(ranks))
    return emitError() << "(C1) ranks must be between 2 and "
                       << maxTensorParallelRanks;
  return success();
}

LogicalResult KVCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t layers, int64_t heads,
                                  int64_t headDim, Type elementType) {
  if (!areCacheSizes(layers, heads, headDim))
    return emitError() << "(C1) layers must be between 1 and " << maxLayers
                       << ", heads between 1 and " << maxHeads
                       << ", head_dim between 1 and " << maxHeadDim;
  if (!isa<Float32Type, BFloat16Type, Float16Type>(elementType))
    return emitError() << "(C2) elements must be f32, bf16 or f16";
  return success();
}

MemRefType KVCacheType::getBufferType() const {
  return MemRefType::get({ShapedType::kDynamic, getLayers(), getHeads(), 2,
                          getHeadDim() * blockTokens},
                         getElementType());
}

KVCacheType lm::getKVCacheType(Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return cache;
  auto buffer = cast<MemRefType>(type);
  int64_t layers = buffer.getDimSize(1), heads = buffer.getDimSize(2);
  int64_t headDim = buffer.getDimSize(4) / KVCacheType::blockTokens;
  if (!areCacheSizes(layers, heads, headDim))
    return {};
  auto cache = KVCacheType::get(type.getContext(), layers, heads, headDim,
                                buffer.getElementType());
  bool fits = buffer.getShape().drop_front() ==
              cache.getBufferType().getShape().drop_front();
  return fits ? cache : KVCacheType();
}
