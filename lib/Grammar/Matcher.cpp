//===- Matcher.cpp - Follows a text through a grammar ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matcher.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

Matcher::Matcher(std::shared_ptr<const Grammar> owned)
    : grammar(std::move(owned)), network(grammar->parts().network),
      vocabulary(grammar->parts().vocabulary->index()), follower(network) {
  follower.add(network.start, nullptr);
  positions = follower.finish();
}

Matcher::Matcher(const Matcher &other)
    : grammar(other.grammar), network(other.network),
      vocabulary(other.vocabulary), follower(network),
      positions(other.positions), ended(other.ended) {}

std::unique_ptr<TokenConstraint> Matcher::clone() const {
  return std::unique_ptr<TokenConstraint>(new Matcher(*this));
}

//===----------------------------------------------------------------------===//
// Accepting
//===----------------------------------------------------------------------===//

bool Matcher::accept(int32_t given) {
  if (given < 0 || static_cast<size_t>(given) >= vocabulary.modelTokens)
    return false;
  const auto token = static_cast<uint32_t>(given);
  if (std::ranges::find(vocabulary.endTokens, token) !=
      vocabulary.endTokens.end()) {
    if (!positions.mayEnd && !ended)
      return false;
    ended = true;
    maskIsKnown = false;
    return true;
  }
  if (ended)
    return false;
  // As a token of its own, and as bytes.
  for (const Place &place : positions.places) {
    const Edge &edge = network.edges[place.edge];
    if (edge.kind == Edge::Kind::Token && edge.index == token)
      follower.add(edge.target, place.context);
  }
  Positions next = follower.finish();
  const std::string_view bytes = grammar->parts().vocabulary->bytesOf(given);
  if (!bytes.empty()) {
    Positions spelled = positions;
    for (char byte : bytes) {
      spelled = advance(network, follower, spelled, static_cast<uint8_t>(byte));
      if (spelled.places.empty() && !spelled.mayEnd)
        break;
    }
    next.mayEnd |= spelled.mayEnd;
    std::ranges::move(spelled.places, std::back_inserter(next.places));
  }
  if (next.places.empty() && !next.mayEnd)
    return false;
  positions = std::move(next);
  maskIsKnown = false;
  return true;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

void Matcher::allowEnd() {
  for (uint32_t token : vocabulary.endTokens)
    allow(token);
}

std::span<const uint64_t> Matcher::allowedTokens() {
  if (maskIsKnown)
    return mask;
  mask.assign(vocabulary.tokens.words, 0);
  if (ended || positions.mayEnd)
    allowEnd();
  if (!ended)
    for (const Place &place : positions.places)
      allowFrom(place);
  maskIsKnown = true;
  return mask;
}

/// The key of what is known of `state`.
static MaskStore::Key keyOf(const Automaton &automaton, uint32_t state,
                            MaskStore::Kind kind, uint16_t limit = 0) {
  return {automaton.id(), state, kind, limit};
}

void Matcher::allowFrom(const Place &place) {
  const Edge &edge = network.edges[place.edge];
  if (edge.kind == Edge::Kind::Token)
    return allow(edge.index);
  const TextStep step(network, edge);
  const TextPosition position{place.state, place.progress};
  const Automaton &automaton = step.automaton();
  const auto tokens = vocabulary.masks.find<StateTokens>(
      keyOf(automaton, place.state, MaskStore::Kind::Tokens),
      [&] { return findTokens(vocabulary.tokens, automaton, place.state); });
  allowInside(step, position, *tokens);
  for (const EndingToken &ending : tokens->ending)
    if (step.mayEnd(position, ending, vocabulary.tokens.at(ending.token)))
      allow(ending.token);
  if (!tokens->ends.empty())
    allowBeyond(place, step, position, *tokens);
}

namespace {

/// The tokens with at most some number of characters.
struct LimitedTokens {
  TokenSet tokens;

  size_t bytes() const { return sizeof(*this) + tokens.bytes(); }
};

} // namespace

void Matcher::allowInside(const TextStep &step, const TextPosition &position,
                          const StateTokens &tokens) {
  const uint32_t left = step.charactersLeft(position);
  if (left >= tokens.mostCharacters)
    return tokens.inside.addTo(mask);
  const Automaton &automaton = step.automaton();
  const auto limit = static_cast<uint16_t>(left);
  vocabulary.masks
      .find<LimitedTokens>(
          keyOf(automaton, position.state, MaskStore::Kind::Limited, limit),
          [&] {
            const auto ordered = vocabulary.masks.find<TokensByCharacters>(
                keyOf(automaton, position.state, MaskStore::Kind::ByCharacters),
                [&] {
                  return orderByCharacters(vocabulary.tokens, automaton,
                                           position.state);
                });
            return LimitedTokens{
                limitCharacters(vocabulary.tokens, *ordered, limit)};
          })
      ->tokens.addTo(mask);
}

namespace {

/// Tokens that go beyond the end of one text, through all that may come then.
class BeyondSearch {
public:
  /// Of what may come at `node` within `context`.
  BeyondSearch(const Network &network, Follower &follower, uint32_t node,
               const ContextPointer &context)
      : network(network), follower(follower) {
    find(node, context);
  }

  /// Whether anything may come.
  bool isInVain() const {
    return std::ranges::none_of(
        follows.front()->places, [this](const Place &place) {
          return network.edges[place.edge].kind == Edge::Kind::Text;
        });
  }

  /// Calls `reach(value)` for each value of `trie` below `node` that spells a
  /// beginning of what may come.
  template <typename Reach>
  void run(const TokenTrie &trie, uint32_t node, Reach reach) {
    tasks.push_back({0, node});
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      // `follows` may grow meanwhile.
      const size_t count = follows[task.follow]->places.size();
      for (size_t i = 0; i < count; ++i)
        search(trie, follows[task.follow]->places[i], task.node, reach);
    }
    done.clear();
  }

private:
  /// What comes at a node of the network, from a node of the trie on.
  struct Task {
    uint32_t follow, node;
  };

  /// The number, in `follows`, of what may come at `node` within `context`.
  uint32_t find(uint32_t node, const ContextPointer &context) {
    const auto [position, isNew] = followOf.try_emplace(
        {node, context.get()}, static_cast<uint32_t>(follows.size()));
    if (isNew) {
      follower.add(node, context);
      follows.push_back(std::make_unique<Positions>(follower.finish()));
    }
    return position->second;
  }

  template <typename Reach>
  void search(const TokenTrie &trie, const Place &place, uint32_t from,
              Reach reach) {
    const Edge &edge = network.edges[place.edge];
    // A token that is not spelled begins no other.
    if (edge.kind != Edge::Kind::Text)
      return;
    const TextStep step(network, edge);
    walk(trie, from, step.start(), path, step,
         [&](uint32_t node, const TextPosition &position) {
           for (uint32_t value : trie.valuesAt(node))
             reach(value);
           if (step.automaton().isAccepting(position.state) &&
               trie.hasChildren(node)) {
             const uint32_t follow = find(edge.target, place.context);
             if (done.insert(uint64_t(follow) << 32 | node).second)
               tasks.push_back({follow, node});
           }
           return true;
         });
  }

  struct Hash {
    size_t operator()(const std::pair<uint32_t, const Context *> &key) const {
      return std::hash<const void *>()(key.second) * 31 + key.first;
    }
  };

  const Network &network;
  Follower &follower;
  std::vector<TextPosition> path;
  std::vector<Task> tasks;
  std::vector<std::unique_ptr<Positions>> follows;
  std::unordered_map<std::pair<uint32_t, const Context *>, uint32_t, Hash>
      followOf;
  std::unordered_set<uint64_t> done;
};

} // namespace

/// Whether all ends together are worth a trie of what is beyond them: of many
/// ends, but not of most tokens.
static bool goOnBelowFew(const TokenTrie &trie,
                         std::span<const StateTokens::End> ends) {
  constexpr size_t fewEnds = 16, fewTokens = 8192;
  if (ends.size() <= fewEnds)
    return false;
  size_t tokens = 0;
  for (const StateTokens::End &end : ends)
    tokens += trie.valuesFrom(end.node + 1, trie.nodes()[end.node].end).size();
  return tokens <= fewTokens;
}

void Matcher::allowBeyond(const Place &place, const TextStep &step,
                          const TextPosition &position,
                          const StateTokens &tokens) {
  const Edge &edge = network.edges[place.edge];
  const Automaton &automaton = step.automaton();
  BeyondSearch search(network, follower, edge.target, place.context);
  if (search.isInVain())
    return;
  if (goOnBelowFew(vocabulary.tokens.trie, tokens.ends)) {
    const auto beyond = vocabulary.masks.find<TokensBeyond>(
        keyOf(automaton, place.state, MaskStore::Kind::Beyond),
        [&] { return findBeyond(vocabulary.tokens, tokens.ends); });
    return search.run(beyond->trie, 0, [&](uint32_t value) {
      const EndingToken &ending = beyond->tokens[value];
      if (step.mayEnd(position, ending, vocabulary.tokens.at(ending.token)))
        allow(ending.token);
    });
  }
  const TokenTrie &trie = vocabulary.tokens.trie;
  for (const StateTokens::End &end : tokens.ends) {
    const TokenTrie::Node &node = trie.nodes()[end.node];
    const uint32_t below = trie.valuesFrom(end.node + 1, node.end).front();
    if (step.mayEnd(position, {below, node.depth, end.characters},
                    vocabulary.tokens.at(below)))
      search.run(trie, end.node, [this](uint32_t token) { allow(token); });
  }
}
