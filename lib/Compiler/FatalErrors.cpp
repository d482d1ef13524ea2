//===- FatalErrors.cpp - Where LLVM gives up ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/FatalErrors.h"

#include "sandwich/Support/UnfinishedOutputs.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"

using namespace sandwich;

void sandwich::exitOnFatalErrors() {
  // LLVM takes the signals of a process once, before its first temporary file,
  // which would be when lld links. Its handlers let a signal that follows soon
  // end the process without a word, so that ours must come after them.
  llvm::sys::SetInterruptFunction(nullptr);
  exitWhenOutOfMemory();
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { exitOutOfMemory(); });
  llvm::install_fatal_error_handler(
      [](void *, const char *reason, bool) { exitWithError({reason}); });
}
