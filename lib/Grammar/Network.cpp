//===- Network.cpp - The rules of a grammar -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Network.h"

#include <algorithm>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

size_t Network::bytes() const {
  size_t sum = sizeof(*this) + rules.size() * sizeof(uint32_t) +
               endsRule.size() * (1 + sizeof(uint32_t)) +
               edges.size() * sizeof(Edge) +
               conditions.size() * sizeof(StringCondition);
  for (const std::shared_ptr<const Automaton> &automaton : automata)
    sum += automaton->bytes();
  return sum;
}

void NetworkBuilder::use(Expression expression,
                         std::shared_ptr<const Automaton> automaton) {
  automatonOfExpression.emplace(static_cast<uint32_t>(expression),
                                static_cast<uint32_t>(network.automata.size()));
  network.automata.push_back(std::move(automaton));
}

uint32_t NetworkBuilder::addNode() {
  if (edges.size() == mostNodes) {
    tooLarge = true;
    return 0;
  }
  edges.emplace_back();
  network.endsRule.push_back(0);
  return static_cast<uint32_t>(edges.size() - 1);
}

void NetworkBuilder::add(uint32_t from, const Edge &edge) {
  if (edgeCount == mostEdges) {
    tooLarge = true;
    return;
  }
  ++edgeCount;
  edges[from].push_back(edge);
}

uint32_t NetworkBuilder::automatonOf(Expression text) {
  const auto [position, isNew] = automatonOfExpression.try_emplace(
      static_cast<uint32_t>(text),
      static_cast<uint32_t>(network.automata.size()));
  if (!isNew)
    return position->second;
  std::shared_ptr<const Automaton> automaton =
      Automaton::build(pool, text, available);
  if (automaton)
    automatonBytes += automaton->bytes();
  if (!automaton || automatonBytes > mostAutomatonBytes) {
    tooLarge = true;
    automatonOfExpression.erase(position);
    return 0;
  }
  network.automata.push_back(std::move(automaton));
  return position->second;
}

void NetworkBuilder::addText(uint32_t from, Expression text,
                             const StringCondition &condition, uint32_t to) {
  if (tooLarge)
    return;
  if (text == ExpressionPool::empty)
    return addEmpty(from, to);
  Edge edge{.kind = Edge::Kind::Text, .index = automatonOf(text), .target = to};
  if (condition != StringCondition()) {
    edge.condition = static_cast<uint32_t>(network.conditions.size());
    network.conditions.push_back(condition);
  }
  add(from, edge);
}

uint32_t NetworkBuilder::addRule(uint32_t first, uint32_t last) {
  network.rules.push_back(first);
  ends.push_back(last);
  return static_cast<uint32_t>(network.rules.size() - 1);
}

/// No number of calls completes the rest.
static constexpr uint32_t noHeight = std::numeric_limits<uint32_t>::max();

uint32_t NetworkBuilder::heightOf(const Edge &edge,
                                  const std::vector<uint32_t> &heights) const {
  if (edge.kind == Edge::Kind::Text &&
      network.automata[edge.index]->start() == Automaton::dead)
    return noHeight;
  uint32_t height = heights[edge.target];
  if (edge.kind == Edge::Kind::Rule) {
    const uint32_t inside = heights[network.rules[edge.index]];
    height = inside == noHeight ? noHeight : std::max(height, inside + 1);
  }
  return height <= network.mostDepth ? height : noHeight;
}

/// The least solution, from the ends of rules backwards, as Knuth (1977, "A
/// generalization of Dijkstra's algorithm") finds shortest derivations.
std::vector<uint32_t> NetworkBuilder::findHeights() const {
  const size_t count = edges.size();
  // Nodes with an edge to each node, or with a call of the rule that begins
  // there.
  std::vector<std::vector<uint32_t>> before(count);
  for (uint32_t node = 0; node < count; ++node)
    for (const Edge &edge : edges[node]) {
      before[edge.target].push_back(node);
      if (edge.kind == Edge::Kind::Rule)
        before[network.rules[edge.index]].push_back(node);
    }
  std::vector<uint32_t> heights(count, noHeight), work;
  auto improve = [&](uint32_t node, uint32_t height) {
    if (height >= heights[node])
      return;
    heights[node] = height;
    work.insert(work.end(), before[node].begin(), before[node].end());
  };
  improve(network.end, 0);
  for (uint32_t end : ends)
    improve(end, 0);
  while (!work.empty()) {
    const uint32_t node = work.back();
    work.pop_back();
    for (const Edge &edge : edges[node])
      improve(node, heightOf(edge, heights));
  }
  return heights;
}

Result<Network> NetworkBuilder::finish(uint32_t start, uint32_t end,
                                       uint32_t mostDepth) {
  if (tooLarge || pool.compileBudget().exhausted())
    return makeError(ErrorKind::InvalidArgument,
                     "the grammar is too large or too complex to compile");
  network.start = start;
  network.end = end;
  network.mostDepth = mostDepth;
  for (uint32_t each : ends)
    network.endsRule[each] = 1;
  const std::vector<uint32_t> heights = findHeights();
  if (heights[start] == noHeight)
    return makeError(ErrorKind::InvalidArgument,
                     "no text satisfies the grammar");
  network.firstEdges.push_back(0);
  for (const std::vector<Edge> &own : edges) {
    for (Edge edge : own) {
      edge.height = heightOf(edge, heights);
      if (edge.height != noHeight)
        network.edges.push_back(edge);
    }
    network.firstEdges.push_back(static_cast<uint32_t>(network.edges.size()));
  }
  return std::move(network);
}
