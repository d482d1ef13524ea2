//===- FatalErrors.h - Where LLVM gives up ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMPILER_FATALERRORS_H
#define SANDWICH_COMPILER_FATALERRORS_H

namespace sandwich {

/// What a tool that compiles does first: from now on the process ends by
/// `exitWithError` where there is no memory, and where LLVM would abort it.
/// What the tool says of signals after this holds, whatever LLVM does.
void exitOnFatalErrors();

} // namespace sandwich

#endif // SANDWICH_COMPILER_FATALERRORS_H
