//===- VectorToBlock.cpp - Raised kernels of any width --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWidening.h"
#include "Preparation.h"

#include "sandwich/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace sandwich {
#define GEN_PASS_DEF_VECTORTOBLOCK
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {
struct VectorToBlock : sandwich::impl::VectorToBlockBase<VectorToBlock> {
  void runOnOperation() override {
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || block::isKernel(function) ||
          !widening::isPlain(function))
        continue;
      widening::foldBitcasts(function);
      widening::simplifyInductions(function);
      widening::forwardStores(function);
      widening::retypeBytes(function);
      widening::extendBeforeShuffles(function);
      widening::flattenBranches(function);
      widening::recognizeMasks(function);
      widening::recognizeReductions(function);
      if (succeeded(widening::KernelWidening(function).run()))
        function.erase();
    }
  }
};
} // namespace
