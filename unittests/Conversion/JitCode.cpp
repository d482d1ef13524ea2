//===- JitCode.cpp - Machine code in memory -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JitCode.h"

#include "llvm/Support/TargetSelect.h"

using namespace sandwich;
using namespace sandwich::test;

Result<std::unique_ptr<JitCode>>
JitCode::load(std::unique_ptr<llvm::Module> module,
              std::unique_ptr<llvm::LLVMContext> context) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return makeError(llvm::toString(jit.takeError()));
  module->setDataLayout((*jit)->getDataLayout());
  if (llvm::Error error = (*jit)->addIRModule(
          llvm::orc::ThreadSafeModule(std::move(module), std::move(context))))
    return makeError(llvm::toString(std::move(error)));
  auto result = std::make_unique<JitCode>();
  result->jit = std::move(*jit);
  return result;
}
