//===- PieceTrie.h - The pieces that a text begins with ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_PIECETRIE_H
#define SANDWICH_LIB_RUNTIME_TEXT_PIECETRIE_H

#include "JsonField.h"
#include "Vocabulary.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sandwich::tokenizer {

/// The tokens of a model, by their bytes. Finding all of them that a text
/// begins with takes one step for each byte of the longest, so the length of
/// tokens is limited: with it, encoding is linear in the text.
class PieceTrie {
public:
  /// The longest token that is accepted. Those of trained models have some 50.
  static constexpr size_t maxPieceBytes = 1024;

  /// The tokens of the model of `vocabulary` but the empty one. Errors name
  /// `field`, where they are from: a token is too long.
  static Result<PieceTrie> read(const JsonField &field,
                                const Vocabulary &vocabulary);

  /// Where the search for tokens begins: at their beginning, or behind some
  /// bytes that they have in common.
  using Start = uint32_t;
  static constexpr Start root = 0;
  /// Where no token is found.
  static constexpr Start nowhere = ~Start(0);

  /// The start behind `prefix`.
  Start after(std::string_view prefix) const;

  /// Calls `visit(LENGTH, ID)` for each token that consists of what `start` is
  /// behind and LENGTH bytes, not none, that `text` begins with; the shortest
  /// first.
  template <typename Visit>
  void forEachPrefix(std::string_view text, Start start, Visit visit) const {
    for (size_t i = 0; i != text.size(); ++i) {
      start = child(start, text[i]);
      if (start == nowhere)
        return;
      if (nodes[start].id >= 0)
        visit(i + 1, nodes[start].id);
    }
  }

private:
  struct Node {
    uint32_t firstChild; ///< children are neighbours, sorted by their bytes
    uint16_t childCount;
    unsigned char byte; ///< the last
    int32_t id;         ///< of the token that ends here, or -1
  };

  /// Where `byte` leads to from `parent`.
  Start child(Start parent, char byte) const;

  std::vector<Node> nodes;
  std::array<Start, 256> childrenOfRoot;
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_PIECETRIE_H
