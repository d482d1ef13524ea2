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

/// A kernel that computes `lm.attention`, given by the operation, or the one in
/// kernels/, with what a schedule says.
class AttentionKernel {
public:
  /// The most that a call has of each.
  struct Most {
    int64_t tokens, heads;
  };

  /// For tiles of `tile`. Streams where the cache comes from memory. Errors are
  /// emitted.
  static mlir::FailureOr<AttentionKernel>
  make(const ProgramContext &program, AttentionOp op, const AttentionTile &tile,
       Most most, bool streams, bool isPart);

  /// [parts, query heads, head_dim + 2]: what parts of contexts give.
  static mlir::Value viewPartialSums(LoopBuilder &builder, AttentionOp op);

  /// `partial` is that view; null where there are no parts.
  llvm::LogicalResult call(LoopBuilder &builder, const AttentionPiece &piece,
                           mlir::Value partial = {});

private:
  AttentionKernel(const ProgramContext &program, AttentionOp op, KernelUse use)
      : program(program), op(op), use(std::move(use)) {}

  const ProgramContext &program;
  AttentionOp op;
  KernelUse use;
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
