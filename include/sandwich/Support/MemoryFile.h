//===- MemoryFile.h - Files in memory ---------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_MEMORYFILE_H
#define SANDWICH_SUPPORT_MEMORYFILE_H

#include "sandwich/Support/Result.h"

#include <string_view>

namespace sandwich {

/// Makes an empty file in memory, called `name` where the system lists it, that
/// can be sealed, is closed on exec, and that no program can be run from where
/// the system can see to that. Returns its descriptor, or -1 with `errno` set.
int createMemoryFile(const char *name);

/// Writes `bytes` to the empty file `file` of `createMemoryFile`, which holds
/// them for good then, whatever becomes of where they are from.
Status fillAndSeal(int file, std::string_view bytes);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_MEMORYFILE_H
