//===- CompileForRanks.h - Models for tests of several ranks --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_COMPILER_COMPILEFORRANKS_H
#define SANDWICH_UNITTESTS_COMPILER_COMPILEFORRANKS_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <string>

namespace sandwich::test {

/// Compiles the checkpoint in `modelFolder` into the artifact `output`, for any
/// CPU with AVX2.
Status compileForRanks(const std::string &modelFolder,
                       const std::string &output, const std::string &dtype,
                       int64_t ranks, int64_t threads, int64_t maxTokens);

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_COMPILER_COMPILEFORRANKS_H
