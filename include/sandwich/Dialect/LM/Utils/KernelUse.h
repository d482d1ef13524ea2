//===- KernelUse.h - Kernels in the place of operations ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_UTILS_KERNELUSE_H
#define SANDWICH_DIALECT_LM_UTILS_KERNELUSE_H

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Dialect/LM/IR/LM.h"

namespace sandwich::lm {

/// The numbers of the arguments that `op` gives a kernel in its place.
llvm::SmallVector<mlir::Type>
kernelElementTypes(StepOpInterface op, mlir::SymbolTableCollection &symbols);

/// The channels of a row that `op` gives a kernel: those of its weight, of
/// which rows may have several after another, or all.
int64_t kernelChannels(StepOpInterface op,
                       mlir::SymbolTableCollection &symbols);

/// Checks that `kernel` takes what `op` gives: rows [rows, channels], vectors
/// [channels] and numbers, in their order. Returns what sizes and parameters
/// are then, of which `parameters` may have some. Errors are emitted at `op`.
mlir::FailureOr<block::Bindings>
bindKernel(StepOpInterface op, mlir::func::FuncOp kernel,
           mlir::DictionaryAttr parameters,
           mlir::SymbolTableCollection &symbols);

/// The kernel that `op` says computes it, which fits; null if it says none.
/// Errors, of one that is not there or does not fit, are emitted.
struct KernelUse {
  mlir::func::FuncOp kernel;
  block::Bindings bindings;
};
mlir::FailureOr<std::optional<KernelUse>>
findKernelUse(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

} // namespace sandwich::lm

#endif // SANDWICH_DIALECT_LM_UTILS_KERNELUSE_H
