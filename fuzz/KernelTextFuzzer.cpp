//===- KernelTextFuzzer.cpp - Text of kernels from anyone -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Syntax.h"

#include <cstdlib>

using namespace sandwich::kernel::syntax;

/// Goes through the tree as who reads it does.
static size_t count(const Expression &expression) {
  size_t nodes = 1;
  for (const ExpressionPointer &each : expression.operands)
    nodes += count(*each);
  return nodes;
}

static size_t count(const Body &body) {
  size_t nodes = 0;
  for (const Statement &statement : body) {
    for (const ExpressionPointer &each : statement.targets)
      nodes += count(*each);
    for (const ExpressionPointer &each : statement.values)
      nodes += count(*each);
    nodes += 1 + count(statement.body) + count(statement.otherwise);
  }
  return nodes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SyntaxError error;
  std::optional<std::vector<Kernel>> kernels =
      parse({reinterpret_cast<const char *>(data), size}, error);
  if (!kernels) {
    if (error.message.empty() || error.place.line == 0)
      std::abort();
    return 0;
  }
  size_t nodes = 0;
  for (const Kernel &kernel : *kernels)
    nodes += count(kernel.body);
  // No text has more of them than characters.
  if (nodes > size)
    std::abort();
  return 0;
}
