//===- TokenTrie.cpp - Tokens by the bytes they begin with ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenTrie.h"

#include <algorithm>

using namespace sandwich::grammar;

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, uint32_t>> texts) {
  std::ranges::sort(texts);
  std::vector<uint32_t> path = {0};
  allNodes.push_back({.end = 0, .firstValue = 0, .byte = 0, .depth = 0});
  values.reserve(texts.size());
  std::string_view last;
  auto close = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      allNodes[path.back()].end = static_cast<uint32_t>(allNodes.size());
  };
  for (const auto &[text, value] : texts) {
    const auto [differs, inLast] = std::ranges::mismatch(text, last);
    const auto common = static_cast<size_t>(differs - text.begin());
    close(common);
    for (size_t i = common; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const auto node = static_cast<uint32_t>(allNodes.size());
      if (i == 0)
        childrenOfRoot[byte] = node;
      path.push_back(node);
      allNodes.push_back({.end = 0,
                          .firstValue = static_cast<uint32_t>(values.size()),
                          .byte = byte,
                          .depth = static_cast<uint16_t>(i + 1)});
    }
    values.push_back(value);
    longest = std::max(longest, text.size());
    last = text;
  }
  close(0);
  allNodes[0].end = static_cast<uint32_t>(allNodes.size());
  allNodes.push_back({.end = static_cast<uint32_t>(allNodes.size()),
                      .firstValue = static_cast<uint32_t>(values.size()),
                      .byte = 0,
                      .depth = 0});
}
