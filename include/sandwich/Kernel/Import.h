//===- Import.h - From C and C++ to dialect kernel --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads kernels that somebody wrote in C or C++ with intrinsics, by clang, as
/// they are: with macros, headers and templates, whatever else is in their file
/// (section 6.1 of the Sandwich paper, the parsing of C++ to the lower level).
/// docs/Kernels.md tells which part of the languages they may use.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_IMPORT_H
#define SANDWICH_KERNEL_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace sandwich::kernel {

struct ImportOptions {
  /// Those to import, as `name` or, of a template, `name<4, float>`, with all
  /// that they call. Empty: all functions of the file.
  std::vector<std::string> functions;
  /// What compilers are told: `-I`, `-D`, `-std=`, `-m` and the like.
  std::vector<std::string> compilerOptions;
};

/// A module with the functions of `path`, which is C if it is named `.c`, else
/// C++. What is wrong, or outside of the subset, is emitted as errors at its
/// places, and the result is null.
mlir::OwningOpRef<mlir::ModuleOp> importKernels(const std::string &path,
                                                const ImportOptions &options,
                                                mlir::MLIRContext &context);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_IMPORT_H
