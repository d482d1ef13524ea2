//===- KernelCalls.h - Operations that kernels compute ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_LMTOLOOPS_KERNELCALLS_H
#define SANDWICH_LIB_CONVERSION_LMTOLOOPS_KERNELCALLS_H

#include "LMToLoops.h"

#include "sandwich/Dialect/LM/Utils/KernelUse.h"

namespace sandwich::lm {

/// Functions of the kernels of a module, each for what it is called with.
class KernelFunctions {
public:
  explicit KernelFunctions(mlir::ModuleOp module) : module(module) {}

  /// The kernel of the library for `op`, which has one.
  mlir::FailureOr<KernelUse> fromLibrary(StepOpInterface op,
                                         mlir::SymbolTableCollection &symbols);

  /// Of `use`, for arguments of `types`. Errors are emitted.
  mlir::FailureOr<mlir::func::FuncOp> get(const KernelUse &use,
                                          llvm::ArrayRef<mlir::Type> types);

private:
  mlir::ModuleOp module;
  llvm::StringMap<mlir::func::FuncOp> functions;
  /// Of the library, by operation and types.
  llvm::StringMap<mlir::OwningOpRef<mlir::ModuleOp>> library;
};

/// Builds, in front of `op`, which is in buffer form, calls of its kernel for
/// the thread's rows. Errors are emitted.
llvm::LogicalResult callKernel(StepOpInterface op, const KernelUse &use,
                               const ProgramContext &program);

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_KERNELCALLS_H
