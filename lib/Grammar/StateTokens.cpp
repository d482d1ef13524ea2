//===- StateTokens.cpp - Tokens that a state of an automaton allows -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTokens.h"

#include <algorithm>
#include <bit>
#include <numeric>

using namespace sandwich::grammar;

TokenSet::TokenSet(std::vector<uint64_t> mask) {
  size_t count = 0;
  for (uint64_t word : mask)
    count += static_cast<size_t>(std::popcount(word));
  if (count * sizeof(uint32_t) > mask.size() * sizeof(uint64_t)) {
    bits = std::move(mask);
    return;
  }
  few.reserve(count);
  for (size_t i = 0; i < mask.size(); ++i)
    for (uint64_t word = mask[i]; word != 0; word &= word - 1)
      few.push_back(
          static_cast<uint32_t>(i * 64 + size_t(std::countr_zero(word))));
}

void TokenSet::addTo(std::span<uint64_t> mask) const {
  for (size_t i = 0; i < bits.size(); ++i)
    mask[i] |= bits[i];
  for (uint32_t token : few)
    mask[token / 64] |= uint64_t(1) << (token % 64);
}

namespace {

/// Where a token has led.
struct Position {
  uint32_t state;
  uint32_t characters;
};

/// Steps of one automaton that count characters of JSON strings.
class CountingStep {
public:
  explicit CountingStep(const Automaton &automaton)
      : automaton(automaton), between(stateBetweenCharacters(automaton)) {}

  bool operator()(Position &position, uint8_t byte) const {
    const uint32_t next = automaton.step(position.state, byte);
    position.characters += position.state == between && automaton.isOpen(next);
    position.state = next;
    return next != Automaton::dead;
  }

private:
  const Automaton &automaton;
  uint32_t between;
};

} // namespace

static void setBits(std::vector<uint64_t> &mask,
                    std::span<const uint32_t> tokens) {
  for (uint32_t token : tokens)
    mask[token / 64] |= uint64_t(1) << (token % 64);
}

StateTokens sandwich::grammar::findTokens(const Tokens &tokens,
                                          const Automaton &automaton,
                                          uint32_t state) {
  StateTokens found;
  std::vector<uint64_t> inside(tokens.words);
  std::vector<Position> path;
  const TokenTrie &trie = tokens.trie;
  walk(trie, 0, Position{state, 0}, path, CountingStep(automaton),
       [&](uint32_t node, const Position &position) {
         const TokenTrie::Node &here = trie.nodes()[node];
         if (automaton.isAccepting(position.state) && here.end > node + 1)
           found.ends.push_back(
               {node, static_cast<uint16_t>(position.characters)});
         if (automaton.isOpen(position.state)) {
           // Inside of a string, most of the trie needs no look.
           const bool staysHere = here.isPlainBelow &&
                                  automaton.staysOnPlain(position.state) &&
                                  !automaton.isAccepting(position.state);
           setBits(inside,
                   trie.valuesFrom(node, staysHere ? here.end : node + 1));
           found.mostCharacters = std::max(
               found.mostCharacters,
               position.characters +
                   (staysHere ? uint32_t(here.deepest - here.depth) : 0));
           return !staysHere;
         }
         for (uint32_t token : trie.valuesAt(node))
           found.ending.push_back(
               {token, here.depth, static_cast<uint16_t>(position.characters)});
         return true;
       });
  found.ending.shrink_to_fit();
  found.ends.shrink_to_fit();
  found.inside = TokenSet(std::move(inside));
  return found;
}

TokensByCharacters sandwich::grammar::orderByCharacters(
    const Tokens &tokens, const Automaton &automaton, uint32_t state) {
  TokensByCharacters found;
  std::vector<std::pair<uint16_t, uint32_t>> counted;
  auto count = [&](uint32_t characters, std::span<const uint32_t> values) {
    if (characters >= found.counts.size())
      found.counts.resize(characters + 1);
    found.counts[characters] += static_cast<uint32_t>(values.size());
    for (uint32_t token : values)
      counted.emplace_back(characters, token);
  };
  std::vector<Position> path;
  const TokenTrie &trie = tokens.trie;
  walk(trie, 0, Position{state, 0}, path, CountingStep(automaton),
       [&](uint32_t node, const Position &position) {
         if (!automaton.isOpen(position.state))
           return true;
         count(position.characters, trie.valuesAt(node));
         const TokenTrie::Node &here = trie.nodes()[node];
         if (!here.isPlainBelow || !automaton.staysOnPlain(position.state))
           return true;
         for (uint32_t below = node + 1; below < here.end; ++below)
           count(position.characters + trie.nodes()[below].depth - here.depth,
                 trie.valuesAt(below));
         return false;
       });
  std::vector<uint32_t> next(found.counts.size());
  std::exclusive_scan(found.counts.begin(), found.counts.end(), next.begin(),
                      0u);
  std::partial_sum(found.counts.begin(), found.counts.end(),
                   found.counts.begin());
  found.tokens.resize(counted.size());
  for (const auto &[characters, token] : counted)
    found.tokens[next[characters]++] = token;
  return found;
}

TokenSet sandwich::grammar::limitCharacters(const Tokens &tokens,
                                            const TokensByCharacters &ordered,
                                            size_t most) {
  std::vector<uint64_t> mask(tokens.words);
  setBits(mask, std::span(ordered.tokens).first(ordered.counts[most]));
  return TokenSet(std::move(mask));
}

TokensBeyond
sandwich::grammar::findBeyond(const Tokens &tokens,
                              std::span<const StateTokens::End> ends) {
  TokensBeyond found;
  std::vector<std::pair<std::string_view, uint32_t>> rests;
  for (const StateTokens::End &end : ends) {
    const TokenTrie::Node &node = tokens.trie.nodes()[end.node];
    for (uint32_t token : tokens.trie.valuesFrom(end.node + 1, node.end)) {
      rests.emplace_back(tokens.at(token).substr(node.depth),
                         static_cast<uint32_t>(found.tokens.size()));
      found.tokens.push_back({token, node.depth, end.characters});
    }
  }
  found.trie = TokenTrie(std::move(rests));
  return found;
}
