//===- StepOp.h - What operations tell of themselves ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The words of `StepOpInterface` and `KernelOpInterface`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_STEPOP_H
#define SANDWICH_DIALECT_LM_IR_STEPOP_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace sandwich::lm {

/// The phase program that operations are lowered in; Conversion's.
struct ProgramContext;

/// What bounds the rows of a value: the tokens of a step, or what its phase
/// returns (logits, or one row for each segment).
enum class RowKind : uint8_t { Tokens, LogitRows };

/// What a phase is given for each step.
enum class PhaseInput : uint8_t {
  /// [tokens] vocabulary ids
  TokenIds,
  /// [tokens] positions in their sequences
  Positions,
  /// [tokens] where their keys and values go
  CacheSlots,
  /// [segments, 4] tokens that follow each other in a sequence
  Segments,
  /// [blocks] those of one segment's sequence after another's
  BlockTables,
  /// [logit rows] the tokens whose logits are wanted
  LogitRows,
  /// keys and values of every token
  KVCache,
  /// [tokens] the numbers of the texts that they are of, where texts come in
  /// pairs; not of every phase
  TokenTypes,
};

/// An operand that must be an input of the phase.
struct PhaseInputUse {
  mlir::Value operand;
  PhaseInput input;
};

/// How an operation reads a weight, and so what ranks must have of it for its
/// result to be the same on all of them, their own channels, or their part of
/// a sum.
enum class WeightRole : uint8_t {
  /// Rows by token id, token type or position: whole on every rank.
  Table,
  /// Read by all channels: whole on every rank.
  Vector,
  /// Multiplied: whole, or divided in rows or in columns.
  Matrix,
  /// Added to what the matrix in front of it gives: divided as its rows are; on
  /// the first rank only, where its columns are.
  Bias,
};

/// A weight that an operation reads.
struct WeightUse {
  mlir::FlatSymbolRefAttr name;
  WeightRole role;
};

/// How large a dimension of what a kernel is given is: as known, or, where it
/// has a name, as whoever calls the kernel says each time, the same in all
/// arguments.
struct KernelExtent {
  KernelExtent(int64_t known) : known(known) {}
  template <size_t size> KernelExtent(const char (&name)[size]) : name(name) {}

  int64_t known = 0;
  llvm::StringRef name;
};

/// What a kernel in the place of an operation is given.
struct KernelArgument {
  /// How messages call it.
  llvm::StringRef name;
  /// Of its numbers; null of a weight, which knows.
  mlir::Type element = {};
  /// Of memory; none of a number. Those of a weight, [channels], and of rows
  /// that say nothing else, [rows, channels], follow from the weight, of whose
  /// channels rows may have several times as many.
  llvm::SmallVector<KernelExtent> extents = {};

  /// One of the operation's own that it is: rows of an activation, null while
  /// there is no buffer for the result,
  bool isActivation = false;
  mlir::Value rows = {};
  /// a weight of one dimension,
  mlir::FlatSymbolRefAttr vector = {};
  /// or a number.
  mlir::FloatAttr number = {};

  /// What a number that each call gives usually is, to measure the kernel with.
  std::optional<double> usual = {};
};

/// A number that a kernel with a constant of this name is given.
struct KernelConstant {
  llvm::StringRef name;
  int64_t value;
};

/// What one call of an operation costs, where it is known.
struct StepCost {
  /// Of weights that are read.
  int64_t bytes = 0;
  /// Of the cache, for each position that is read.
  int64_t bytesPerPosition = 0;
  int64_t flopsPerRow = 0;
  /// For each pair of a token and a position it attends to.
  int64_t flopsPerAttended = 0;
};

} // namespace sandwich::lm

#endif // SANDWICH_DIALECT_LM_IR_STEPOP_H
