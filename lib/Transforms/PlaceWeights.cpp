//===- PlaceWeights.cpp - Decide where weights are stored -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/TensorParallelism.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

namespace sandwich {
#define GEN_PASS_DEF_PLACEWEIGHTS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

/// So that no offset in the artifact overflows.
static constexpr int64_t maxArtifactBytes = int64_t(1) << 62;

/// Places `weight` behind `end`, which is then the byte behind it.
static LogicalResult place(lm::WeightOp weight, int64_t &end) {
  int64_t alignment = getWeightAlignment(weight.getTensorType().getRank());
  // One slice cannot overflow by the weight's own constraints.
  int64_t stride = llvm::alignTo(weight.getSliceBytes(), alignment);
  int64_t offset = llvm::alignTo(end, alignment);
  std::optional<int64_t> bytes =
      checkedMultiply<int64_t>(stride, weight.getLayers().value_or(1));
  std::optional<int64_t> next =
      bytes ? checkedAdd(offset, *bytes) : std::nullopt;
  if (!next || *next > maxArtifactBytes)
    return weight.emitOpError("ends beyond the largest artifact of 2^62 bytes");
  weight.setOffset(offset);
  if (weight.getLayers())
    weight.setLayerStride(stride);
  end = *next;
  return success();
}

namespace {
struct PlaceWeights : sandwich::impl::PlaceWeightsBase<PlaceWeights> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Of all symbols at once, as to ask for each reads the whole module.
    auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion());
    DenseSet<StringAttr> used;
    if (uses)
      for (const SymbolTable::SymbolUse &use : *uses)
        used.insert(use.getSymbolRef().getRootReference());
    SmallVector<lm::WeightOp> common, shards;
    for (lm::WeightOp weight :
         llvm::make_early_inc_range(module.getOps<lm::WeightOp>())) {
      if (uses && !used.contains(weight.getSymNameAttr()))
        weight.erase();
      else
        (weight.getShard() ? shards : common).push_back(weight);
    }
    int64_t end = 0;
    for (lm::WeightOp weight : common)
      if (failed(place(weight, end)))
        return signalPassFailure();
    if (!shards.empty())
      end = llvm::alignTo(end, weightRegionAlignment);
    for (lm::WeightOp weight : shards)
      if (failed(place(weight, end)))
        return signalPassFailure();
  }
};
} // namespace
