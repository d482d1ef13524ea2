//===- CompileForRanks.cpp - Models for tests of several ranks -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompileForRanks.h"

#include "sandwich/Compiler/Compiler.h"

using namespace sandwich;

Status test::compileForRanks(const std::string &modelFolder,
                             const std::string &output,
                             const std::string &dtype, int64_t ranks,
                             int64_t threads, int64_t maxTokens) {
  CompileOptions options;
  options.modelFolder = modelFolder;
  options.output = output;
  options.dtype = dtype;
  options.target = "x86-64-avx2";
  options.threads = threads;
  options.maxTokens = maxTokens;
  options.tensorParallel = ranks;
  return compile(options, [](std::string_view, double) { return Status(); });
}
