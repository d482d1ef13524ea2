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
  auto add = [this](size_t depth, uint8_t byte) {
    allNodes.push_back({.end = 0,
                        .firstValue = static_cast<uint32_t>(values.size()),
                        .depth = static_cast<uint16_t>(depth),
                        .deepest = static_cast<uint16_t>(depth),
                        .byte = byte,
                        .isPlainBelow = true});
    return static_cast<uint32_t>(allNodes.size() - 1);
  };
  std::vector<uint32_t> path = {add(0, 0)};
  // Nodes of `path` deeper than `depth` have all that is below them.
  auto close = [&](size_t depth) {
    while (path.size() > depth + 1) {
      Node &node = allNodes[path.back()];
      node.end = static_cast<uint32_t>(allNodes.size());
      path.pop_back();
      Node &parent = allNodes[path.back()];
      parent.deepest = std::max(parent.deepest, node.deepest);
      parent.isPlainBelow &= node.isPlainBelow && isPlain(node.byte);
    }
  };
  values.reserve(texts.size());
  std::string_view last;
  for (const auto &[text, value] : texts) {
    const auto [differs, inLast] = std::ranges::mismatch(text, last);
    const auto common = static_cast<size_t>(differs - text.begin());
    close(common);
    for (size_t i = common; i < text.size(); ++i) {
      path.push_back(add(i + 1, static_cast<uint8_t>(text[i])));
      if (i == 0)
        childrenOfRoot[static_cast<uint8_t>(text[i])] = path.back();
    }
    values.push_back(value);
    last = text;
  }
  close(0);
  allNodes.front().end = static_cast<uint32_t>(allNodes.size());
  add(0, 0);
}
