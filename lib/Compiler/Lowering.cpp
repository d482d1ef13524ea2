//===- Lowering.cpp - Running passes, down to LLVM IR ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Pipelines/Pipelines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sandwich;

std::string sandwich::describe(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto line = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    stream << "line " << line.getLine() << ": ";
  else if (auto part = diagnostic.getLocation()->findInstanceOf<NameLoc>())
    stream << part.getName().getValue() << ": ";
  stream << diagnostic;
  return text;
}

Status sandwich::runPasses(ModuleOp module,
                           llvm::function_ref<void(OpPassManager &)> build) {
  std::string problem;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (problem.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error)
          problem = describe(diagnostic);
        return success();
      });
  PassManager manager(module.getContext());
  build(manager);
  if (failed(manager.run(module)))
    return makeError(problem.empty() ? "a pass failed" : problem);
  return {};
}

Result<std::unique_ptr<llvm::Module>>
sandwich::lowerToLLVM(ModuleOp module, const Target &target,
                      llvm::LLVMContext &context) {
  LoopsToLLVMOptions options;
  options.expandBF16 = !target.features.has(CpuFeature::AVX512BF16);
  SANDWICH_RETURN_IF_ERROR(runPasses(module, [&](OpPassManager &manager) {
    buildLoopsToLLVMPipeline(manager, options);
  }));
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(module, context, "phases");
  if (!code)
    return makeError("the program has no LLVM IR");
  return code;
}
