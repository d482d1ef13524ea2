//===- AttentionKernel.h - Attention by a kernel of blocks ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONKERNEL_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONKERNEL_H

#include "KernelCalls.h"

#include "sandwich/Scheduling/AttentionSchedule.h"

#include <optional>

namespace sandwich::lm {

/// A segment of the step, all of it indices.
struct SegmentValues {
  mlir::Value firstToken, tokens, firstPosition, firstBlock;
};

/// What one call of a kernel of attention computes.
struct AttentionPiece {
  /// Of the step.
  mlir::Value firstToken, tokens;
  /// Of the cache.
  mlir::Value firstHead, heads;
  /// Of the block tables.
  mlir::Value firstBlock, blocks;
  /// Positions in those blocks.
  mlir::Value context;
  /// Where the results of this part of a context go; null where there are no
  /// parts.
  mlir::Value part = {};
};

/// A kernel that computes `lm.attention`, given by the operation, or one of
/// those in kernels/, with what a schedule says.
class AttentionKernel {
public:
  /// What a kernel is for.
  struct Purpose {
    /// The most that a call has of each.
    int64_t tokens = 1, heads = 1;
    /// Whether the cache comes from memory, and is asked for early.
    bool streams = false;
    /// Whether its results are those of a part of the context.
    bool isPart = false;
    /// What multiplies keys and values, in kernels/matrix_attention.kernel, if
    /// no kernel is given. Nothing: FMA, in kernels/attention.kernel; a given
    /// one multiplies matrices of bf16 by the best that the target has.
    std::optional<MatrixISA> instructions = std::nullopt;
  };

  /// For tiles of `tile`. Errors are emitted.
  static mlir::FailureOr<AttentionKernel> make(const ProgramContext &program,
                                               AttentionOp op,
                                               const AttentionTile &tile,
                                               const Purpose &purpose);

  /// [parts, query heads, head_dim + 2]: what parts of contexts give.
  static mlir::Value viewPartialSums(LoopBuilder &builder, AttentionOp op);

  /// `partial` is that view; null where there are no parts.
  llvm::LogicalResult call(LoopBuilder &builder, const AttentionPiece &piece,
                           mlir::Value partial = {});

private:
  AttentionKernel(const ProgramContext &program, AttentionOp op, KernelUse use,
                  std::optional<MatrixISA> instructions)
      : program(program), op(op), use(std::move(use)),
        instructions(instructions) {}

  const ProgramContext &program;
  AttentionOp op;
  KernelUse use;
  std::optional<MatrixISA> instructions;
};

/// Adds up what the parts from `firstPart` on, `parts` of them, gave the query
/// heads from `firstHead` on of a token of the step. Errors are emitted.
llvm::LogicalResult mergeParts(LoopBuilder &builder,
                               const ProgramContext &program, AttentionOp op,
                               mlir::Value partial, mlir::Value firstPart,
                               int64_t parts, mlir::Value token,
                               mlir::Value firstHead, mlir::Value heads);

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_ATTENTIONKERNEL_H
