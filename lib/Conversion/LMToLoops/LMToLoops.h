//===- LMToLoops.h - What the operations' lowerings share -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Target/Target.h"

namespace sandwich::lm {

class KernelFunctions;

/// Memory on the stack by its place among that of one operation, and its type:
/// operations use it one after another.
using SharedScratch =
    llvm::DenseMap<std::pair<unsigned, mlir::Type>, mlir::Value>;

/// The phase program that operations are lowered in.
struct ProgramContext {
  mlir::func::FuncOp function;
  /// The number of the thread that runs the code, an index.
  mlir::Value thread;
  int64_t threads;
  /// The most tokens of a step.
  int64_t maxTokens;
  const Target &target;
  /// Vectors of f32 sums that fit into registers beside operands.
  int64_t accumulators;
  mlir::SymbolTableCollection &symbols;
  SharedScratch &scratch;
  /// Of kernels of the high level.
  KernelFunctions &kernels;
};

/// Builds loops over the rows of `rows` (a buffer) that are the thread's.
void forOwnRows(LoopBuilder &builder, const ProgramContext &program,
                mlir::Value buffer,
                llvm::function_ref<void(mlir::Value row)> body);

/// A model of `LoopLoweringOpInterface` for `Op` that calls `build` with a
/// builder at the operation, the program and the operation. What `build`
/// returns, if anything, tells of errors.
template <typename Op, auto build>
struct LoopLoweringModel
    : LoopLoweringOpInterface::ExternalModel<LoopLoweringModel<Op, build>, Op> {
  llvm::LogicalResult lowerToLoops(mlir::Operation *op,
                                   const ProgramContext &program) const {
    LoopBuilder builder(op->getLoc(), op);
    auto concrete = mlir::cast<Op>(op);
    if constexpr (std::is_void_v<decltype(build(builder, program, concrete))>) {
      build(builder, program, concrete);
      return mlir::success();
    } else {
      return build(builder, program, concrete);
    }
  }
};

// Each attaches the models of one file.
void attachAttentionLowering(mlir::MLIRContext &context);
void attachCollectiveLowerings(mlir::MLIRContext &context);
void attachElementwiseLowerings(mlir::MLIRContext &context);
void attachEmbedLowering(mlir::MLIRContext &context);
void attachGatherRowsLowering(mlir::MLIRContext &context);
void attachKernelLowerings(mlir::MLIRContext &context);
void attachPoolLowering(mlir::MLIRContext &context);
void attachRotaryTableLowering(mlir::MLIRContext &context);

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H
