//===- LMToLoops.h - What the operations' lowerings share -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H

#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Target/Target.h"

namespace sandwich::lm {

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
  /// Those of the module.
  MicroKernelLibrary &kernels;
};

/// Builds loops over the rows of `rows` (a buffer) that are the thread's.
void forOwnRows(LoopBuilder &builder, const ProgramContext &program,
                mlir::Value buffer,
                llvm::function_ref<void(mlir::Value row)> body);

// Each builds the loops of one operation in buffer form at `builder`'s
// position. Operand buffers have static channels that are contiguous, weights
// have their place in the artifact.
void lowerAttention(LoopBuilder &builder, const ProgramContext &program,
                    AttentionOp op);
void lowerEmbed(LoopBuilder &builder, const ProgramContext &program,
                EmbedOp op);
void lowerGatherRows(LoopBuilder &builder, const ProgramContext &program,
                     GatherRowsOp op);
void lowerRMSNorm(LoopBuilder &builder, const ProgramContext &program,
                  RMSNormOp op);
void lowerRotaryTable(LoopBuilder &builder, const ProgramContext &program,
                      RotaryTableOp op);

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_LMTOLOOPS_H
