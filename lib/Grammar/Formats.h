//===- Formats.h - What the keyword `format` names --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_FORMATS_H
#define SANDWICH_LIB_GRAMMAR_FORMATS_H

#include "Expression.h"

#include <optional>
#include <string_view>

namespace sandwich::grammar {

/// The texts of `format`, inside of a JSON string; nothing if it is not known.
std::optional<Expression> stringFormat(ExpressionPool &pool,
                                       std::string_view format);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_FORMATS_H
