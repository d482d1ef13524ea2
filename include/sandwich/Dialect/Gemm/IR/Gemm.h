//===- Gemm.h - The scheduled matmul dialect --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_IR_GEMM_H
#define SANDWICH_DIALECT_GEMM_IR_GEMM_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/Schedule.h"

namespace sandwich {
/// Lets schedules be attribute parameters.
llvm::hash_code hash_value(const Schedule &schedule);
} // namespace sandwich

#include "sandwich/Dialect/Gemm/IR/GemmDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Gemm/IR/GemmAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Gemm/IR/GemmOps.h.inc"

namespace sandwich::gemm {

/// The largest row count of a table's last entry, written `?`.
inline constexpr int64_t unlimitedRows = INT64_MAX;

/// The most threads of a thread grid.
inline constexpr int64_t maxThreads = SANDWICH_MAX_THREADS;

/// What `op` multiplies, as schedules see it.
MatmulShape getShape(MatmulOp op, mlir::SymbolTableCollection &symbols);

/// The same, before schedules are chosen, where inputs of quantized weights are
/// `activations`: "int8", rounded to it if there are instructions for that, or
/// "float".
MatmulShape getShape(MatmulOp op, mlir::SymbolTableCollection &symbols,
                     llvm::StringRef activations);

/// The written form of `table`.
ScheduleTableAttr getTableAttr(mlir::MLIRContext *context,
                               const ScheduleTable &table);

/// head_dim of a `rotate_append_kv` epilogue, from its rotary table.
int64_t getHeadDim(MatmulOp op);
int64_t getHeadDim(EpilogueOp op);

/// Columns of the partial sums of `op` under a schedule that splits K.
int64_t getPartialSumsColumns(MatmulOp op, const Schedule &schedule,
                              mlir::SymbolTableCollection &symbols);

} // namespace sandwich::gemm

#endif // SANDWICH_DIALECT_GEMM_IR_GEMM_H
