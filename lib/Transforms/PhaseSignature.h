//===- PhaseSignature.h - What phases take and return -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H
#define SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H

#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <utility>

namespace sandwich {

/// An argument of a phase, and which one of the program takes its place.
struct PhaseArgument {
  phase::ProgramArgument place;
  llvm::StringLiteral name;
};
inline constexpr PhaseArgument phaseArguments[] = {
    {phase::ProgramArgument::TokenIds, "token ids"},
    {phase::ProgramArgument::Positions, "positions"},
    {phase::ProgramArgument::CacheSlots, "cache slots"},
    {phase::ProgramArgument::Segments, "segments"},
    {phase::ProgramArgument::BlockTables, "block tables"},
    {phase::ProgramArgument::LogitRows, "logit rows"},
    {phase::ProgramArgument::KVCache, "cache"}};

/// Whether `phase` takes its arguments and returns logits in one block. Emits
/// an error on it otherwise.
llvm::LogicalResult verifyPhaseSignature(mlir::func::FuncOp phase);

/// The operands of `op` that must be arguments of its phase: only of those the
/// runtime guarantees that the tokens, positions and rows in them exist.
llvm::SmallVector<std::pair<mlir::Value, phase::ProgramArgument>>
getArgumentOperands(mlir::Operation *op);

} // namespace sandwich

#endif // SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H
