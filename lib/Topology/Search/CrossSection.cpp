//===- CrossSection.cpp - A cut shared by many trees ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CrossSection.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <bit>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// The space
//===----------------------------------------------------------------------===//

/// (size, stride) of the groups over each level of the machine in `tree`,
/// innermost first; the last is what the topmost nodes of the level leave.
static std::vector<std::vector<std::pair<unsigned, unsigned>>>
groupsOfLevels(const TopoTree &tree) {
  std::vector<std::vector<std::pair<unsigned, unsigned>>> result;
  std::vector<std::pair<unsigned, unsigned>> groups;
  for (unsigned depth = 1; depth <= tree.depth(); ++depth) {
    const TopoLevel &level = tree.level(depth);
    groups.insert(groups.begin(), {level.arity, level.stride});
    if (!level.isGroup())
      result.push_back(std::exchange(groups, {}));
  }
  return result;
}

/// Every way to group the `arity` parts at `depth`, or, if these are too many,
/// fewer, of which `notes` tells.
static Result<GroupGraph> makeGraph(unsigned arity, unsigned depth,
                                    GroupSizes sizes,
                                    const std::function<bool()> &interrupted,
                                    std::vector<std::string> &notes) {
  Result<GroupGraph> graph =
      GroupGraph::make(arity, sizes, ScatteredGroups::All, interrupted);
  for (auto [scattered, which] :
       {std::pair(ScatteredGroups::PowersOfTwo,
                  ", but other sizes than powers of two"),
        std::pair(ScatteredGroups::None, "")}) {
    if (graph || (interrupted && interrupted()))
      break;
    std::string reason = graph.error().message;
    graph = GroupGraph::make(arity, sizes, scattered, interrupted);
    if (graph)
      notes.push_back(reason + "; at depth " + std::to_string(depth) +
                      " groups are tried that have neighbours or are spread "
                      "evenly" +
                      which);
  }
  return graph;
}

Result<SearchSpace>
SearchSpace::make(const TopoTree &tree, GroupSizes sizes, bool keepGroups,
                  const std::function<bool()> &interrupted) {
  SearchSpace space(tree.fundamental());
  for (unsigned depth = 1; depth <= tree.depth(); ++depth)
    if (tree.level(depth).removed > 0 ||
        (tree.level(depth).isGroup() && !keepGroups))
      return makeError("the tree is transformed already: ", tree.derivation());
  auto groups = groupsOfLevels(tree);
  size_t words = 0;
  for (unsigned depth = 1; depth <= space.depth(); ++depth) {
    unsigned arity = space.fundamental.level(depth).arity;
    if (keepGroups) {
      space.machineLevels.push_back(
          {GroupGraph::makeChain(arity, groups[depth - 1]), words});
    } else {
      SANDWICH_ASSIGN_OR_RETURN(
          GroupGraph graph,
          makeGraph(arity, depth, sizes, interrupted, space.notes));
      space.treeCount = checkedMultiply(space.treeCount, graph.countTrees())
                            .value_or(~uint64_t{0});
      space.machineLevels.push_back({std::move(graph), words});
    }
    words += (arity + 63) / 64;
  }
  return space;
}

unsigned SearchSpace::partsAbove(unsigned level) const {
  unsigned parts = 1;
  for (unsigned above = 0; above < level; ++above)
    parts *= machineLevels[above].graph.arity();
  return parts;
}

AwakeMask SearchSpace::allAwake() const {
  AwakeMask mask;
  for (const Level &level : machineLevels) {
    unsigned arity = level.graph.arity();
    mask.resize(level.firstWord + (arity + 63) / 64);
    for (unsigned position = 0; position < arity; ++position)
      mask[level.firstWord + position / 64] |= uint64_t{1} << position % 64;
  }
  return mask;
}

std::vector<uint16_t> SearchSpace::childrenOf(const Removal &removal) const {
  const GroupGraph &graph = machineLevels[removal.level].graph;
  return graph.childrenOf(graph.edges()[removal.edge]);
}

void SearchSpace::apply(const Removal &removal,
                        const std::vector<uint16_t> &children,
                        AwakeMask &mask) const {
  const auto &[graph, firstWord] = machineLevels[removal.level];
  const GroupGraph::Edge &edge = graph.edges()[removal.edge];
  unsigned awake = edge.size - removal.count;
  for (unsigned position = 0; position < graph.arity(); ++position)
    if (children[position] >= awake)
      mask[firstWord + position / 64] &= ~(uint64_t{1} << position % 64);
}

template <typename Step, typename Edge, typename Cut>
void SearchSpace::walk(unsigned level, unsigned cutLevel, uint32_t tiling,
                       const std::vector<Removal> &removals, const Step &step,
                       const Edge &edge, const Cut &cut) const {
  const GroupGraph &graph = machineLevels[level].graph;
  uint32_t current = 0;
  for (const Removal &removal : removals)
    if (removal.level == level) {
      step(current, graph.edges()[removal.edge].from);
      edge(removal.edge);
      current = graph.edges()[removal.edge].to;
    }
  if (level == cutLevel) {
    step(current, tiling);
    current = tiling;
    cut();
  }
  step(current, graph.whole());
}

unsigned
SearchSpace::transformations(unsigned cutLevel, uint32_t tiling,
                             const std::vector<Removal> &removals) const {
  unsigned number = removals.size();
  for (unsigned level = 0; level < machineLevels.size(); ++level) {
    const GroupGraph &graph = machineLevels[level].graph;
    unsigned groupings = 0;
    walk(
        level, cutLevel, tiling, removals,
        [&](uint32_t from, uint32_t to) {
          groupings += graph.distance(from, to);
        },
        [&](uint32_t) { ++groupings; }, [] {});
    // The last one makes the whole, which is the machine's own.
    number += std::max(groupings, 1U) - 1;
  }
  return number;
}

std::pair<TopoTree, unsigned>
SearchSpace::tree(unsigned cutLevel, uint32_t tiling,
                  const std::vector<Removal> &removals) const {
  TopoTree result = fundamental;
  // For each level the groupings, innermost first.
  std::vector<std::vector<uint32_t>> paths(machineLevels.size());
  // How many of them are below the cross-section, if it is at that level.
  size_t belowCut = 0;
  for (unsigned level = machineLevels.size(); level-- > 0;) {
    const GroupGraph &graph = machineLevels[level].graph;
    std::vector<uint32_t> &path = paths[level];
    walk(
        level, cutLevel, tiling, removals,
        [&](uint32_t from, uint32_t to) {
          std::vector<uint32_t> edges = graph.path(from, to);
          path.insert(path.end(), edges.begin(), edges.end());
        },
        [&](uint32_t edge) { path.push_back(edge); },
        [&] { belowCut = path.size(); });
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const GroupGraph::Edge &edge = graph.edges()[path[i]];
      // Edges of the graph tile, so this cannot fail.
      result = *result.group(edge.size, edge.stride, level + 1);
    }
  }
  unsigned depth = 0, cutDepth = 0;
  for (unsigned level = 0; level < machineLevels.size(); ++level) {
    depth += paths[level].size();
    if (level == cutLevel)
      cutDepth = depth - belowCut;
    for (const Removal &removal : removals)
      if (removal.level == level) {
        auto at =
            std::find(paths[level].begin(), paths[level].end(), removal.edge);
        auto inner = static_cast<unsigned>(at - paths[level].begin());
        result = *result.remove(removal.count, depth - inner);
      }
  }
  return {std::move(result), cutDepth};
}

bool SearchSpace::fit(const std::vector<Removal> &removals,
                      const Removal &added) const {
  const GroupGraph &graph = machineLevels[added.level].graph;
  const GroupGraph::Edge &edge = graph.edges()[added.edge];
  return std::all_of(
      removals.begin(), removals.end(), [&](const Removal &removal) {
        if (removal.level != added.level)
          return true;
        const GroupGraph::Edge &other = graph.edges()[removal.edge];
        return graph.reaches(edge.to, other.from) ||
               graph.reaches(other.to, edge.from);
      });
}

//===----------------------------------------------------------------------===//
// Cross-sections
//===----------------------------------------------------------------------===//

std::vector<CrossSection> sandwich::crossSections(const SearchSpace &space) {
  if (space.levels().empty())
    return {{0, 0}};
  std::vector<CrossSection> result = {{0, space.levels()[0].graph.whole()}};
  for (unsigned level = 0; level < space.levels().size(); ++level) {
    const GroupGraph &graph = space.levels()[level].graph;
    size_t first = result.size();
    // Cutting where all siblings are one is cutting one level up.
    for (uint32_t tiling = 0; tiling < graph.tilingCount(); ++tiling)
      if (tiling != graph.whole())
        result.push_back({level, tiling});
    std::stable_sort(result.begin() + first, result.end(),
                     [&](const CrossSection &a, const CrossSection &b) {
                       return graph.distance(a.tiling) <
                              graph.distance(b.tiling);
                     });
  }
  return result;
}

unsigned CrossSection::processes(const SearchSpace &space) const {
  return space.levels().empty()
             ? 1U
             : space.partsAbove(level) *
                   space.levels()[level].graph.groupCount(tiling);
}

/// Calls `visit(process, leaf)` for each leaf of `mask` in order.
template <typename Visit>
static void forEachLeaf(const SearchSpace &space, const CrossSection &cut,
                        const AwakeMask &mask, const Visit &visit) {
  if (space.levels().empty()) {
    visit(0, 0);
    return;
  }
  auto forEachAwake = [&](unsigned level, const auto &use) {
    const auto &[graph, firstWord] = space.levels()[level];
    for (size_t word = 0; word < (graph.arity() + 63) / 64; ++word)
      for (uint64_t bits = mask[firstWord + word]; bits; bits &= bits - 1)
        use(static_cast<unsigned>(word * 64 + std::countr_zero(bits)));
  };
  // Awake leaves below one part at `level`, counted from its first leaf.
  std::vector<unsigned> below = {0};
  unsigned leavesBelow = 1;
  for (unsigned deeper = space.levels().size(); --deeper > cut.level;) {
    std::vector<unsigned> next;
    forEachAwake(deeper, [&](unsigned position) {
      for (unsigned leaf : below)
        next.push_back(position * leavesBelow + leaf);
    });
    below = std::move(next);
    leavesBelow *= space.levels()[deeper].graph.arity();
  }
  const GroupGraph &graph = space.levels()[cut.level].graph;
  const std::vector<uint16_t> groupOf = graph.groupsOf(cut.tiling);
  unsigned groups = graph.groupCount(cut.tiling);
  unsigned parts = space.partsAbove(cut.level);
  for (unsigned part = 0; part < parts; ++part)
    forEachAwake(cut.level, [&](unsigned position) {
      unsigned process = part * groups + groupOf[position];
      unsigned first = (part * graph.arity() + position) * leavesBelow;
      for (unsigned leaf : below)
        visit(process, first + leaf);
    });
}

std::vector<std::vector<unsigned>>
CrossSection::numa(const SearchSpace &space) const {
  std::vector<std::vector<unsigned>> nodes(processes(space));
  forEachLeaf(space, *this, space.allAwake(),
              [&](unsigned process, unsigned leaf) {
                unsigned numa = space.leaves()[leaf].numa;
                if (nodes[process].empty() || nodes[process].back() != numa)
                  nodes[process].push_back(numa);
              });
  for (std::vector<unsigned> &list : nodes) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return nodes;
}

unsigned CrossSection::coresOfProcess(const SearchSpace &space,
                                      const AwakeMask &mask) const {
  unsigned cores = 1;
  for (unsigned deeper = level; deeper < space.levels().size(); ++deeper) {
    const auto &[graph, firstWord] = space.levels()[deeper];
    unsigned awake = 0;
    for (size_t word = 0; word < (graph.arity() + 63) / 64; ++word)
      awake += std::popcount(mask[firstWord + word]);
    cores *= deeper == level ? awake / graph.groupCount(tiling) : awake;
  }
  return cores;
}

void CrossSection::cores(const SearchSpace &space, const AwakeMask &mask,
                         std::vector<std::vector<unsigned>> &lists) const {
  lists.resize(processes(space));
  for (std::vector<unsigned> &list : lists)
    list.clear();
  forEachLeaf(space, *this, mask, [&](unsigned process, unsigned leaf) {
    lists[process].push_back(space.leaves()[leaf].cpu);
  });
}

bool CrossSection::isAbove(const SearchSpace &space,
                           const Removal &removal) const {
  if (removal.level != level)
    return removal.level > level;
  const GroupGraph &graph = space.levels()[level].graph;
  return graph.reaches(graph.edges()[removal.edge].to, tiling);
}
