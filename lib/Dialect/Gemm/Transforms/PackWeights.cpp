//===- PackWeights.cpp - Choose the packing of each weight ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace sandwich::gemm {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"
} // namespace sandwich::gemm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

namespace {
struct PackWeights : gemm::impl::PackWeightsBase<PackWeights> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result = getOperation().walk([&](MatmulOp matmul) {
      if (!matmul.getSchedules()) {
        matmul.emitOpError("has no schedules to choose a packing for");
        return WalkResult::interrupt();
      }
      lm::WeightOp weight =
          lm::lookupWeight(symbols, matmul, matmul.getWeightAttr());
      const StorageFormat storage = weight.getStorageFormat();
      for (ScheduleAttr schedule : matmul.getSchedules()->getSchedules()) {
        const MicroKernel &kernel = schedule.getSchedule().microKernel;
        auto previous = dyn_cast_or_null<PackingAttr>(weight.getPackingAttr());
        if (previous && reads(kernel, previous.getPacking(), storage))
          continue;
        auto packing = PackingAttr::get(matmul.getContext(),
                                        packingOf(kernel.isa, storage));
        if (weight.getPackingAttr()) {
          matmul.emitOpError() << kernel.name() << " needs packing " << packing
                               << ", but " << matmul.getWeightAttr()
                               << " is packed as " << weight.getPackingAttr()
                               << "; one copy of a weight serves all schedules";
          return WalkResult::interrupt();
        }
        if (weight.getOffset()) {
          matmul.emitOpError("cannot choose a packing of ")
              << matmul.getWeightAttr() << ", which has a place already";
          return WalkResult::interrupt();
        }
        weight.setPackingAttr(packing);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    packTables();
  }

  /// Integers have a packing also where they are only looked up.
  void packTables() {
    constexpr int64_t narrowest = 16;
    for (auto weight : getOperation().getOps<lm::WeightOp>())
      if (weight.getStorage() && !weight.getPackingAttr())
        weight.setPackingAttr(
            PackingAttr::get(&getContext(), integerPacking(narrowest)));
  }
};
} // namespace
