//===- LMToLoops.cpp - lm operations as vector loops ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "KernelCalls.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Target/Target.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

namespace sandwich {
#define GEN_PASS_DEF_LMTOLOOPS
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

void lm::forOwnRows(LoopBuilder &builder, const ProgramContext &program,
                    Value buffer, function_ref<void(Value row)> body) {
  Value rows = memref::DimOp::create(builder, buffer, 0);
  auto [begin, end] =
      builder.threadRange(rows, program.thread, program.threads);
  builder.forLoop(begin, end, 1, body);
}

/// Checks what the loops rely on and the operations' verifiers leave open.
static LogicalResult verifyBuffers(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type)
      continue;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return op->emitOpError(
                 "needs buffers whose last dimension is contiguous, "
                 "got ")
             << type;
  }
  return success();
}

/// Checks that the weights of `op` have places in the artifact.
static LogicalResult verifyWeights(Operation *op,
                                   SymbolTableCollection &symbols) {
  if (auto step = dyn_cast<StepOpInterface>(op))
    for (const WeightUse &use : step.getWeightUses())
      if (!lookupWeight(symbols, op, use.name).getOffset())
        return op->emitOpError("needs the place of weight ")
               << use.name << " in the artifact";
  return success();
}

/// Adds how the operations of `lm` run.
static void registerLoopLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, LMDialect *) {
    attachAttentionLowering(*context);
    attachCollectiveLowerings(*context);
    attachElementwiseLowerings(*context);
    attachEmbedLowering(*context);
    attachGatherRowsLowering(*context);
    attachKernelLowerings(*context);
    attachPoolLowering(*context);
    attachRotaryTableLowering(*context);
  });
}

namespace {

class LMToLoopsPass : public sandwich::impl::LMToLoopsBase<LMToLoopsPass> {
public:
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLoopLowerings(registry);
  }

  void runOnOperation() override {
    Result<Target> model = getTarget(target.getValue());
    if (!model) {
      getOperation().emitError(model.error().message);
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    KernelFunctions kernels(getOperation());
    // Functions of kernels are added behind them.
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (failed(lowerFunction(function, *model, symbols, kernels)))
        return signalPassFailure();
    for (auto sampling :
         llvm::make_early_inc_range(getOperation().getOps<SamplingOp>()))
      if (failed(kernels.addSampling(sampling, symbols, *model)))
        return signalPassFailure();
    if (auto module = getOperation().lookupSymbol<ModuleOp>(kernelsModuleName))
      module.erase();
  }

private:
  LogicalResult lowerFunction(func::FuncOp function, const Target &target,
                              SymbolTableCollection &symbols,
                              KernelFunctions &kernels) {
    SmallVector<LoopLoweringOpInterface> operations;
    function.walk([&](LoopLoweringOpInterface op) {
      // In buffer form.
      if (!llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) &&
          op->getNumResults() == 0)
        operations.push_back(op);
    });
    if (operations.empty())
      return success();

    phase::ProgramAttr attribute = phase::getProgram(function);
    if (!attribute)
      return operations.front().emitOpError("must be in a phase program with '")
             << phase::programAttributeName << "'";
    SharedScratch scratch;
    ProgramContext program{
        function,
        phase::getArgument(function, phase::ProgramArgument::Thread),
        attribute.getThreads(),
        attribute.getMaxTokens(),
        target,
        vectorsOfSums(target),
        symbols,
        scratch,
        kernels};
    for (LoopLoweringOpInterface op : operations) {
      if (failed(verifyBuffers(op)) || failed(verifyWeights(op, symbols)))
        return failure();
      if (failed(op.lowerToLoops(program)))
        return failure();
      op.erase();
    }
    return success();
  }
};

} // namespace
