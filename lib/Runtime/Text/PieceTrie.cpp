//===- PieceTrie.cpp - The pieces that a text begins with -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PieceTrie.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::tokenizer;

namespace {
/// Sorted tokens that have their first `depth` bytes in common.
struct Range {
  size_t begin;
  size_t end;
  size_t depth;
};
} // namespace

Result<PieceTrie> PieceTrie::read(const JsonField &field,
                                  const Vocabulary &vocabulary) {
  std::vector<std::pair<std::string_view, int32_t>> pieces;
  for (int32_t id : vocabulary.modelTokenIds()) {
    std::string_view token = *vocabulary.tokenOf(id);
    if (token.size() > maxPieceBytes)
      return field.error("the token ", inQuotes(token), " is ", token.size(),
                         " bytes long; at most ", maxPieceBytes,
                         " are accepted");
    // Of a token that is listed twice one id counts.
    if (!token.empty() && vocabulary.idInModel(token) == id)
      pieces.emplace_back(token, id);
  }
  std::sort(pieces.begin(), pieces.end());

  // Level by level, so that children are neighbours.
  PieceTrie trie;
  std::vector<Range> ranges = {{0, pieces.size(), 0}};
  trie.nodes.push_back({0, 0, 0, -1});
  for (size_t i = 0; i != trie.nodes.size(); ++i) {
    auto [begin, end, depth] = ranges[i];
    if (begin != end && pieces[begin].first.size() == depth)
      trie.nodes[i].id = pieces[begin++].second;
    const size_t firstChild = trie.nodes.size();
    while (begin != end) {
      auto byte = static_cast<unsigned char>(pieces[begin].first[depth]);
      size_t next = begin + 1;
      while (next != end &&
             static_cast<unsigned char>(pieces[next].first[depth]) == byte)
        ++next;
      trie.nodes.push_back({0, 0, byte, -1});
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
    trie.nodes[i].firstChild = static_cast<uint32_t>(firstChild);
    trie.nodes[i].childCount =
        static_cast<uint16_t>(trie.nodes.size() - firstChild);
  }
  trie.childrenOfRoot.fill(nowhere);
  for (Start i = 1; i <= trie.nodes[root].childCount; ++i)
    trie.childrenOfRoot[trie.nodes[i].byte] = i;
  return trie;
}

PieceTrie::Start PieceTrie::child(Start parent, char byte) const {
  auto wanted = static_cast<unsigned char>(byte);
  if (parent == root)
    return childrenOfRoot[wanted];
  const Node &node = nodes[parent];
  const Node *begin = nodes.data() + node.firstChild;
  const Node *end = begin + node.childCount;
  const Node *found = std::lower_bound(
      begin, end, wanted,
      [](const Node &each, unsigned char other) { return each.byte < other; });
  return found != end && found->byte == wanted
             ? static_cast<Start>(found - nodes.data())
             : nowhere;
}

PieceTrie::Start PieceTrie::after(std::string_view prefix) const {
  Start start = root;
  for (char byte : prefix) {
    start = child(start, byte);
    if (start == nowhere)
      break;
  }
  return start;
}
