//===- LMToLoops.cpp - lm operations as vector loops ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Scheduling/AttentionSchedule.h"
#include "sandwich/Target/Target.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// Checks that the weight `name` has a place in the artifact.
static LogicalResult verifyWeight(Operation *op, FlatSymbolRefAttr name,
                                  SymbolTableCollection &symbols) {
  if (!lookupWeight(symbols, op, name).getOffset())
    return op->emitOpError("needs the place of weight ")
           << name << " in the artifact";
  return success();
}

/// Checks that the partial sums of `attention` have room for all parts of a
/// step of at most `maxTokens` tokens.
static LogicalResult verifyPartialSums(AttentionOp attention,
                                       int64_t maxTokens) {
  Value sums = attention.getPartialSums();
  int64_t needed = getPartialSumsBytes(attention, maxTokens);
  int64_t bytes = sums ? cast<MemRefType>(sums.getType()).getNumElements() : 0;
  if (bytes < needed)
    return attention.emitOpError("needs ")
           << needed << " bytes of partial sums, has " << bytes;
  return success();
}

/// Checks that `target` has the instructions that schedules multiply with.
static LogicalResult verifyInstructions(AttentionOp attention,
                                        const Target &target) {
  if (!attention.getSchedules())
    return success();
  for (const AttentionTableEntry &entry : attention.getSchedules()->getTable())
    if (std::optional<MatrixISA> isa = entry.schedule.instructions;
        isa && !llvm::is_contained(target.matrixISAs, *isa))
      return attention.emitOpError("multiplies by ")
             << sandwich::name(*isa) << ", which " << target.name
             << " does not have";
  return success();
}

namespace {

class LMToLoopsPass : public sandwich::impl::LMToLoopsBase<LMToLoopsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    Result<Target> model = getTarget(target.getValue());
    if (!model) {
      getOperation().emitError(model.error().message);
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    MicroKernelLibrary kernels(getOperation());
    // Micro-kernels are added behind them.
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (failed(lowerFunction(function, *model, symbols, kernels)))
        return signalPassFailure();
  }

private:
  LogicalResult lowerFunction(func::FuncOp function, const Target &target,
                              SymbolTableCollection &symbols,
                              MicroKernelLibrary &kernels) {
    SmallVector<Operation *> operations;
    function.walk([&](Operation *op) {
      if (isa<AllGatherOp, AllReduceOp, AttentionOp, EmbedOp, GatherRowsOp,
              RMSNormOp, RotaryTableOp>(op) &&
          op->getNumResults() == 0)
        operations.push_back(op);
    });
    if (operations.empty())
      return success();

    phase::ProgramAttr attribute = phase::getProgram(function);
    if (!attribute || function.getNumArguments() != phase::numProgramArguments)
      return operations.front()->emitOpError(
                 "must be in a phase program with '")
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
    for (Operation *op : operations) {
      if (failed(lower(op, program)))
        return failure();
      op->erase();
    }
    return success();
  }

  LogicalResult lower(Operation *op, const ProgramContext &program) {
    if (failed(verifyBuffers(op)))
      return failure();
    LoopBuilder builder(op->getLoc(), op);
    Value team =
        phase::getArgument(program.function, phase::ProgramArgument::Team);
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](AllReduceOp reduce) {
          phase::AllReduceOp::create(builder, team, reduce.getDestination());
          return success();
        })
        .Case([&](AllGatherOp gather) {
          phase::AllGatherOp::create(builder, team, gather.getInput(),
                                     gather.getDestination());
          return success();
        })
        .Case([&](AttentionOp attention) {
          if (failed(verifyPartialSums(attention, program.maxTokens)) ||
              failed(verifyInstructions(attention, program.target)))
            return failure();
          lowerAttention(builder, program, attention);
          return success();
        })
        .Case([&](EmbedOp embed) {
          if (failed(verifyWeight(op, embed.getWeightAttr(), program.symbols)))
            return failure();
          lowerEmbed(builder, program, embed);
          return success();
        })
        .Case([&](GatherRowsOp gather) {
          lowerGatherRows(builder, program, gather);
          return success();
        })
        .Case([&](RMSNormOp norm) {
          if (failed(verifyWeight(op, norm.getWeightAttr(), program.symbols)))
            return failure();
          lowerRMSNorm(builder, program, norm);
          return success();
        })
        .Case([&](RotaryTableOp table) {
          lowerRotaryTable(builder, program, table);
          return success();
        });
  }
};

} // namespace
