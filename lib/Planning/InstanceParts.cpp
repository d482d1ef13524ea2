//===- InstanceParts.cpp - Parts that serve a model by themselves ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InstanceParts.h"

#include <algorithm>
#include <set>
#include <string_view>

using namespace sandwich;

std::vector<std::vector<unsigned>>
InstanceParts::move(const std::vector<std::vector<unsigned>> &ranks,
                    size_t part) const {
  std::vector<std::vector<unsigned>> moved = ranks;
  for (std::vector<unsigned> &rank : moved)
    for (unsigned &cpu : rank)
      cpu = cpus[part].at(cpu).cpu;
  return moved;
}

ServiceConfiguration
InstanceParts::move(const ServiceConfiguration &configuration,
                    size_t part) const {
  ServiceConfiguration moved;
  moved.prefillCores = move(configuration.prefillCores, part);
  moved.decodeCores = move(configuration.decodeCores, part);
  for (const std::vector<unsigned> &rank : configuration.prefillCores) {
    std::set<unsigned> nodes;
    for (unsigned cpu : rank)
      nodes.insert(cpus[part].at(cpu).numa);
    moved.numa.emplace_back(nodes.begin(), nodes.end());
  }
  return moved;
}

/// The first node of `kind`, or null.
static const MachineNode *findFirst(const MachineNode &node,
                                    std::string_view kind) {
  if (node.kind == kind)
    return &node;
  for (const MachineNode &child : node.children)
    if (const MachineNode *found = findFirst(child, kind))
      return found;
  return nullptr;
}

/// Whether a level of nodes can have an instance on each; what it is called.
static const TopoFeature *findInstanceFeature(const TopoLevel &level) {
  auto found = std::ranges::find_if(level.features, [](const auto &feature) {
    return feature.kind == "package" || feature.kind == "numa";
  });
  return found == level.features.end() ? nullptr : &*found;
}

Result<std::vector<InstanceParts>>
sandwich::findInstanceParts(const TopoTree &tree, const MachineNode &symmetric,
                            TopoLeaves leaves) {
  std::vector<InstanceParts> levels;
  for (unsigned depth = 1; depth <= tree.depth(); ++depth) {
    const TopoFeature *feature = findInstanceFeature(tree.level(depth));
    if (!feature || tree.nodeCount(depth) < 2)
      continue;
    const MachineNode *first = findFirst(symmetric, feature->kind);
    SANDWICH_ASSIGN_OR_RETURN(TopoTree part,
                              TopoTree::fromMachine(*first, leaves));
    InstanceParts parts{.kind = feature->kind, .tree = std::move(part)};
    const auto nodes = tree.leavesOfNodes(depth, /*awakeOnly=*/false);
    for (const std::vector<unsigned> &node : nodes) {
      std::unordered_map<unsigned, TopoCpu> &cpus = parts.cpus.emplace_back();
      for (size_t i = 0; i < node.size(); ++i)
        cpus[tree.leaves()[nodes.front()[i]].cpu] = tree.leaves()[node[i]];
    }
    levels.push_back(std::move(parts));
  }
  return levels;
}
