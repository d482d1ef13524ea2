//===- PlaceWeights.cpp - Decide where weights are stored -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/WeightAccess.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/CheckedMath.h"
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

namespace {
struct PlaceWeights : sandwich::impl::PlaceWeightsBase<PlaceWeights> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t offset = 0;
    for (lm::WeightOp weight :
         llvm::make_early_inc_range(module.getOps<lm::WeightOp>())) {
      if (SymbolTable::symbolKnownUseEmpty(weight, module)) {
        weight.erase();
        continue;
      }
      RankedTensorType type = weight.getTensorType();
      int64_t alignment = getWeightAlignment(type.getRank());
      // One slice cannot overflow by the weight's own constraints.
      int64_t stride = llvm::alignTo(weight.getSliceBytes(), alignment);
      int64_t layers = weight.getLayers().value_or(1);
      offset = llvm::alignTo(offset, alignment);
      std::optional<int64_t> bytes = checkedMultiply(stride, layers);
      std::optional<int64_t> end =
          bytes ? checkedAdd(offset, *bytes) : std::nullopt;
      if (!end || *end > maxArtifactBytes) {
        weight.emitOpError("ends beyond the largest artifact of 2^62 bytes");
        return signalPassFailure();
      }
      weight.setOffset(offset);
      if (weight.getLayers())
        weight.setLayerStride(stride);
      offset = *end;
    }
  }
};
} // namespace
