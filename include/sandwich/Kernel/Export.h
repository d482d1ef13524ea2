//===- Export.h - From dialect kernel to C++ --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_EXPORT_H
#define SANDWICH_KERNEL_EXPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace sandwich::kernel {

/// Writes the functions of `module` as C++17 with intrinsics, as GCC and clang
/// compile it, with the variables, loops and comments that they had. Public
/// functions have C's linkage. Errors, of what C++ has no way to say, are
/// emitted.
mlir::LogicalResult exportCpp(mlir::ModuleOp module, llvm::raw_ostream &stream);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_EXPORT_H
