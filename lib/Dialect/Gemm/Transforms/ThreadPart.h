//===- ThreadPart.h - What a thread does of a matmul ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The polymerization of a matmul in IR: the rows, columns and k that a thread
/// grid gives the thread which runs the program.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_DIALECT_GEMM_TRANSFORMS_THREADPART_H
#define SANDWICH_LIB_DIALECT_GEMM_TRANSFORMS_THREADPART_H

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Scheduling/Partition.h"

namespace sandwich {

/// The phase program that `op` can become a part of: it is in buffer form,
/// inside a program, has schedules for no more threads than that, and a weight
/// with a packing and a place. Emits an error on `op` otherwise.
mlir::FailureOr<phase::ProgramAttr>
getLowerableProgram(gemm::MatmulOp op, mlir::SymbolTableCollection &symbols);

/// The only schedule of `op`, which is lowerable. Emits an error on `op` where
/// it has several.
mlir::FailureOr<Schedule> getOnlySchedule(gemm::MatmulOp op);

/// Makes the nests of one matmul with one schedule.
class PartBuilder {
public:
  /// `op` is lowerable. The insertion point is at `op`.
  PartBuilder(gemm::MatmulOp op, phase::ProgramAttr program,
              mlir::SymbolTableCollection &symbols);

  /// Creates the nest that computes this thread's part of the sums. The
  /// insertion point moves into its body. Fails, with an error on the matmul,
  /// where the schedule cannot run.
  mlir::FailureOr<gemm::NestOp> createNest();

  LoopBuilder builder;
  /// index: how many tokens there are.
  mlir::Value tokens;
  /// index: which of the parts of K this thread's is.
  mlir::Value partOfK;
  /// Weight rows as packed, with those that fill up groups of interleaved
  /// weights, and how many of them stay together on one thread.
  int64_t columns, unit;

private:
  mlir::FailureOr<Schedule> clipSlice() const;
  /// From the matmul's parameters.
  Part<mlir::Value> loadPart(mlir::Value thread);

  gemm::MatmulOp op;
  phase::ProgramAttr program;
  mlir::SymbolTableCollection &symbols;
  MatmulShape shape;
};

} // namespace sandwich

#endif // SANDWICH_LIB_DIALECT_GEMM_TRANSFORMS_THREADPART_H
