//===- Phase.h - The SPMD program dialect -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_PHASE_IR_PHASE_H
#define SANDWICH_DIALECT_PHASE_IR_PHASE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "sandwich/Runtime/PhaseABI.h"

#include "sandwich/Dialect/Phase/IR/PhaseDialect.h.inc"

namespace sandwich::phase {
/// Whether `type`, a memref of two dimensions, has a static number of channels,
/// and rows that follow each other without gaps.
bool areDenseRows(mlir::Type type);
} // namespace sandwich::phase

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseOps.h.inc"

namespace sandwich::phase {

/// The attribute that holds a `ProgramAttr` on a phase program.
inline constexpr llvm::StringLiteral programAttributeName = "phase.program";

/// The attribute, of no value, of the function that draws a token from a row of
/// logits.
inline constexpr llvm::StringLiteral samplingAttributeName = "phase.sampling";

/// The largest team.
inline constexpr int64_t maxThreads = SANDWICH_MAX_THREADS;
/// The most tokens, and rows of logits, of one step.
inline constexpr int64_t maxStepRows = SANDWICH_MAX_STEP_TOKENS;

/// The arguments of a phase program in buffer form, in order.
enum class ProgramArgument : unsigned {
  /// memref<?xi32> [tokens]
  TokenIds,
  /// memref<?xi32> [tokens]
  Positions,
  /// memref<?xi32> [tokens], where their keys and values go
  CacheSlots,
  /// memref<?x4xi32> [segments, fields of a SandwichSegment]
  Segments,
  /// memref<?xi32> [blocks], of one segment's sequence after another's
  BlockTables,
  /// memref<?xi32> [logit rows]
  LogitRows,
  /// lm.kv_cache's buffer type
  KVCache,
  /// memref<?xNxf32> [logit rows, vocabulary]
  Logits,
  /// memref<?xi8>, every packed weight
  Weights,
  /// memref<?xi8>, scratch memory shared by the team
  Workspace,
  /// index, in [0, threads)
  Thread,
  /// !phase.team
  Team,
  /// memref<?xi32> [tokens], of programs that read it
  TokenTypes,
};
/// Those that every program has.
inline constexpr unsigned numProgramArguments = 12;

/// Creates the function `name` with the arguments of a phase program, a cache
/// and logits of these types, and an empty body.
mlir::func::FuncOp createProgram(mlir::OpBuilder &builder, mlir::Location loc,
                                 llvm::StringRef name, mlir::Type cache,
                                 mlir::Type logits, ProgramAttr program,
                                 bool hasTokenTypes = false);

/// Whether the phase program `function` takes the types of tokens.
bool hasTokenTypes(mlir::func::FuncOp function);

/// The argument of the phase program `function`.
mlir::Value getArgument(mlir::func::FuncOp function, ProgramArgument argument);

/// The program's attribute, or null where `function` is no phase program.
ProgramAttr getProgram(mlir::func::FuncOp function);

/// The arguments of a function with `phase.sampling`, in order: a
/// SandwichSampling, as `lm.sampling` gives it to kernels
/// (SamplingOp::getKernelArguments).
enum class SamplingArgument : unsigned {
  /// memref<Nxf32> [vocabulary]
  Logits,
  /// f32
  Temperature,
  /// i32
  TopK,
  /// f32
  TopP,
  /// f32
  MinP,
  /// f64
  Place,
  /// memref<Nxf32> [vocabulary]
  Weights,
  /// memref<1xi32>
  Token,
};
inline constexpr unsigned numSamplingArguments = 8;

/// Creates the function `name` with `phase.sampling`, for so many logits, and
/// an empty body.
mlir::func::FuncOp createSampling(mlir::OpBuilder &builder, mlir::Location loc,
                                  llvm::StringRef name, int64_t vocabulary);

/// Whether `function` draws tokens.
bool drawsTokens(mlir::func::FuncOp function);

/// The first mark of each operation that the marks of `function` tell apart, in
/// program order: its place is the operation's number.
llvm::SmallVector<MarkOp> getMarkedOperations(mlir::func::FuncOp function);

} // namespace sandwich::phase

#endif // SANDWICH_DIALECT_PHASE_IR_PHASE_H
