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

/// What `op` gives a kernel in its place, all of it known.
llvm::SmallVector<KernelArgument>
kernelArguments(KernelOpInterface op, mlir::SymbolTableCollection &symbols);

/// The types of their numbers.
llvm::SmallVector<mlir::Type>
kernelElementTypes(llvm::ArrayRef<KernelArgument> arguments);

/// Checks that `kernel` takes `arguments`, in their order. Returns what sizes
/// and parameters are then, of which `parameters` may have some, and
/// `constants` those that the kernel asks for. Errors are emitted at `op`.
mlir::FailureOr<block::Bindings>
bindKernel(mlir::Operation *op, mlir::func::FuncOp kernel,
           llvm::ArrayRef<KernelArgument> arguments,
           llvm::ArrayRef<KernelConstant> constants,
           mlir::DictionaryAttr parameters);

/// The kernel of `module` for `lm.OPERATION`: the one of that name, or the only
/// one; null if there is none.
mlir::func::FuncOp findKernel(mlir::ModuleOp module, llvm::StringRef operation);

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
