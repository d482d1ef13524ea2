//===- MeasuredCode.h - Machine code in this process ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From modules of `gemm` and `lm` to functions that can be timed, by the
/// passes that compile models.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MEASUREDCODE_H
#define SANDWICH_TUNING_MEASUREDCODE_H

#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace sandwich::measuring {

/// What one thread compiles with, for one target.
struct CompileSession {
  mlir::MLIRContext context;
  /// By what they lower. Making them once saves a fifth of most compilations:
  /// that is how long patterns take to be made.
  llvm::StringMap<std::unique_ptr<mlir::PassManager>> pipelines;

  CompileSession();
};

/// Threads that compile, which keep what they compile with.
class ParallelCompiler {
public:
  explicit ParallelCompiler(unsigned threads);

  /// Calls `compile` for the numbers from 0 to `count`, each on some thread.
  /// `stop` need not be safe to call on other threads than this one: it is
  /// asked here, and true ends the work after what is under way. Returns
  /// whether it did.
  bool run(size_t count, const std::function<bool()> &stop,
           const std::function<void(size_t, CompileSession &)> &compile);

private:
  std::vector<std::unique_ptr<CompileSession>> sessions;
};

/// Compiles `module`, of which functions whose names begin with `prefix` are
/// kept: the passes that `addPasses` adds lower it to loops, and others follow.
/// They are those of all modules that are `kind` in the session. Errors: what
/// passes report, with `prefix` as the module's name.
Result<std::string>
compileCode(CompileSession &session, mlir::ModuleOp module,
            const Target &target, std::string_view prefix, llvm::StringRef kind,
            llvm::function_ref<void(mlir::OpPassManager &)> addPasses,
            CodeKind output = CodeKind::Object);

/// Keeps object code loaded.
class CodeLoader {
public:
  /// Errors: a target whose instructions this CPU lacks.
  static Result<std::unique_ptr<CodeLoader>> create(const Target &target);
  ~CodeLoader();

  /// The functions `names` of `object`, in their order. Objects may have equal
  /// names. Errors: the system refuses to load code.
  Result<std::vector<void *>> load(const std::string &object,
                                   const std::vector<std::string> &names);

private:
  explicit CodeLoader(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
  size_t objects = 0;
};

} // namespace sandwich::measuring

#endif // SANDWICH_TUNING_MEASUREDCODE_H
