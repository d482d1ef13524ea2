//===- OutputConstraint.cpp - What a text must be like, as a constraint ---===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputConstraint.h"

using namespace sandwich;

ConstraintOrError sandwich::constrainFormat(const GenerationParameters &,
                                            const LoadedModel &) {
  return std::shared_ptr<const TokenConstraint>();
}
ConstraintOrError sandwich::constrainToolCalls(const ChatRequest &,
                                               const ToolCallSyntax &,
                                               const LoadedModel &) {
  return std::shared_ptr<const TokenConstraint>();
}
