//===- BlockToVector.cpp - Kernels as loops over vectors ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/BlockToVector.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/ADT/StringSet.h"

namespace sandwich {
#define GEN_PASS_DEF_BLOCKTOVECTOR
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {
struct BlockToVector : sandwich::impl::BlockToVectorBase<BlockToVector> {
  using BlockToVectorBase::BlockToVectorBase;

  /// What the option says; nothing, with an error emitted, if it is wrong.
  std::optional<block::Bindings> readBindings() {
    block::Bindings bindings;
    for (const std::string &each : parameters) {
      auto binding = block::readBinding(each);
      if (!binding) {
        getOperation().emitError("'")
            << each << "' is not NAME=NUMBER, with a number between 0 and "
            << block::largestSize;
        return std::nullopt;
      }
      auto [name, number] = *binding;
      if (!bindings.try_emplace(name, number).second) {
        getOperation().emitError("'") << name << "' is given twice";
        return std::nullopt;
      }
    }
    return bindings;
  }

  /// Those of the option, if there are any; an error is emitted.
  FailureOr<std::optional<MatrixISA>> readInstructions() {
    if (instructions.empty())
      return std::optional<MatrixISA>();
    for (MatrixISA isa : {MatrixISA::X86_AVX512_BF16, MatrixISA::X86_AMX_BF16})
      if (instructions == name(isa))
        return std::optional(isa);
    return getOperation().emitError("'")
           << instructions << "' multiplies no matrices of bf16 in kernels: "
           << name(MatrixISA::X86_AVX512_BF16) << " and "
           << name(MatrixISA::X86_AMX_BF16) << " do";
  }

  void runOnOperation() override {
    std::optional<block::Bindings> given = readBindings();
    if (!given)
      return signalPassFailure();
    FailureOr<std::optional<MatrixISA>> isa = readInstructions();
    if (failed(isa))
      return signalPassFailure();
    llvm::StringSet<> used;
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!block::isKernel(kernel))
        continue;
      block::Bindings own;
      for (const auto &each : *given)
        if (block::parametersOf(kernel).find(each.first()) ||
            block::findDimension(kernel, each.first())) {
          own[each.first()] = each.second;
          used.insert(each.first());
        }
      const std::string name = kernel.getSymName().str();
      block::BoundsChecks checks;
      FailureOr<func::FuncOp> made = block::makeFunction(
          kernel, name, own,
          {.instructions = *isa, .checks = checkBounds ? &checks : nullptr});
      if (failed(made))
        return signalPassFailure();
      kernel.erase();
    }
    for (const auto &each : *given)
      if (!used.contains(each.first())) {
        getOperation().emitError("no kernel has a parameter or a size '")
            << each.first() << "'";
        return signalPassFailure();
      }
  }
};
} // namespace
