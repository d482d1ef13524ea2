//===- Text.h - Kernels of the high level as text ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Between text that looks like Python and dialect `block` (section 6.1 of the
/// Sandwich paper, the higher level). docs/Kernels.md has the language.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_TEXT_H
#define SANDWICH_KERNEL_TEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace sandwich::kernel {

struct TextOptions {
  /// What `T: type(f32, bf16)` is, by its name; the first choice where nothing
  /// is said.
  llvm::StringMap<std::string> types;
  /// Of the arguments' numbers, where they are known: what is left open is as
  /// the first argument that has it.
  llvm::SmallVector<mlir::Type> argumentTypes;
};

/// A module with the kernels of `text`; `name` is what errors call it. What is
/// wrong is emitted as an error at its place, and the result is null. Values
/// that have a name keep it as a location, as statements do their comments.
mlir::OwningOpRef<mlir::ModuleOp> readText(llvm::StringRef text,
                                           llvm::StringRef name,
                                           const TextOptions &options,
                                           mlir::MLIRContext &context);

/// Writes the kernels of `module` so that `readText` makes the same of them.
/// Errors, of what the language has no words for, are emitted.
mlir::LogicalResult writeText(mlir::ModuleOp module, llvm::raw_ostream &stream);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_TEXT_H
