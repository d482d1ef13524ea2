//===- TopoTree.cpp - A machine as a tree of equal parts ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/TopoTree.h"

#include "sandwich/Topology/Trees/Hashing.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

using namespace sandwich;

std::string TopoLevel::name() const {
  static constexpr std::array order = {"machine", "core", "cpu",  "numa",
                                       "package", "die",  "group"};
  for (const char *kind : order)
    for (const TopoFeature &feature : features)
      if (feature.kind == kind)
        return kind;
  return features.empty() ? "group" : features.front().kind;
}

unsigned TopoTree::nodeCount(unsigned depth) const {
  unsigned count = 1;
  for (unsigned d = 1; d <= depth; ++d)
    count *= levels[d].arity;
  return count;
}

unsigned TopoTree::awakeLeafCount() const {
  unsigned count = 1;
  for (const TopoLevel &level : levels)
    count *= level.arity - level.removed;
  return count;
}

Status TopoTree::checkDepth(unsigned depth) const {
  if (depth >= 1 && depth <= this->depth())
    return {};
  if (this->depth() == 0)
    return makeError("there is no depth ", depth,
                     " to transform: the tree is one CPU");
  return makeError("there is no depth ", depth,
                   " to transform: depths are 1 to ", this->depth());
}

Result<TopoTree> TopoTree::group(unsigned size, unsigned stride,
                                 unsigned depth) const {
  std::ostringstream call;
  call << "group(" << size << "," << stride << "," << depth << ")";
  if (Status status = checkDepth(depth); !status)
    return status.error().inContext(call.str());
  for (const TopoLevel &level : levels)
    if (level.removed > 0)
      return makeError(call.str(), ": groups are made before anything is "
                                   "removed");
  unsigned arity = levels[depth].arity;
  if (size < 2 || stride < 1)
    return makeError(call.str(),
                     ": a group has at least 2 nodes, a stride is at least 1");
  if (size == arity)
    return makeError(call.str(), ": one group would hold all ", arity,
                     " children of a node");
  if (uint64_t{size} * stride > arity || arity % (size * stride) != 0)
    return makeError(call.str(), ": blocks of ", uint64_t{size} * stride,
                     " nodes do not tile the ", arity, " children of a node");
  TopoTree result = *this;
  TopoLevel above;
  above.arity = arity / size;
  above.stride = levels[depth].stride;
  TopoLevel &below = result.levels[depth];
  below.arity = size;
  // The children of one node were `below.stride` apart already.
  below.stride *= stride;
  result.levels.insert(result.levels.begin() + depth, std::move(above));
  return result;
}

Result<TopoTree> TopoTree::remove(unsigned count, unsigned depth) const {
  std::ostringstream call;
  call << "remove(" << count << "," << depth << ")";
  if (Status status = checkDepth(depth); !status)
    return status.error().inContext(call.str());
  unsigned awake = levels[depth].arity - levels[depth].removed;
  if (count == 0)
    return makeError(call.str(), ": nothing would be removed");
  if (count >= awake)
    return makeError(call.str(), ": only ", awake,
                     " children of a node are awake, and one must stay so");
  TopoTree result = *this;
  result.levels[depth].removed += count;
  return result;
}

TopoTree TopoTree::fundamental() const {
  TopoTree result = *this;
  result.levels.clear();
  unsigned arity = 1;
  for (const TopoLevel &level : levels) {
    arity *= level.arity;
    if (level.isGroup())
      continue;
    result.levels.push_back({level.features, arity});
    arity = 1;
  }
  return result;
}

std::vector<std::vector<unsigned>>
TopoTree::leavesOfNodes(unsigned depth, bool awakeOnly) const {
  // Nodes of one level of the machine, numbered as the machine has them, and
  // among the groups over them the number of the group.
  struct Node {
    unsigned machinePart;
    unsigned group;
    auto operator<=>(const Node &) const = default;
  };
  unsigned partsOfLevel = 1;
  auto children = [&](const std::vector<std::pair<Node, Node>> &nodes,
                      const TopoLevel &level) {
    std::vector<std::pair<Node, Node>> below;
    unsigned arity = awakeOnly ? level.arity - level.removed : level.arity;
    partsOfLevel *= level.arity;
    for (const auto &[origin, node] : nodes)
      for (unsigned child = 0; child < arity; ++child) {
        unsigned position =
            node.group / level.stride * (level.arity * level.stride) +
            child * level.stride + node.group % level.stride;
        Node next{node.machinePart, position};
        // The last level of a machine part's children: they are parts again.
        if (!level.isGroup())
          next = {node.machinePart * partsOfLevel + position, 0};
        below.push_back({origin, next});
      }
    if (!level.isGroup())
      partsOfLevel = 1;
    return below;
  };
  std::vector<std::pair<Node, Node>> nodes = {{{0, 0}, {0, 0}}};
  for (unsigned d = 1; d <= depth; ++d)
    nodes = children(nodes, levels[d]);
  for (auto &[origin, node] : nodes)
    origin = node;
  std::sort(nodes.begin(), nodes.end());
  for (unsigned d = depth + 1; d <= this->depth(); ++d)
    nodes = children(nodes, levels[d]);
  std::vector<std::vector<unsigned>> result;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || nodes[i].first != nodes[i - 1].first)
      result.emplace_back();
    result.back().push_back(nodes[i].second.machinePart);
  }
  for (std::vector<unsigned> &leaves : result)
    std::sort(leaves.begin(), leaves.end());
  return result;
}

std::string TopoTree::derivation() const {
  std::ostringstream text;
  const char *separator = "";
  // The deepest parts of the machine first, and among their groups the
  // innermost first, so that each group is made at its part's first depth.
  unsigned machineLevel =
      std::count_if(levels.begin() + 1, levels.end(),
                    [](const TopoLevel &level) { return !level.isGroup(); });
  for (unsigned d = depth(); d >= 1; --d) {
    if (levels[d - 1].isGroup()) {
      text << separator << "group(" << levels[d].arity << ","
           << levels[d].stride << "," << machineLevel << ")";
      separator = " ";
    } else {
      --machineLevel;
    }
  }
  for (unsigned d = 1; d <= depth(); ++d)
    if (levels[d].removed > 0) {
      text << separator << "remove(" << levels[d].removed << "," << d << ")";
      separator = " ";
    }
  return text.str();
}

std::string TopoTree::describe() const {
  if (depth() == 0)
    return "cpu x 1";
  std::ostringstream text;
  for (unsigned d = 1; d <= depth(); ++d) {
    const TopoLevel &level = levels[d];
    text << (d > 1 ? ", " : "") << level.name() << " x ";
    if (level.removed > 0)
      text << level.arity - level.removed << " of ";
    text << level.arity;
  }
  return text.str();
}

TopoHash TopoTree::subtreeHash(unsigned depth) const {
  TopoHash below = cpusHash;
  for (unsigned d = this->depth() + 1; d-- > depth;) {
    Hasher hasher;
    hasher.add(below.low);
    hasher.add(below.high);
    // How many children the nodes at `d` have is said at `d + 1`; how many
    // siblings the topmost has is not below it.
    if (d > depth) {
      hasher.add(levels[d].arity);
      hasher.add(levels[d].stride);
      hasher.add(levels[d].removed);
    }
    hasher.add(levels[d].features.size());
    for (const TopoFeature &feature : levels[d].features) {
      hasher.add(feature.kind);
      hasher.add(feature.bytes);
    }
    below = hasher.finish();
  }
  return below;
}

bool TopoTree::operator==(const TopoTree &other) const {
  return levels == other.levels && (cpus == other.cpus || *cpus == *other.cpus);
}

//===----------------------------------------------------------------------===//
// From the machine
//===----------------------------------------------------------------------===//

static bool hasCpus(const MachineNode &node) {
  return node.kind == "cpu" ||
         std::any_of(node.children.begin(), node.children.end(), hasCpus);
}

/// `node` without the parts that hold no CPUs, and with one CPU a core if
/// leaves are cores.
static MachineNode withCpus(const MachineNode &node, TopoLeaves leaves) {
  MachineNode result;
  result.kind = node.kind;
  result.index = node.index;
  result.bytes = node.bytes;
  for (const MachineNode &child : node.children)
    if (hasCpus(child)) {
      result.children.push_back(withCpus(child, leaves));
      if (node.kind == "core" && leaves == TopoLeaves::Cores)
        break;
    }
  return result;
}

static std::string describe(const MachineNode &node) {
  return node.index < 0 ? "a " + node.kind
                        : node.kind + " " + std::to_string(node.index);
}

/// Refuses two nodes of one depth that no symmetric tree can hold.
static Status checkAlike(const MachineNode &first, const MachineNode &other) {
  if (other.kind != first.kind)
    return makeError("the machine is not symmetric: ", describe(other),
                     " stands beside ", describe(first));
  if (other.children.size() != first.children.size())
    return makeError("the machine is not symmetric: ", describe(other), " has ",
                     other.children.size(), " parts, ", describe(first),
                     " has ", first.children.size());
  // Firmware and the kernel keep some of the first node's memory.
  if (other.bytes != first.bytes && other.kind != "numa")
    return makeError("the machine is not symmetric: ", describe(other), " of ",
                     other.bytes, " bytes stands beside one of ", first.bytes);
  return {};
}

/// Appends the CPUs below `node` in order. Errors: a CPU without an index.
static Status collectCpus(const MachineNode &node, unsigned numa,
                          std::vector<TopoCpu> &cpus) {
  if (node.kind == "numa" && node.index >= 0)
    numa = static_cast<unsigned>(node.index);
  if (node.kind == "cpu") {
    if (node.index < 0)
      return makeError("a CPU of the machine has no index");
    if (cpus.size() == TopoTree::maxLeaves)
      return makeError("the machine has more than ", TopoTree::maxLeaves,
                       " CPUs");
    cpus.push_back({static_cast<unsigned>(node.index), numa});
  }
  for (const MachineNode &child : node.children)
    SANDWICH_RETURN_IF_ERROR(collectCpus(child, numa, cpus));
  return {};
}

Result<TopoTree> TopoTree::fromMachine(const MachineNode &symmetric,
                                       TopoLeaves leaves) {
  if (!hasCpus(symmetric))
    return makeError("the machine has no CPUs");
  MachineNode machine = withCpus(symmetric, leaves);
  TopoTree tree;
  std::vector<TopoCpu> found;
  SANDWICH_RETURN_IF_ERROR(collectCpus(machine, 0, found));
  std::map<unsigned, unsigned> times;
  for (const TopoCpu &cpu : found)
    if (++times[cpu.cpu] > 1)
      return makeError("the machine has CPU ", cpu.cpu, " twice");

  tree.levels.emplace_back();
  std::vector<const MachineNode *> nodes = {&machine};
  while (!nodes.empty()) {
    const MachineNode &first = *nodes.front();
    uint64_t bytes = first.bytes;
    std::vector<const MachineNode *> below;
    for (const MachineNode *node : nodes) {
      SANDWICH_RETURN_IF_ERROR(checkAlike(first, *node));
      bytes = std::min(bytes, node->bytes);
      for (const MachineNode &child : node->children)
        below.push_back(&child);
    }
    tree.levels.back().features.push_back({first.kind, bytes});
    if (first.children.size() > 1) {
      tree.levels.emplace_back();
      tree.levels.back().arity = first.children.size();
    }
    nodes = std::move(below);
  }
  Hasher hasher;
  for (const TopoCpu &cpu : found) {
    hasher.add(cpu.cpu);
    hasher.add(cpu.numa);
  }
  tree.cpusHash = hasher.finish();
  tree.cpus = std::make_shared<const std::vector<TopoCpu>>(std::move(found));
  return tree;
}
