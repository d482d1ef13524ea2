//===- Printing.h - Values as text ------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_PRINTING_H
#define SANDWICH_LIB_TEMPLATE_PRINTING_H

#include "RenderState.h"

#include <string>
#include <string_view>

namespace sandwich::jinja {

/// Python's `str(value)`, as a string. Of anything but a string it is data as a
/// whole if any part is. Errors: what has no text that is always the same.
Result<Value> toString(RenderState &state, const Value &value);

/// Appends the same.
Status appendString(RenderState &state, const Value &value, TextBuilder &text);

/// Python's `repr(value)`. Errors as `toString`.
Result<Value> represent(RenderState &state, const Value &value);

/// Python's `repr` of a number.
std::string floatText(double number);

/// How `json.dumps` writes.
struct JsonStyle {
  bool isAscii = false;
  /// Before each element, once for each level; nothing: all is on one line.
  std::optional<std::string> indentation = {};
  std::string itemSeparator = ", ";
  std::string keySeparator = ": ";
  bool sortsKeys = false;
};

/// `json.dumps(value)`, which is data as a whole if any part is. Errors: values
/// and keys that JSON does not have.
Result<Value> toJson(RenderState &state, const Value &value,
                     const JsonStyle &style);

/// The offset of the first `part` in `text` from `begin` on, or npos, in time
/// linear in both.
size_t findText(std::string_view text, std::string_view part, size_t begin);

/// The offset of the last `part` in `text`, or npos.
size_t findLastText(std::string_view text, std::string_view part);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_PRINTING_H
