//===- GroupGraph.cpp - Every way to group siblings -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupGraph.h"

#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Topology/Trees/SiblingTiling.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>

using namespace sandwich;

/// Beyond these, which tilings reach which takes 32 MB, and walking their edges
/// many seconds. 16,384 siblings have as many.
static constexpr size_t maxTilings = size_t{1} << 14;

std::vector<unsigned> sandwich::divisorsOf(unsigned number) {
  std::vector<unsigned> divisors;
  for (unsigned d = 1; d <= number; ++d)
    if (number % d == 0)
      divisors.push_back(d);
  return divisors;
}

std::vector<unsigned> sandwich::groupSizes(unsigned arity, GroupSizes sizes) {
  std::vector<unsigned> result;
  for (unsigned size : divisorsOf(arity))
    if (size >= 2 && (sizes == GroupSizes::Any || size == arity ||
                      std::has_single_bit(size)))
      result.push_back(size);
  return result;
}

static bool isAllowed(unsigned size, unsigned stride, unsigned count,
                      ScatteredGroups scattered) {
  return stride == 1 || stride == count / size ||
         scattered == ScatteredGroups::All ||
         (scattered == ScatteredGroups::PowersOfTwo &&
          std::has_single_bit(size));
}

uint32_t GroupGraph::addTiling(unsigned groupCount) {
  if (groupCount == 1)
    wholeTiling = tilingCount();
  groupCounts.push_back(groupCount);
  return tilingCount() - 1;
}

void GroupGraph::close() {
  distances.assign(tilingCount(), tilingCount());
  lastEdges.assign(tilingCount(), 0);
  firstEdges.assign(tilingCount(), 0);
  distances[0] = 0;
  for (uint32_t number = 0; number < edgeList.size(); ++number) {
    const Edge &edge = edgeList[number];
    if (number == 0 || edgeList[number - 1].from != edge.from)
      firstEdges[edge.from] = number;
    if (distances[edge.from] + 1 >= distances[edge.to])
      continue;
    distances[edge.to] = distances[edge.from] + 1;
    lastEdges[edge.to] = number;
  }
  wordsPerTiling = (tilingCount() + 63) / 64;
  reach.assign(wordsPerTiling * tilingCount(), 0);
  for (uint32_t tiling = 0; tiling < tilingCount(); ++tiling)
    reach[tiling * wordsPerTiling + tiling / 64] |= uint64_t{1} << tiling % 64;
  // Backwards, what an edge leads to is complete when the edge is met.
  for (auto edge = edgeList.rbegin(); edge != edgeList.rend(); ++edge)
    for (size_t word = 0; word < wordsPerTiling; ++word)
      reach[edge->from * wordsPerTiling + word] |=
          reach[edge->to * wordsPerTiling + word];
}

Result<GroupGraph> GroupGraph::make(unsigned arity, GroupSizes sizes,
                                    ScatteredGroups scattered,
                                    const std::function<bool()> &interrupted) {
  GroupGraph graph;
  std::map<SiblingTiling, uint32_t> known;
  // Tilings whose edges are still to come, those of most groups first.
  std::map<unsigned, std::vector<std::pair<uint32_t, SiblingTiling>>,
           std::greater<>>
      open;
  auto intern = [&](const SiblingTiling &tiling) {
    auto [entry, isNew] = known.try_emplace(tiling, graph.tilingCount());
    if (isNew) {
      unsigned count = tiling.groupCount();
      graph.addTiling(count);
      open[count].emplace_back(entry->second, tiling);
    }
    return entry->second;
  };
  intern(SiblingTiling(arity));
  while (!open.empty()) {
    auto [count, tilings] = std::move(*open.begin());
    open.erase(open.begin());
    for (const auto &[from, tiling] : tilings) {
      if (interrupted && interrupted())
        return makeError("interrupted");
      for (unsigned size : groupSizes(count, sizes))
        for (unsigned stride : divisorsOf(count / size)) {
          if (!isAllowed(size, stride, count, scattered))
            continue;
          std::optional<SiblingTiling> grouped = tiling.grouped(size, stride);
          if (!grouped)
            continue;
          uint32_t to = intern(*grouped);
          if (graph.tilingCount() > maxTilings)
            return makeError("there are too many ways to group ", arity,
                             " equal parts");
          graph.edgeList.push_back({from, to, static_cast<uint16_t>(size),
                                    static_cast<uint16_t>(stride)});
        }
    }
  }
  graph.close();
  return graph;
}

GroupGraph GroupGraph::makeChain(
    unsigned arity, const std::vector<std::pair<unsigned, unsigned>> &levels) {
  GroupGraph graph;
  uint32_t from = graph.addTiling(arity);
  for (auto [size, stride] : levels) {
    uint32_t to = graph.addTiling(graph.groupCount(from) / size);
    graph.edgeList.push_back(
        {from, to, static_cast<uint16_t>(size), static_cast<uint16_t>(stride)});
    from = to;
  }
  graph.close();
  return graph;
}

uint64_t GroupGraph::countTrees() const {
  constexpr uint64_t tooMany = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> paths(tilingCount(), 0);
  paths[0] = 1;
  for (const Edge &edge : edgeList)
    paths[edge.to] =
        checkedAdd(paths[edge.to], paths[edge.from]).value_or(tooMany);
  return paths[wholeTiling];
}

/// `value(block, child, place)` for each of `count` groups of which `edge`
/// makes groups: by block, and in it by child and by which of the block's
/// groups has it. Tables are several times faster than dividing each number.
template <typename Value>
static std::vector<uint16_t> tabulate(const GroupGraph::Edge &edge,
                                      unsigned count, const Value &value) {
  std::vector<uint16_t> table;
  table.reserve(count);
  for (unsigned block = 0; table.size() < count; ++block)
    for (unsigned child = 0; child < edge.size; ++child)
      for (unsigned place = 0; place < edge.stride; ++place)
        table.push_back(value(block, child, place));
  return table;
}

std::vector<uint16_t> GroupGraph::groupsOf(uint32_t tiling) const {
  std::vector<const Edge *> groupings;
  for (uint32_t at = tiling; at != 0; at = groupings.back()->from)
    groupings.push_back(&edgeList[lastEdges[at]]);
  std::vector<uint16_t> groups(arity());
  std::iota(groups.begin(), groups.end(), uint16_t{0});
  for (auto edge = groupings.rbegin(); edge != groupings.rend(); ++edge) {
    const std::vector<uint16_t> made =
        tabulate(**edge, groupCount((*edge)->from),
                 [&](unsigned block, unsigned, unsigned place) {
                   return block * (*edge)->stride + place;
                 });
    for (uint16_t &group : groups)
      group = made[group];
  }
  return groups;
}

std::vector<uint16_t> GroupGraph::childrenOf(const Edge &edge) const {
  std::vector<uint16_t> children = groupsOf(edge.from);
  const std::vector<uint16_t> made =
      tabulate(edge, groupCount(edge.from),
               [](unsigned, unsigned child, unsigned) { return child; });
  for (uint16_t &child : children)
    child = made[child];
  return children;
}

unsigned GroupGraph::distance(uint32_t from, uint32_t to) const {
  if (from == to)
    return 0;
  if (from == 0)
    return distances[to];
  // Most are one grouping apart, and paths take all edges to find.
  for (size_t edge = firstEdges[from];
       edge < edgeList.size() && edgeList[edge].from == from; ++edge)
    if (edgeList[edge].to == to)
      return 1;
  return path(from, to).size();
}

std::vector<uint32_t> GroupGraph::path(uint32_t from, uint32_t to) const {
  // The fewest edges from `from` and the last of them, tiling by tiling.
  constexpr uint32_t none = ~uint32_t{0};
  std::vector<uint32_t> lengths(tilingCount(), none), last(tilingCount(), none);
  lengths[from] = 0;
  for (uint32_t number = 0; number < edgeList.size(); ++number) {
    const Edge &edge = edgeList[number];
    if (lengths[edge.from] == none ||
        lengths[edge.from] + 1 >= lengths[edge.to])
      continue;
    lengths[edge.to] = lengths[edge.from] + 1;
    last[edge.to] = number;
  }
  std::vector<uint32_t> edges;
  for (; to != from; to = edgeList[last[to]].from)
    edges.push_back(last[to]);
  std::reverse(edges.begin(), edges.end());
  return edges;
}
