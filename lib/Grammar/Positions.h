//===- Positions.h - Where in a grammar a text may be -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A text may stand at several places of a grammar at once. Each is a state of
/// an edge's automaton and a stack of nodes at which calls go on. Stacks share
/// what they have in common, below and above, as in Tomita's graph-structured
/// stack (1987), so that their number does not grow with their depth.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_POSITIONS_H
#define SANDWICH_LIB_GRAMMAR_POSITIONS_H

#include "Network.h"
#include "StateTokens.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sandwich::grammar {

struct Context;
/// Null: in no rule.
using ContextPointer = std::shared_ptr<const Context>;

/// Where a call goes on.
struct Return {
  uint32_t node;
  ContextPointer context;
};

/// A call of a rule from one or more places.
struct Context {
  uint32_t depth;
  std::vector<Return> returns;
};

/// Inside of an edge.
struct Place {
  uint32_t edge;
  /// Of the edge's automaton.
  uint32_t state;
  /// The condition's: characters so far, or the state of the barred texts.
  uint32_t progress;
  ContextPointer context;
};

/// All that a text may be in.
struct Positions {
  std::vector<Place> places;
  /// Whether the text may end.
  bool mayEnd = false;
};

/// A state of an edge's text, and of its condition.
struct TextPosition {
  uint32_t state;
  uint32_t progress;
};

/// Steps along one edge of kind Text.
class TextStep {
public:
  TextStep(const Network &network, const Edge &edge);

  /// False where the text cannot go on with `byte`.
  bool operator()(TextPosition &position, uint8_t byte) const;

  const Automaton &automaton() const { return text; }
  TextPosition start() const { return {text.start(), 0}; }
  bool isConditional() const { return condition != nullptr; }

  /// Of a text at `position`, how many more characters may begin.
  uint32_t charactersLeft(const TextPosition &position) const;
  /// Whether the text at `position` may end in `ending`, a token that spells
  /// `bytes`, which the automaton allows.
  bool mayEnd(const TextPosition &position, const EndingToken &ending,
              std::string_view bytes) const;

private:
  const Automaton &text;
  const StringCondition *condition;
  const Automaton *barred;
  /// The state between two characters, where `condition` is.
  uint32_t between = Automaton::dead;
};

/// Follows edges that take no bytes. Used by one thread at a time.
class Follower {
public:
  /// `network` must outlive it.
  explicit Follower(const Network &network);

  /// Adds what begins at `node` within `context` to what `finish` returns.
  void add(uint32_t node, const ContextPointer &context);
  /// All that was added, and the follower is as new.
  Positions finish();

private:
  struct Call {
    uint32_t depth;
    std::shared_ptr<Context> context;
  };

  void expand(uint32_t node, const ContextPointer &context);
  void call(const Edge &edge, const ContextPointer &context);

  const Network &network;
  Positions positions;
  /// What was added, and how many of them are expanded.
  std::vector<Return> entries;
  std::vector<std::vector<Call>> callsOf; ///< by rule
  std::vector<uint32_t> calledRules;
  std::vector<uint32_t> visited; ///< by node: the last expansion
  std::vector<uint32_t> open;
  uint32_t expansion = 0;
};

/// What `positions` become with `byte`.
Positions advance(const Network &network, Follower &follower,
                  const Positions &positions, uint8_t byte);

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_POSITIONS_H
