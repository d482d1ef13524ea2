//===- StringLiteral.h - Escapes in templates -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_STRINGLITERAL_H
#define SANDWICH_LIB_TEMPLATE_STRINGLITERAL_H

#include "sandwich/Support/Result.h"

#include <string>
#include <string_view>

namespace sandwich::jinja {

/// Appends what `literal`, the UTF-8 between two quotes, stands for in Python.
/// A backslash before anything else stays. Errors: escapes that are cut or
/// stand for no character, and names of characters, which are not supported.
Status appendStringLiteral(std::string_view literal, std::string &text);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_STRINGLITERAL_H
