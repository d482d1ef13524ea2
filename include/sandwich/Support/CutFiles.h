//===- CutFiles.h - Mapped files that shrink --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_CUTFILES_H
#define SANDWICH_SUPPORT_CUTFILES_H

namespace sandwich {

/// For programs: from now on, touching a part of a mapped file that is no more,
/// because something cut the file or its disk failed, ends the program by
/// `exitWithError` with the line `error: FILE: ...`. Without this it is a
/// signal, SIGBUS, and the default.
void exitOnCutFiles();

} // namespace sandwich

#endif // SANDWICH_SUPPORT_CUTFILES_H
