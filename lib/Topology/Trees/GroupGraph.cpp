//===- GroupGraph.cpp - Every way to group siblings -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/GroupGraph.h"

#include "sandwich/Topology/Trees/Hashing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

using namespace sandwich;

/// Beyond these the tables take hundreds of megabytes.
static constexpr size_t maxTilings = size_t{1} << 14;
/// Enough for all groups of powers of two of 8,192 siblings.
static constexpr size_t maxTableEntries = size_t{1} << 26;

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

template <typename Leave>
Status GroupGraph::build(unsigned arity, const Leave &leave,
                         const std::function<bool()> &interrupted) {
  siblings = arity;
  // Tilings whose edges are still to come, those of most groups first.
  std::map<unsigned, std::vector<uint32_t>, std::greater<>> open;
  std::unordered_multimap<TopoHash, uint32_t, TopoHashOfHash> byHash;
  // The tiling made of `map`, which gives each position its group.
  auto intern = [&](const std::vector<uint16_t> &map, unsigned count) {
    XXH128_hash_t hash =
        XXH3_128bits(map.data(), map.size() * sizeof(map.front()));
    TopoHash key{hash.low64, hash.high64};
    auto [begin, end] = byHash.equal_range(key);
    for (auto it = begin; it != end; ++it)
      if (std::equal(map.begin(), map.end(),
                     groups.begin() + size_t{it->second} * siblings))
        return it->second;
    uint32_t tiling = tilingCount();
    byHash.emplace(key, tiling);
    groupCounts.push_back(count);
    groups.insert(groups.end(), map.begin(), map.end());
    open[count].push_back(tiling);
    return tiling;
  };
  std::vector<uint16_t> map(arity);
  for (unsigned position = 0; position < arity; ++position)
    map[position] = position;
  intern(map, arity);
  while (!open.empty()) {
    auto [count, tilings] = std::move(*open.begin());
    open.erase(open.begin());
    for (uint32_t from : tilings) {
      if (interrupted && interrupted())
        return makeError("interrupted");
      if (count == 1)
        wholeTiling = from;
      for (auto [size, stride] : leave(from)) {
        for (unsigned position = 0; position < arity; ++position) {
          unsigned group = groupOf(from, position);
          map[position] = group / (size * stride) * stride + group % stride;
        }
        uint32_t to = intern(map, count / size);
        if (tilingCount() > maxTilings || groups.size() > maxTableEntries)
          return makeError("there are too many ways to group ", arity,
                           " equal parts");
        edgeList.push_back({from, to, static_cast<uint16_t>(size),
                            static_cast<uint16_t>(stride)});
      }
    }
  }
  close();
  return {};
}

void GroupGraph::close() {
  distances.assign(tilingCount(), tilingCount());
  distances[0] = 0;
  for (const Edge &edge : edgeList)
    distances[edge.to] = std::min(distances[edge.to], distances[edge.from] + 1);
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
                                    const std::function<bool()> &interrupted) {
  GroupGraph graph;
  auto leave = [&](uint32_t tiling) {
    std::vector<std::pair<unsigned, unsigned>> groupings;
    unsigned count = graph.groupCount(tiling);
    for (unsigned size : groupSizes(count, sizes))
      for (unsigned stride : divisorsOf(count / size))
        groupings.emplace_back(size, stride);
    return groupings;
  };
  SANDWICH_RETURN_IF_ERROR(graph.build(arity, leave, interrupted));
  return graph;
}

GroupGraph GroupGraph::makeChain(
    unsigned arity, const std::vector<std::pair<unsigned, unsigned>> &levels) {
  GroupGraph graph;
  // One path is never too many tilings.
  (void)graph.build(arity, [&](uint32_t tiling) {
    std::vector<std::pair<unsigned, unsigned>> grouping;
    if (tiling < levels.size())
      grouping.push_back(levels[tiling]);
    return grouping;
  });
  return graph;
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
