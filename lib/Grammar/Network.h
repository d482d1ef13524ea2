//===- Network.h - The rules of a grammar -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A grammar as a recursive transition network (Woods 1970): each rule is an
/// automaton whose edges are texts, calls of rules, and single tokens. Where a
/// text is stands in stacks of nodes, which `Matcher` keeps.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_NETWORK_H
#define SANDWICH_LIB_GRAMMAR_NETWORK_H

#include "Automaton.h"

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace sandwich::grammar {

/// What a JSON string keeps to beside its automaton, which is that of all JSON
/// strings. So all strings of all grammars share one automaton, and what has
/// been computed for it.
struct StringCondition {
  /// Characters.
  uint32_t least = 0;
  uint32_t most = ExpressionPool::unlimited;
  /// The number of an automaton of texts that the string, as it is written
  /// between its quotes, must not be; only without other conditions.
  std::optional<uint32_t> barred = std::nullopt;

  bool operator==(const StringCondition &) const = default;
};

struct Edge {
  enum class Kind : uint8_t {
    Empty,
    Text,  ///< `index` is an automaton; that of JSON strings if a condition is
    Rule,  ///< `index` is a rule
    Token, ///< `index` is a token
  };
  static constexpr uint32_t unconditional =
      std::numeric_limits<uint32_t>::max();

  Kind kind;
  uint32_t index = 0;
  /// Of `Network::conditions`.
  uint32_t condition = unconditional;
  uint32_t target = 0;
  /// Calls in each other that the rest of the rule needs at least.
  uint32_t height = 0;
};

/// The rules of a grammar, immutable. From each of its nodes the text can be
/// completed.
struct Network {
  /// Where the text begins, and where it may end.
  uint32_t start = 0, end = 0;
  /// Of each rule, its first node.
  std::vector<uint32_t> rules;
  /// Whether a rule ends at a node.
  std::vector<uint8_t> endsRule;
  /// The edges of node i begin at `firstEdges[i]`.
  std::vector<uint32_t> firstEdges;
  std::vector<Edge> edges;
  std::vector<std::shared_ptr<const Automaton>> automata;
  std::vector<StringCondition> conditions;
  /// No more rules are called in each other.
  uint32_t mostDepth = 0;

  std::span<const Edge> edgesOf(uint32_t node) const {
    return std::span(edges).subspan(firstEdges[node],
                                    firstEdges[node + 1] - firstEdges[node]);
  }
  size_t bytes() const;
};

/// Collects a network's nodes and edges.
class NetworkBuilder {
public:
  /// A grammar of more nodes or edges is refused.
  static constexpr size_t mostNodes = 65536;
  static constexpr size_t mostEdges = 131072;
  /// The bytes of all automata.
  static constexpr size_t mostAutomatonBytes = size_t(16) << 20;

  /// Texts consist of `available` bytes.
  NetworkBuilder(ExpressionPool &pool, const ByteSet &available)
      : pool(pool), available(available) {}

  /// Takes `automaton` for the texts of `expression`.
  void use(Expression expression, std::shared_ptr<const Automaton> automaton);

  uint32_t addNode();
  void addEmpty(uint32_t from, uint32_t to) {
    add(from, {.kind = Edge::Kind::Empty, .target = to});
  }
  void addText(uint32_t from, Expression text, uint32_t to) {
    addText(from, text, {}, to);
  }
  void addText(uint32_t from, Expression text, const StringCondition &condition,
               uint32_t to);
  void addCall(uint32_t from, uint32_t rule, uint32_t to) {
    add(from, {.kind = Edge::Kind::Rule, .index = rule, .target = to});
  }
  void addToken(uint32_t from, uint32_t token, uint32_t to) {
    add(from, {.kind = Edge::Kind::Token, .index = token, .target = to});
  }

  /// Whether the grammar is too large already, so that all else is in vain.
  bool isFull() const { return tooLarge || pool.compileBudget().exhausted(); }

  /// The number of a new rule from `first` to `last`.
  uint32_t addRule(uint32_t first, uint32_t last);

  /// The number of the automaton of `text`.
  uint32_t automatonOf(Expression text);

  /// The network of texts from `start` to `end`. Errors (`InvalidArgument`): it
  /// is too large, or there are none.
  Result<Network> finish(uint32_t start, uint32_t end, uint32_t mostDepth);

private:
  void add(uint32_t from, const Edge &edge);
  /// Of each node, the calls in each other that the rest of its rule needs.
  std::vector<uint32_t> findHeights() const;
  uint32_t heightOf(const Edge &edge,
                    const std::vector<uint32_t> &heights) const;

  ExpressionPool &pool;
  ByteSet available;
  Network network;
  std::vector<std::vector<Edge>> edges;
  std::vector<uint32_t> ends; ///< of rules
  std::unordered_map<uint32_t, uint32_t> automatonOfExpression;
  size_t edgeCount = 0, automatonBytes = 0;
  bool tooLarge = false;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_NETWORK_H
