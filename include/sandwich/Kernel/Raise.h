//===- Raise.h - Hand-written kernels at the high level ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_RAISE_H
#define SANDWICH_KERNEL_RAISE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace sandwich::kernel {

/// Adds the passes that take dialect kernel to dialect block (the Sandwich
/// paper, section 6.1): `kernel-to-vector`, `vector-to-block`, and what makes
/// each one's result plain.
void addRaisingPasses(mlir::OpPassManager &manager);

/// Raises the functions of `module` to kernels of dialect block. What is not
/// raised is gone from it, with a warning that says why; an error is emitted
/// if none is.
llvm::LogicalResult raiseKernels(mlir::ModuleOp module);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_RAISE_H
