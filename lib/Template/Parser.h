//===- Parser.h - Templates as trees ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_PARSER_H
#define SANDWICH_LIB_TEMPLATE_PARSER_H

#include "Syntax.h"

#include "sandwich/Support/Result.h"
#include "sandwich/Template/ChatTemplate.h"

#include <string_view>

namespace sandwich::jinja {

/// Parses `source`, UTF-8. Errors name the line: no Jinja, statements, filters
/// and tests that are not supported, or beyond `limits`.
Result<Syntax> parseTemplate(std::string_view source,
                             const TemplateLimits &limits);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_PARSER_H
