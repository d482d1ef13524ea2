//===- TopoTree.h - A machine as a tree of equal parts ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The TopoTree of the Sandwich paper (section 4.1) and its two
/// transformations, group and remove (section 4.2). Every node of a level has
/// as many children as its neighbours (assumption A.1), so a tree is kept as
/// its list of levels; nodes and the CPUs below them are computed when asked
/// for. docs/RationaleTopoTree.md has the definitions.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_TREES_TOPOTREE_H
#define SANDWICH_TOPOLOGY_TREES_TOPOTREE_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sandwich {

/// 128 bits of XXH3 over a structure.
struct TopoHash {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const TopoHash &) const = default;
};

/// One of the machine's parts that a node stands for, as in `MachineNode`.
struct TopoFeature {
  std::string kind;
  /// Capacity of a cache or of a NUMA node's memory, else zero.
  uint64_t bytes = 0;
  bool operator==(const TopoFeature &) const = default;
};

/// All nodes at one depth.
struct TopoLevel {
  /// What each node stands for, outermost first: parts of the machine that are
  /// alone in their parent share its level. Empty for a level made by `group`.
  std::vector<TopoFeature> features;
  /// Children of each node one level up, asleep ones included.
  unsigned arity = 1;
  /// How far apart the children of one node are, in the order in which the
  /// level's nodes would stand if the group levels above them were not there.
  unsigned stride = 1;
  /// How many right-most children of each node one level up are asleep.
  unsigned removed = 0;

  bool isGroup() const { return features.empty(); }
  /// "machine", "package", "numa", "core", …: the feature people name such
  /// nodes by; "group" for a level made by `group`.
  std::string name() const;
  bool operator==(const TopoLevel &) const = default;
};

/// What a leaf is: a place for one thread.
enum class TopoLeaves {
  /// Every CPU, hardware threads of one core included, as in the paper.
  Cpus,
  /// The first CPU of every core.
  Cores,
};

/// A leaf: one CPU and the NUMA node it belongs to, by the operating system's
/// indexes.
struct TopoCpu {
  unsigned cpu = 0;
  unsigned numa = 0;
  bool operator==(const TopoCpu &) const = default;
};

/// A tree's value is its levels and the CPUs at its leaves. Trees are equal if
/// these are: the same nesting of the same CPUs, the same parts asleep, the
/// same features. The order of `group` calls leaves no trace.
class TopoTree {
public:
  /// The largest machine taken, in leaves.
  static constexpr unsigned maxLeaves = 32768;

  /// The fundamental TopoTree. Parts without CPUs are left out, parts alone in
  /// their parent share its level, so that on four Kunpeng 920 the depths are
  /// machine 0, package 1, NUMA node 2, core 3. NUMA nodes count as equal
  /// whatever their memory (the level has the least of it), caches do not.
  /// Errors: the machine is not symmetric, has no CPUs, more than `maxLeaves`,
  /// or two CPUs of one index.
  static Result<TopoTree> fromMachine(const MachineNode &symmetric,
                                      TopoLeaves leaves = TopoLeaves::Cpus);

  /// group(n, t, d): puts new nodes between depths `depth - 1` and `depth`,
  /// each over `size` of the nodes that were at `depth`. Below each parent the
  /// children are taken in blocks of `size * stride`; group j of a block gets
  /// its children j, j + stride, j + 2 * stride, … The new nodes are at
  /// `depth`, what was there one deeper. Errors: no such depth, `size` below
  /// 2, blocks that do not tile the children, one group that would hold them
  /// all, a tree with removed nodes.
  Result<TopoTree> group(unsigned size, unsigned stride, unsigned depth) const;

  /// remove(n, d): the `count` right-most awake children of each node at
  /// `depth - 1` fall asleep. Errors: no such depth, `count` is zero, no child
  /// would stay awake.
  Result<TopoTree> remove(unsigned count, unsigned depth) const;

  /// The tree without the groups and removals.
  TopoTree fundamental() const;

  /// Depth of the leaves; 0 for a machine of one CPU.
  unsigned depth() const { return levels.size() - 1; }
  /// The level at a depth of at most `depth()`; that of the root has arity 1.
  const TopoLevel &level(unsigned depth) const { return levels[depth]; }
  /// Nodes at a depth, asleep ones included.
  unsigned nodeCount(unsigned depth) const;
  /// Leaves, and leaves that are awake.
  unsigned leafCount() const { return cpus->size(); }
  unsigned awakeLeafCount() const;
  /// The leaves in the machine's order, which transformations do not change.
  const std::vector<TopoCpu> &leaves() const { return *cpus; }

  /// For each node at `depth`, the leaves below it as positions in `leaves()`,
  /// ascending. Nodes stand in the order of their first leaf. With `awakeOnly`
  /// the leaves that sleep are left out, and so is a node that has no others.
  std::vector<std::vector<unsigned>> leavesOfNodes(unsigned depth,
                                                   bool awakeOnly) const;

  /// The operations that make this tree of the fundamental one, in one order:
  /// "group(4,1,3) remove(1,4)"; empty for the fundamental tree.
  std::string derivation() const;
  /// "package x 4, numa x 2, group x 6, core x 3 of 4".
  std::string describe() const;

  /// Merkle hash: a level's hash covers its own value and the hash of the
  /// level below; one header stands for a level, as its subtrees are equal. At
  /// the bottom is a hash of all CPUs of the machine with their NUMA nodes.
  TopoHash hash() const { return subtreeHash(0); }
  /// The hash of a node at `depth` and what is below it, the same for all nodes
  /// there: their features and the levels below, but not how many siblings the
  /// nodes have; of the CPUs those of the whole machine, not of one node.
  TopoHash subtreeHash(unsigned depth) const;
  bool operator==(const TopoTree &other) const;

private:
  TopoTree() = default;
  Status checkDepth(unsigned depth) const;

  /// From the root, which is level 0.
  std::vector<TopoLevel> levels;
  std::shared_ptr<const std::vector<TopoCpu>> cpus;
  /// Of `cpus`.
  TopoHash cpusHash;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_TREES_TOPOTREE_H
