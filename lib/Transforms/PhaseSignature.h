//===- PhaseSignature.h - What phases take and return -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H
#define SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sandwich {

/// An argument of a phase, and which one of the program takes its place.
struct PhaseArgument {
  lm::PhaseInput input;
  phase::ProgramArgument place;
  llvm::StringLiteral name;
};
inline constexpr PhaseArgument phaseArguments[] = {
    {lm::PhaseInput::TokenIds, phase::ProgramArgument::TokenIds, "token ids"},
    {lm::PhaseInput::Positions, phase::ProgramArgument::Positions, "positions"},
    {lm::PhaseInput::CacheSlots, phase::ProgramArgument::CacheSlots,
     "cache slots"},
    {lm::PhaseInput::Segments, phase::ProgramArgument::Segments, "segments"},
    {lm::PhaseInput::BlockTables, phase::ProgramArgument::BlockTables,
     "block tables"},
    {lm::PhaseInput::LogitRows, phase::ProgramArgument::LogitRows,
     "logit rows"},
    {lm::PhaseInput::KVCache, phase::ProgramArgument::KVCache, "cache"},
    {lm::PhaseInput::TokenTypes, phase::ProgramArgument::TokenTypes,
     "token types"}};

/// Those that `phase` takes: all, or all but the last.
inline llvm::ArrayRef<PhaseArgument>
getPhaseArguments(mlir::func::FuncOp phase) {
  return llvm::ArrayRef(phaseArguments).take_front(phase.getNumArguments());
}

/// What `phase`, which has a signature, is for.
lm::Phase getPhase(mlir::func::FuncOp phase);

/// Whether `phase` takes its arguments and returns rows of f32 in one block.
/// Emits an error on it otherwise.
llvm::LogicalResult verifyPhaseSignature(mlir::func::FuncOp phase);

} // namespace sandwich

#endif // SANDWICH_LIB_TRANSFORMS_PHASESIGNATURE_H
