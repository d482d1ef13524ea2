//===- StripModel.cpp - Nothing but code ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Transforms/Passes.h"

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

namespace sandwich {
#define GEN_PASS_DEF_STRIPMODEL
#include "sandwich/Transforms/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

struct StripModel : public sandwich::impl::StripModelBase<StripModel> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    SymbolUserMap users(symbols, getOperation());
    for (auto weight :
         llvm::make_early_inc_range(getOperation().getOps<lm::WeightOp>())) {
      if (!users.useEmpty(weight)) {
        users.getUsers(weight).front()->emitOpError("refers to @")
            << weight.getSymName() << "; convert it first";
        return signalPassFailure();
      }
      weight.erase();
    }
    // The runtime draws tokens where no kernel does.
    for (auto sampling :
         llvm::make_early_inc_range(getOperation().getOps<lm::SamplingOp>())) {
      if (sampling->hasAttr(lm::kernelAttributeName)) {
        sampling.emitOpError("has a kernel; convert it first");
        return signalPassFailure();
      }
      sampling.erase();
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      function->removeDiscardableAttr(phase::programAttributeName);
      function->removeDiscardableAttr(lm::phaseAttributeName);
    }
  }
};

} // namespace
