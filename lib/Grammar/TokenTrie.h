//===- TokenTrie.h - Tokens by the bytes they begin with --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_TOKENTRIE_H
#define SANDWICH_LIB_GRAMMAR_TOKENTRIE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::grammar {

/// Texts as paths from a root, the nodes in depth-first order: all below node i
/// are those from i + 1 to `nodes[i].end`, and what lies below a node that does
/// not match is stepped over at once.
class TokenTrie {
public:
  struct Node {
    /// One beyond the last node below this one.
    uint32_t end;
    /// Where its values begin; they end where those of the next node begin.
    uint32_t firstValue;
    /// Of the root, 0.
    uint16_t depth;
    /// The largest depth below it, or its own.
    uint16_t deepest;
    /// From its parent to it.
    uint8_t byte;
    /// Whether all bytes below it are plain, as most are in most vocabularies.
    bool isPlainBelow;
  };

  /// Whether `byte` is a character of its own that JSON strings do not escape.
  static constexpr bool isPlain(uint8_t byte) {
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
  }

  /// A longest text.
  static constexpr size_t mostBytes = 65535;

  TokenTrie()
      : TokenTrie(std::vector<std::pair<std::string_view, uint32_t>>()) {}
  /// A trie of texts of at most `mostBytes` and their values.
  explicit TokenTrie(std::vector<std::pair<std::string_view, uint32_t>> texts);

  /// The root is the first.
  std::span<const Node> nodes() const {
    return std::span(allNodes).first(allNodes.size() - 1);
  }
  std::span<const uint32_t> valuesAt(uint32_t node) const {
    return valuesFrom(node, node + 1);
  }
  /// Those of all nodes from `first` up to `end`.
  std::span<const uint32_t> valuesFrom(uint32_t first, uint32_t end) const {
    return std::span(values).subspan(allNodes[first].firstValue,
                                     allNodes[end].firstValue -
                                         allNodes[first].firstValue);
  }
  bool hasChildren(uint32_t node) const {
    return allNodes[node].end > node + 1;
  }
  /// The child of the root by `byte`, or 0.
  uint32_t childOfRoot(uint8_t byte) const { return childrenOfRoot[byte]; }
  size_t depth() const { return allNodes.front().deepest; }
  size_t bytes() const {
    return sizeof(*this) + allNodes.size() * sizeof(Node) +
           values.size() * sizeof(uint32_t);
  }

private:
  /// And one more, where the values end.
  std::vector<Node> allNodes;
  std::vector<uint32_t> values;
  std::array<uint32_t, 256> childrenOfRoot{};
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_TOKENTRIE_H
