//===- MarkedText.cpp - Text that knows who wrote it ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MarkedText.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::jinja;

MarkedText::MarkedText(std::string text, Origin origin)
    : text(std::move(text)) {
  if (origin == Origin::Template)
    trust({0, this->text.size()});
}

Origin MarkedText::origin() const {
  const bool isWhole =
      text.empty() || (ranges.size() == 1 && ranges[0].size() == text.size());
  return isWhole ? Origin::Template : Origin::Data;
}

void MarkedText::trust(ByteRange range) {
  if (range.size() == 0)
    return;
  if (!ranges.empty() && ranges.back().end == range.begin)
    ranges.back().end = range.end;
  else
    ranges.push_back(range);
}

void MarkedText::append(std::string_view other, Origin origin) {
  const size_t begin = text.size();
  text += other;
  if (origin == Origin::Template)
    trust({begin, text.size()});
}

void MarkedText::append(const MarkedText &other) {
  append(other, 0, other.size());
}

void MarkedText::append(const MarkedText &other, size_t begin, size_t end) {
  const size_t offset = text.size();
  text.append(other.text, begin, end - begin);
  auto first = std::ranges::partition_point(
      other.ranges, [&](const ByteRange &range) { return range.end <= begin; });
  for (; first != other.ranges.end() && first->begin < end; ++first)
    trust({offset + std::max(first->begin, begin) - begin,
           offset + std::min(first->end, end) - begin});
}

MarkedText MarkedText::slice(size_t begin, size_t end) const {
  MarkedText part;
  part.append(*this, begin, end);
  return part;
}
