//===- Positions.cpp - Where in a grammar a text may be -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Positions.h"

#include <algorithm>

using namespace sandwich::grammar;

//===----------------------------------------------------------------------===//
// TextStep
//===----------------------------------------------------------------------===//

TextStep::TextStep(const Network &network, const Edge &edge)
    : text(*network.automata[edge.index]),
      condition(edge.condition == Edge::unconditional
                    ? nullptr
                    : &network.conditions[edge.condition]),
      barred(condition && condition->barred
                 ? network.automata[*condition->barred].get()
                 : nullptr) {
  if (condition)
    between = stateBetweenCharacters(text);
}

bool TextStep::operator()(TextPosition &position, uint8_t byte) const {
  const uint32_t last = position.state;
  position.state = text.step(last, byte);
  if (position.state == Automaton::dead)
    return false;
  if (!condition)
    return true;
  const bool goesOn = text.isOpen(position.state);
  if (barred) {
    if (last == text.start())
      position.progress = barred->start();
    else if (goesOn)
      position.progress = barred->step(position.progress, byte);
    return goesOn || !barred->isAccepting(position.progress);
  }
  if (!goesOn)
    return position.progress >= condition->least;
  if (last == between)
    ++position.progress;
  return position.progress <= condition->most;
}

uint32_t TextStep::charactersLeft(const TextPosition &position) const {
  return condition ? condition->most - position.progress
                   : ExpressionPool::unlimited;
}

bool TextStep::mayEnd(const TextPosition &position, const EndingToken &ending,
                      std::string_view bytes) const {
  if (!condition)
    return true;
  if (!barred) {
    const uint64_t characters = uint64_t(position.progress) + ending.characters;
    return characters >= condition->least && characters <= condition->most;
  }
  // A text that already differs from all that are barred goes on to.
  if (position.state != text.start() && position.progress == Automaton::dead)
    return true;
  TextPosition end = position;
  return std::ranges::all_of(bytes.substr(0, ending.length), [&](char byte) {
    return (*this)(end, static_cast<uint8_t>(byte));
  });
}

//===----------------------------------------------------------------------===//
// Follower
//===----------------------------------------------------------------------===//

Follower::Follower(const Network &network)
    : network(network), callsOf(network.rules.size()),
      visited(network.endsRule.size(), 0) {}

void Follower::add(uint32_t node, const ContextPointer &context) {
  const bool isKnown = std::ranges::any_of(entries, [&](const Return &entry) {
    return entry.node == node && entry.context == context;
  });
  if (!isKnown)
    entries.push_back({node, context});
}

/// Calls of the same rule at the same depth are one, with several returns.
void Follower::call(const Edge &edge, const ContextPointer &context) {
  const uint32_t depth = (context ? context->depth : 0) + 1;
  std::vector<Call> &calls = callsOf[edge.index];
  if (calls.empty())
    calledRules.push_back(edge.index);
  auto known = std::ranges::find(calls, depth, &Call::depth);
  if (known == calls.end()) {
    auto called = std::make_shared<Context>();
    called->depth = depth;
    entries.push_back({network.rules[edge.index], called});
    calls.push_back({depth, std::move(called)});
    known = calls.end() - 1;
  }
  std::vector<Return> &returns = known->context->returns;
  const bool isKnown = std::ranges::any_of(returns, [&](const Return &entry) {
    return entry.node == edge.target && entry.context == context;
  });
  if (!isKnown)
    returns.push_back({edge.target, context});
}

void Follower::expand(uint32_t first, const ContextPointer &context) {
  const uint32_t depth = context ? context->depth : 0;
  ++expansion;
  visited[first] = expansion;
  open.assign(1, first);
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (node == network.end && !context)
      positions.mayEnd = true;
    if (network.endsRule[node] && context)
      for (const Return &entry : context->returns)
        add(entry.node, entry.context);
    for (const Edge &edge : network.edgesOf(node)) {
      // What could not be completed within the depth is not begun.
      if (depth + edge.height > network.mostDepth)
        continue;
      switch (edge.kind) {
      case Edge::Kind::Empty:
        if (visited[edge.target] != expansion) {
          visited[edge.target] = expansion;
          open.push_back(edge.target);
        }
        break;
      case Edge::Kind::Rule:
        call(edge, context);
        break;
      case Edge::Kind::Text:
      case Edge::Kind::Token: {
        const auto index = static_cast<uint32_t>(&edge - network.edges.data());
        if (edge.kind == Edge::Kind::Token) {
          positions.places.push_back({index, 0, 0, context});
          break;
        }
        const Automaton &text = *network.automata[edge.index];
        positions.places.push_back({index, text.start(), 0, context});
        if (text.isAccepting(text.start()))
          add(edge.target, context);
        break;
      }
      }
    }
  }
}

Positions Follower::finish() {
  for (size_t i = 0; i < entries.size(); ++i) {
    const Return entry = entries[i];
    expand(entry.node, entry.context);
  }
  entries.clear();
  for (uint32_t rule : calledRules)
    callsOf[rule].clear();
  calledRules.clear();
  return std::exchange(positions, {});
}

Positions sandwich::grammar::advance(const Network &network, Follower &follower,
                                     const Positions &positions, uint8_t byte) {
  std::vector<Place> kept;
  for (const Place &place : positions.places) {
    const Edge &edge = network.edges[place.edge];
    if (edge.kind != Edge::Kind::Text)
      continue;
    const TextStep step(network, edge);
    TextPosition position{place.state, place.progress};
    if (!step(position, byte))
      continue;
    if (step.automaton().isAccepting(position.state))
      follower.add(edge.target, place.context);
    if (step.automaton().isOpen(position.state))
      kept.push_back(
          {place.edge, position.state, position.progress, place.context});
  }
  Positions next = follower.finish();
  next.places.insert(next.places.end(), std::make_move_iterator(kept.begin()),
                     std::make_move_iterator(kept.end()));
  return next;
}
