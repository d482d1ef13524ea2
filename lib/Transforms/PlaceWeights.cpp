//===- PlaceWeights.cpp - Decide where weights are stored -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/WeightAccess.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

namespace sandwich {
#define GEN_PASS_DEF_PLACEWEIGHTS
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

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
      int64_t alignment = weight.getTensorType().getRank() == 2 ? 4096 : 64;
      offset = llvm::alignTo(offset, alignment);
      int64_t stride = llvm::alignTo(getWeightSliceBytes(weight), alignment);
      weight.setOffset(offset);
      if (weight.getLayers())
        weight.setLayerStride(stride);
      offset += stride * weight.getLayers().value_or(1);
    }
  }
};
} // namespace
