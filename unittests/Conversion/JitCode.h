//===- JitCode.h - Machine code in memory -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CONVERSION_JITCODE_H
#define SANDWICH_UNITTESTS_CONVERSION_JITCODE_H

#include "sandwich/Support/Result.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <memory>
#include <string>

namespace sandwich::test {

/// A module as machine code of this process.
class JitCode {
public:
  /// Errors: what LLVM reports.
  static Result<std::unique_ptr<JitCode>>
  load(std::unique_ptr<llvm::Module> module,
       std::unique_ptr<llvm::LLVMContext> context);

  /// The function called `name`. Errors: there is none.
  template <typename Function>
  Result<Function> lookup(const std::string &name) {
    auto symbol = jit->lookup(name);
    if (!symbol)
      return makeError(llvm::toString(symbol.takeError()));
    return symbol->toPtr<Function>();
  }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CONVERSION_JITCODE_H
