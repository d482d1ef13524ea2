//===- SourceText.h - A grammar's source as one text ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_SOURCETEXT_H
#define SANDWICH_LIB_GRAMMAR_SOURCETEXT_H

#include "sandwich/Grammar/Grammar.h"

#include <string>

namespace sandwich::grammar {

/// Two sources have the same text exactly if they are the same. Errors
/// (`InvalidArgument`): it is not UTF-8, or nested too deep.
Result<std::string> textOf(const GrammarSource &source);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_SOURCETEXT_H
