//===- StateTokens.cpp - Tokens that a state of an automaton allows -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTokens.h"

#include <algorithm>
#include <numeric>

using namespace sandwich::grammar;

TokenSet::TokenSet(std::vector<uint32_t> tokens, size_t words) {
  if (tokens.size() * sizeof(uint32_t) <= words * sizeof(uint64_t)) {
    few = std::move(tokens);
    few.shrink_to_fit();
    return;
  }
  bits.resize(words);
  for (uint32_t token : tokens)
    bits[token / 64] |= uint64_t(1) << (token % 64);
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

StateTokens sandwich::grammar::findTokens(const Tokens &tokens,
                                          const Automaton &automaton,
                                          uint32_t state) {
  StateTokens found;
  std::vector<uint32_t> inside;
  std::vector<Position> path;
  walk(tokens.trie, 0, Position{state, 0}, path, CountingStep(automaton),
       [&](uint32_t node, const Position &position) {
         const std::span<const uint32_t> here = tokens.trie.valuesAt(node);
         found.goBeyond |= automaton.isAccepting(position.state) &&
                           tokens.trie.hasChildren(node);
         if (here.empty())
           return;
         if (automaton.isOpen(position.state)) {
           inside.insert(inside.end(), here.begin(), here.end());
           found.mostCharacters =
               std::max(found.mostCharacters, position.characters);
           return;
         }
         const auto length =
             static_cast<uint16_t>(tokens.trie.nodes()[node].depth);
         for (uint32_t token : here)
           found.ending.push_back(
               {token, length, static_cast<uint16_t>(position.characters)});
       });
  found.ending.shrink_to_fit();
  found.inside = TokenSet(std::move(inside), tokens.words);
  return found;
}

TokensByCharacters sandwich::grammar::orderByCharacters(
    const Tokens &tokens, const Automaton &automaton, uint32_t state) {
  std::vector<std::pair<uint16_t, uint32_t>> counted;
  TokensByCharacters found;
  std::vector<Position> path;
  walk(tokens.trie, 0, Position{state, 0}, path, CountingStep(automaton),
       [&](uint32_t node, const Position &position) {
         if (!automaton.isOpen(position.state))
           return;
         if (position.characters >= found.counts.size())
           found.counts.resize(position.characters + 1);
         for (uint32_t token : tokens.trie.valuesAt(node)) {
           ++found.counts[position.characters];
           counted.emplace_back(position.characters, token);
         }
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

TokensBeyond sandwich::grammar::findBeyond(const Tokens &tokens,
                                           const Automaton &automaton,
                                           uint32_t state) {
  TokensBeyond found;
  std::vector<std::pair<std::string_view, uint32_t>> rests;
  std::vector<Position> path;
  const std::span<const TokenTrie::Node> nodes = tokens.trie.nodes();
  walk(tokens.trie, 0, Position{state, 0}, path, CountingStep(automaton),
       [&](uint32_t node, const Position &position) {
         if (!automaton.isAccepting(position.state))
           return;
         const uint16_t length = nodes[node].depth;
         for (uint32_t below = node + 1; below < nodes[node].end; ++below)
           for (uint32_t token : tokens.trie.valuesAt(below)) {
             rests.emplace_back(tokens.at(token).substr(length),
                                static_cast<uint32_t>(found.tokens.size()));
             found.tokens.push_back(
                 {token, length, static_cast<uint16_t>(position.characters)});
           }
       });
  found.trie = TokenTrie(std::move(rests));
  return found;
}
