//===- Formatting.h - Values in text by formats -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_FORMATTING_H
#define SANDWICH_LIB_TEMPLATE_FORMATTING_H

#include "RenderState.h"

namespace sandwich::jinja {

/// Python's `format % arguments`. Errors: formats that are wrong or not
/// supported, and arguments that do not fit.
Result<Value> formatPercent(RenderState &state, const Value &format,
                            const Value &arguments);

/// Python's `format.format(...)`. Errors as above.
Result<Value> formatBraces(RenderState &state, const Value &format,
                           const Arguments &arguments);

/// Python's `datetime.strftime`, for the directives that the C standard has.
/// Errors: others.
Result<Value> formatTime(RenderState &state, const Value &format,
                         const std::tm &time);

/// `number` rounded to `digits` behind the point, a tie to the even digit.
double roundNumber(double number, int64_t digits);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_FORMATTING_H
