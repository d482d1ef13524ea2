//===- BlockToVector.h - Kernels of known parameters ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_BLOCKTOVECTOR_H
#define SANDWICH_CONVERSION_BLOCKTOVECTOR_H

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Target/Target.h"

#include <optional>
#include <vector>

namespace sandwich::block {

/// What is known of the places that a kernel reaches.
struct BoundsChecks {
  /// How many reads and writes there are, and of how many it is proven that
  /// they reach nothing beyond the sizes that memory is declared with.
  size_t accesses = 0, proven = 0;
  /// The lines of the others, in order, each once.
  std::vector<unsigned> checkedLines;
};

/// What else there is to say about a function.
struct FunctionOptions {
  /// Those of its arguments, if there are any: memory of other layouts than a
  /// kernel's, whose last dimension is contiguous, or whose numbers lie two
  /// apart, with those of a dimension of two in between.
  llvm::ArrayRef<mlir::Type> argumentTypes = {};
  /// What multiplies matrices of bf16, `X86_AVX512_BF16` or `X86_AMX_BF16`,
  /// where sizes allow it; nothing: FMA.
  std::optional<MatrixISA> instructions = std::nullopt;
  /// Null if bounds are not checked.
  BoundsChecks *checks = nullptr;
};

/// Adds a function `name` behind `kernel` that computes the same by loops over
/// vectors, with its parameters as `bindings` has them; those that are tuned
/// are as untuned where nothing is said. Its arguments are the kernel's, whose
/// dimensions are static where their sizes are known, if no types are given.
/// Errors, of constants that are not given, of what is no choice, or of blocks
/// whose size stays unknown, are emitted, and nothing is added.
///
/// With checks of bounds it has a result: 0, or the line (1 where that is not
/// known) of an access that would have reached beyond declared sizes. Such a
/// one reads zero, and writes nothing. Where arguments with one size are not as
/// large it computes nothing, and the line is the kernel's.
mlir::FailureOr<mlir::func::FuncOp>
makeFunction(mlir::func::FuncOp kernel, llvm::StringRef name,
             const Bindings &bindings, const FunctionOptions &options = {});

/// Whether no assertion of `kernel` fails for `bindings`, which have all
/// parameters: of others no code is made.
bool holdAssertions(mlir::func::FuncOp kernel, const Bindings &bindings);

} // namespace sandwich::block

#endif // SANDWICH_CONVERSION_BLOCKTOVECTOR_H
