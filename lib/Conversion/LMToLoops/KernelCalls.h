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

  /// The kernel in kernels/ that is called `name`, of which there is one, for
  /// arguments of numbers of `types`. Errors are emitted.
  mlir::FailureOr<mlir::func::FuncOp>
  fromLibrary(llvm::StringRef name, llvm::ArrayRef<mlir::Type> types,
              mlir::MLIRContext *context);

  /// Calls `use` with `arguments`; `instructions` multiply matrices of bf16,
  /// if there are any. Errors are emitted.
  llvm::LogicalResult call(LoopBuilder &builder, const KernelUse &use,
                           llvm::ArrayRef<mlir::Value> arguments,
                           std::optional<MatrixISA> instructions);

  /// Adds the function that draws tokens as the kernel of `op` says, if it has
  /// one, and erases `op`. Errors are emitted.
  llvm::LogicalResult addSampling(SamplingOp op,
                                  mlir::SymbolTableCollection &symbols,
                                  const Target &target);

private:
  /// Of `use`, for arguments of `types`. Errors are emitted.
  mlir::FailureOr<mlir::func::FuncOp>
  get(const KernelUse &use, llvm::ArrayRef<mlir::Type> types,
      std::optional<MatrixISA> instructions);

  mlir::ModuleOp module;
  llvm::StringMap<mlir::func::FuncOp> functions;
  /// Of kernels/, by name and types.
  llvm::StringMap<mlir::OwningOpRef<mlir::ModuleOp>> library;
};

} // namespace sandwich::lm

#endif // SANDWICH_LIB_CONVERSION_LMTOLOOPS_KERNELCALLS_H
