//===- MarkedText.h - Text that knows who wrote it --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_MARKEDTEXT_H
#define SANDWICH_LIB_TEMPLATE_MARKEDTEXT_H

#include "sandwich/Support/ByteRange.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::jinja {

/// Who wrote a byte.
enum class Origin : bool {
  Template, ///< the template, or whoever the caller vouches for
  Data,     ///< a request
};

/// What comes of both is data.
inline Origin operator|(Origin a, Origin b) {
  return a == Origin::Data ? a : b;
}

/// UTF-8, and which of its bytes the template wrote.
class MarkedText {
public:
  MarkedText() = default;
  MarkedText(std::string text, Origin origin);

  const std::string &bytes() const { return text; }
  size_t size() const { return text.size(); }
  bool empty() const { return text.empty(); }

  /// In order, none empty, and none touches the next.
  const std::vector<ByteRange> &trusted() const { return ranges; }

  /// Data, if any byte is.
  Origin origin() const;

  void append(std::string_view other, Origin origin);
  void append(const MarkedText &other);
  /// Appends the bytes `[begin, end)` of `other`.
  void append(const MarkedText &other, size_t begin, size_t end);

  MarkedText slice(size_t begin, size_t end) const;

  /// The bytes and the ranges, which leaves this empty.
  std::pair<std::string, std::vector<ByteRange>> release() {
    return {std::exchange(text, {}), std::exchange(ranges, {})};
  }

private:
  /// Marks `range`, which comes after all others.
  void trust(ByteRange range);

  std::string text;
  std::vector<ByteRange> ranges;
};

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_MARKEDTEXT_H
