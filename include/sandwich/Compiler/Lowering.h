//===- Lowering.h - Running passes, down to LLVM IR -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMPILER_LOWERING_H
#define SANDWICH_COMPILER_LOWERING_H

#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm
namespace mlir {
class Diagnostic;
class OpPassManager;
} // namespace mlir

namespace sandwich {

/// The message of `diagnostic`, after the line or the part of the model it is
/// about.
std::string describe(mlir::Diagnostic &diagnostic);

/// Runs the passes that `build` adds on `module`. Error: the first one that
/// they report.
Status runPasses(mlir::ModuleOp module,
                 llvm::function_ref<void(mlir::OpPassManager &)> build);

/// Turns loop IR into LLVM IR for `target`, not optimized yet; `module` is in
/// the LLVM dialect then.
Result<std::unique_ptr<llvm::Module>> lowerToLLVM(mlir::ModuleOp module,
                                                  const Target &target,
                                                  llvm::LLVMContext &context);

} // namespace sandwich

#endif // SANDWICH_COMPILER_LOWERING_H
