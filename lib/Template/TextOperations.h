//===- TextOperations.h - Python's strings ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What filters and methods do with strings. Parts of a text keep who wrote
/// their bytes. Where a request decides what is cut out (the characters to
/// strip, where to split), all of the result is data: a template's text cut by
/// a request is not its text any more. What cannot be followed byte by byte is
/// data as a whole, if any byte is.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_TEXTOPERATIONS_H
#define SANDWICH_LIB_TEMPLATE_TEXTOPERATIONS_H

#include "RenderState.h"

namespace sandwich::jinja {

enum class Ends : uint8_t { Both, Left, Right };

/// `strip`, `lstrip` and `rstrip`: of whitespace, or of the characters of
/// `characters`, if that is not null.
Value stripText(RenderState &state, const String &text,
                const MarkedText *characters, Ends ends);

/// `text.replace(old, replacement, count)`; a negative count is all.
Value replaceText(RenderState &state, const MarkedText &text,
                  const MarkedText &old, const MarkedText &replacement,
                  int64_t count);

/// `text.split(separator, count)`, from the left or the right; null separates
/// by whitespace. Error: an empty separator.
Result<Value> splitText(RenderState &state, const String &text,
                        const MarkedText *separator, int64_t count,
                        bool isFromRight);

/// `text.splitlines(keepsEnds)`.
Value splitLines(RenderState &state, const String &text, bool keepsEnds);

/// `separator.join(items)`, of the text of any value. Errors: as `toString`.
Result<Value> joinTexts(RenderState &state, const MarkedText &separator,
                        const std::vector<Value> &items);

/// `text` with `fill` at its ends, up to `width` characters. Error: a width
/// that is out of range.
enum class Alignment : uint8_t { Left, Right, Center };
Value padText(RenderState &state, const String &text, int64_t width,
              const MarkedText &fill, Alignment alignment);

/// What `change` makes of the bytes, where it cannot be said which byte becomes
/// which.
template <typename Change>
Value changeText(RenderState &state, const String &text, Change change) {
  // Changes of case grow a text at most threefold.
  if (state.memoryLeft() / 3 < text.text.size()) {
    state.exhaustMemory();
    return state.string("", Origin::Template);
  }
  return state.string(MarkedText(change(text.text.bytes()), text.text.origin()),
                      text.isMarkup);
}

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_TEXTOPERATIONS_H
