//===- StateTokens.h - Tokens that a state of an automaton allows *- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What can be computed of a mask once for each state of an automaton, whatever
/// stack it stands on: XGrammar's division (Dong et al. 2024, section 3.1) into
/// tokens that stay inside of the state's text and those that go beyond its
/// end, which depend on what comes then. The ends of the latter are a small
/// trie of their own, in which all tokens with the same end share a path.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_STATETOKENS_H
#define SANDWICH_LIB_GRAMMAR_STATETOKENS_H

#include "Automaton.h"
#include "TokenTrie.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::grammar {

/// The bytes of each token, and the trie of those that grammars may use.
struct Tokens {
  std::string characters;
  /// Token i is `characters` from `begins[i]` to `begins[i + 1]`.
  std::vector<uint32_t> begins;
  TokenTrie trie;
  /// Of a mask.
  size_t words = 0;

  std::string_view at(uint32_t token) const {
    return std::string_view(characters)
        .substr(begins[token], begins[token + 1] - begins[token]);
  }
};

/// A set of tokens, as bits or, if there are few, as numbers.
class TokenSet {
public:
  TokenSet() = default;
  /// Those whose bits are set in `mask`.
  explicit TokenSet(std::vector<uint64_t> mask);

  void addTo(std::span<uint64_t> mask) const;
  size_t bytes() const {
    return bits.size() * sizeof(uint64_t) + few.size() * sizeof(uint32_t);
  }

private:
  std::vector<uint64_t> bits;
  std::vector<uint32_t> few;
};

/// A token in which a text ends: after `length` of its bytes, among which
/// `characters` characters of a JSON string begin.
struct EndingToken {
  uint32_t token;
  uint16_t length;
  uint16_t characters;
};

/// Tokens after which a text may go on, and those that complete it.
struct StateTokens {
  /// A node of the trie where the text may end while tokens go on.
  struct End {
    uint32_t node;
    uint16_t characters;
  };

  TokenSet inside;
  /// No token inside has more characters.
  uint32_t mostCharacters = 0;
  std::vector<EndingToken> ending;
  std::vector<End> ends;

  size_t bytes() const {
    return sizeof(*this) + inside.bytes() +
           ending.size() * sizeof(EndingToken) + ends.size() * sizeof(End);
  }
};

/// The tokens inside, ordered by the characters that begin in them.
struct TokensByCharacters {
  std::vector<uint32_t> tokens;
  /// Those with at most i characters are the first `counts[i]`.
  std::vector<uint32_t> counts;

  size_t bytes() const {
    return sizeof(*this) + (tokens.size() + counts.size()) * sizeof(uint32_t);
  }
};

/// Tokens that go beyond an end: what is beyond, as a trie with numbers of
/// `tokens` as values.
struct TokensBeyond {
  std::vector<EndingToken> tokens;
  TokenTrie trie;

  size_t bytes() const {
    return sizeof(*this) + tokens.size() * sizeof(EndingToken) + trie.bytes();
  }
};

/// The state of an automaton of JSON strings between two characters; `dead`
/// where the automaton's texts begin with no quote.
inline uint32_t stateBetweenCharacters(const Automaton &automaton) {
  return automaton.step(automaton.start(), '"');
}

StateTokens findTokens(const Tokens &tokens, const Automaton &automaton,
                       uint32_t state);
TokensByCharacters orderByCharacters(const Tokens &tokens,
                                     const Automaton &automaton,
                                     uint32_t state);
/// Those of `ordered` with at most `most` characters, which some have more
/// than.
TokenSet limitCharacters(const Tokens &tokens,
                         const TokensByCharacters &ordered, size_t most);
TokensBeyond findBeyond(const Tokens &tokens,
                        std::span<const StateTokens::End> ends);

/// Goes down `trie` from `node` as far as `step(position, byte)` lets it, which
/// changes a position, from `position` on, and calls `visit(node, position)`
/// for each node that it reaches, which returns whether to go on below. `path`
/// is room that is reused.
template <typename Position, typename Step, typename Visit>
void walk(const TokenTrie &trie, uint32_t node, const Position &position,
          std::vector<Position> &path, Step step, Visit visit) {
  const TokenTrie::Node *nodes = trie.nodes().data();
  if (path.size() <= trie.depth())
    path.resize(trie.depth() + 1);
  Position *positions = path.data();
  auto below = [&](uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end;) {
      const TokenTrie::Node &next = nodes[i];
      Position reached = positions[next.depth - 1];
      if (!step(reached, next.byte)) {
        i = next.end;
        continue;
      }
      positions[next.depth] = reached;
      i = visit(i, reached) ? i + 1 : next.end;
    }
  };
  positions[nodes[node].depth] = position;
  if (node != 0)
    return below(node + 1, nodes[node].end);
  // The root's children lie far apart in memory; most are left out here.
  for (unsigned byte = 0; byte < 256; ++byte) {
    const uint32_t child = trie.childOfRoot(static_cast<uint8_t>(byte));
    Position reached = position;
    if (child != 0 && step(reached, static_cast<uint8_t>(byte)))
      below(child, nodes[child].end);
  }
}

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_STATETOKENS_H
