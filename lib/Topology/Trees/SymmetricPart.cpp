//===- SymmetricPart.cpp - What is the same everywhere --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/SymmetricPart.h"

#include "sandwich/Machine/Indexes.h"
#include "sandwich/Support/ByteSize.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace sandwich;

namespace {

/// A node on paths of one class.
struct Place {
  const MachineNode *node;
  /// Its parent, in the level above.
  size_t parent = 0;
};

/// The paths from the root to the CPUs that name the same kinds and lead
/// through cores of the same speed.
struct PathClass {
  std::vector<std::string> kinds;
  double speed = 1;
  /// [level][node], the root's level first.
  std::vector<std::vector<Place>> levels;
};

/// A symmetric part of one class.
struct Shape {
  /// [level] Children of each node, for all levels but the CPUs'.
  std::vector<size_t> arity;
  size_t cores = 0;
  size_t cpus = 0;
  /// [level][node] Whether it has the children that the shape asks for.
  std::vector<std::vector<bool>> fits;
};

/// Tries every shape of a class that may be the largest.
class ShapeSearch {
public:
  explicit ShapeSearch(const PathClass &paths) : paths(paths) {
    current.arity.resize(paths.levels.size() - 1);
    for (const std::vector<Place> &level : paths.levels)
      current.fits.emplace_back(level.size(), true);
  }

  Shape run() {
    choose(paths.levels.size() - 1, 1, 1);
    return best;
  }

private:
  /// Chooses the arity of the level above `level`, of whose nodes those in
  /// `current.fits` hold `cores` cores and `cpus` CPUs each.
  void choose(size_t level, size_t cores, size_t cpus) {
    const std::vector<bool> &fits = current.fits[level];
    auto nodes =
        static_cast<size_t>(std::count(fits.begin(), fits.end(), true));
    if (std::pair(nodes * cores, nodes * cpus) <=
        std::pair(best.cores, best.cpus))
      return;
    if (level == 0) {
      current.cores = cores;
      current.cpus = cpus;
      best = current;
      return;
    }
    std::vector<size_t> counts(paths.levels[level - 1].size(), 0);
    for (size_t i = 0; i < fits.size(); ++i)
      counts[paths.levels[level][i].parent] += fits[i];
    std::set<size_t, std::greater<>> arities(counts.begin(), counts.end());
    for (size_t arity : arities) {
      if (arity == 0)
        break;
      current.arity[level - 1] = arity;
      for (size_t i = 0; i < counts.size(); ++i)
        current.fits[level - 1][i] = counts[i] >= arity;
      // The CPUs of a core are one core.
      bool inCore = paths.kinds[level - 1] == "core";
      choose(level - 1, inCore ? cores : cores * arity, cpus * arity);
    }
  }

  const PathClass &paths;
  Shape current;
  Shape best;
};

} // namespace

static void collectCpus(const MachineNode &node, std::vector<int64_t> &cpus) {
  if (node.kind == "cpu")
    cpus.push_back(node.index);
  for (const MachineNode &child : node.children)
    collectCpus(child, cpus);
}

static std::string countOf(size_t count, const std::string &kind) {
  return std::to_string(count) + " " + kind + (count == 1 ? "" : "s");
}

/// "core 7 (CPU 7)", "packages 1-3 (CPUs 8-19)", "2 l3s (CPUs 4-7)".
static std::string describe(const std::vector<const MachineNode *> &nodes) {
  std::vector<int64_t> indexes;
  std::vector<int64_t> cpus;
  for (const MachineNode *node : nodes) {
    if (node->index >= 0)
      indexes.push_back(node->index);
    collectCpus(*node, cpus);
  }
  const std::string &kind = nodes[0]->kind;
  if (kind == "cpu")
    return formatCpus(cpus);
  bool unique = std::set(indexes.begin(), indexes.end()).size() == nodes.size();
  std::string name = countOf(nodes.size(), kind);
  if (unique)
    name = kind + (nodes.size() == 1 ? " " : "s ") + formatIndexes(indexes);
  return name + " (" + formatCpus(cpus) + ")";
}

namespace {

using Classes =
    std::map<std::pair<std::vector<std::string>, double>, PathClass>;

/// Sorts the paths of a machine into classes.
class PathCollector {
public:
  Classes classes;

  void visit(const MachineNode &node, double speed) {
    if (node.kind == "core")
      speed = node.speed;
    path.push_back(&node);
    kinds.push_back(node.kind);
    if (node.kind == "cpu")
      add(speed);
    for (const MachineNode &child : node.children)
      visit(child, speed);
    path.pop_back();
    kinds.pop_back();
  }

private:
  void add(double speed) {
    PathClass &paths = classes[{kinds, speed}];
    paths.kinds = kinds;
    paths.speed = speed;
    paths.levels.resize(path.size());
    for (size_t i = 0; i < path.size(); ++i) {
      std::vector<Place> &level = paths.levels[i];
      if (level.empty() || level.back().node != path[i])
        level.push_back({path[i], i > 0 ? paths.levels[i - 1].size() - 1 : 0});
    }
  }

  std::vector<const MachineNode *> path;
  std::vector<std::string> kinds;
};

/// Takes the chosen shape out of the machine, and says what remains behind.
class Extractor {
public:
  Extractor(const PathClass &paths, const Shape &shape)
      : paths(paths), shape(shape) {
    for (size_t level = 0; level < paths.levels.size(); ++level)
      for (size_t i = 0; i < paths.levels[level].size(); ++i)
        fitting[paths.levels[level][i].node] = shape.fits[level][i];
  }

  SymmetricPart run() {
    SymmetricPart part;
    part.root = take(*paths.levels[0][0].node, 0);
    for (const auto &[reason, nodes] : dropped)
      part.leftOut.push_back(describe(nodes) + ": " + reason);
    std::vector<MachineNode *> level = {&part.root};
    while (!level.empty()) {
      equalize(level, part.leftOut);
      std::vector<MachineNode *> below;
      for (MachineNode *node : level)
        for (MachineNode &child : node->children)
          below.push_back(&child);
      level = std::move(below);
    }
    return part;
  }

private:
  MachineNode take(const MachineNode &node, size_t level) {
    MachineNode copy = node;
    copy.children.clear();
    for (const MachineNode &child : node.children) {
      auto found = fitting.find(&child);
      bool fits = found != fitting.end() && found->second;
      if (fits && copy.children.size() < shape.arity[level])
        copy.children.push_back(take(child, level + 1));
      else
        drop(child, level, found != fitting.end(), fits);
    }
    return copy;
  }

  /// Notes why `node`, a child of a kept node at `level`, is not kept:
  /// `onPath` if it has paths of the class, `fits` if enough of them.
  void drop(const MachineNode &node, size_t level, bool onPath, bool fits) {
    std::vector<int64_t> cpus;
    collectCpus(node, cpus);
    // Nothing runs on it.
    if (cpus.empty())
      return;
    std::string reason;
    if (fits) {
      reason = "each " + paths.kinds[level] + " used has " +
               countOf(shape.arity[level], paths.kinds[level + 1]);
    } else if (onPath) {
      size_t complete = 0;
      for (const MachineNode &child : node.children)
        if (auto found = fitting.find(&child); found != fitting.end())
          complete += found->second;
      bool all = complete == node.children.size();
      reason = (all ? "only " : "only as much as ") +
               countOf(complete, paths.kinds[level + 2]) + ", each " +
               paths.kinds[level + 1] + " used has " +
               std::to_string(shape.arity[level + 1]);
    } else {
      dropOffPath(node);
      return;
    }
    add(reason, node);
  }

  void add(const std::string &reason, const MachineNode &node) {
    auto same = [&](const auto &entry) {
      return entry.first == reason && entry.second[0]->kind == node.kind;
    };
    auto entry = std::find_if(dropped.begin(), dropped.end(), same);
    if (entry == dropped.end())
      dropped.push_back({reason, {&node}});
    else
      entry->second.push_back(&node);
  }

  /// Notes of each core in `node` why its path is not like those used.
  void dropOffPath(const MachineNode &node) {
    if (node.kind == "core" || node.kind == "cpu") {
      add(reasonOffPath(node), node);
      return;
    }
    for (const MachineNode &child : node.children)
      dropOffPath(child);
  }

  std::string reasonOffPath(const MachineNode &core) const {
    std::string used = std::to_string(shape.cores);
    if (core.speed < paths.speed)
      return "slower, as efficiency cores are, than the " + used +
             " cores used";
    if (core.speed > paths.speed)
      return "faster than the " + used + " cores used, which do more together";
    std::string kinds;
    for (size_t level = 1; level + 1 < paths.kinds.size(); ++level)
      kinds += (level > 1 ? ", " : "") + paths.kinds[level];
    return "built unlike the " + used + " cores used, which lie in " + kinds;
  }

  /// Gives all nodes of a level the least that one of them has.
  static void equalize(const std::vector<MachineNode *> &level,
                       std::vector<std::string> &notes) {
    MachineNode least = *level[0];
    uint64_t most = 0;
    for (const MachineNode *node : level) {
      most = std::max(most, node->bytes);
      least.bytes = std::min(least.bytes, node->bytes);
      least.bandwidth = std::min(least.bandwidth, node->bandwidth);
      least.latency = std::max(least.latency, node->latency);
    }
    // Banks of the same size differ by what the firmware keeps.
    const uint64_t tolerated = least.kind == "numa" ? most / 10 : 0;
    if (most - least.bytes > tolerated) {
      std::string from = formatBytes(least.bytes), to = formatBytes(most);
      if (from == to) {
        from = std::to_string(least.bytes);
        to = std::to_string(most) + " bytes";
      }
      notes.push_back(least.kind + "s hold " + from + " to " + to +
                      ": each counts as " + from);
    }
    for (MachineNode *node : level)
      std::tie(node->bytes, node->bandwidth, node->latency) =
          std::tie(least.bytes, least.bandwidth, least.latency);
  }

  const PathClass &paths;
  const Shape &shape;
  std::map<const MachineNode *, bool> fitting;
  std::vector<std::pair<std::string, std::vector<const MachineNode *>>> dropped;
};

} // namespace

Result<SymmetricPart>
sandwich::largestSymmetricPart(const MachineNode &machine) {
  PathCollector collector;
  collector.visit(machine, /*speed=*/1);
  const PathClass *bestPaths = nullptr;
  Shape best;
  auto rank = [](const PathClass &paths, const Shape &shape) {
    return std::tuple(static_cast<double>(shape.cores) * paths.speed,
                      paths.speed, shape.cpus);
  };
  for (const auto &[key, paths] : collector.classes) {
    Shape shape = ShapeSearch(paths).run();
    if (!bestPaths || rank(paths, shape) > rank(*bestPaths, best)) {
      bestPaths = &paths;
      best = std::move(shape);
    }
  }
  if (!bestPaths)
    return makeError("the machine has no CPU");
  return Extractor(*bestPaths, best).run();
}

//===----------------------------------------------------------------------===//
// Reserved cores
//===----------------------------------------------------------------------===//

/// How many children the nodes of each level above the cores have.
static std::vector<size_t> aritiesOf(const MachineNode &symmetric) {
  std::vector<size_t> arities;
  for (const MachineNode *node = &symmetric;
       node->kind != "core" && !node->children.empty();
       node = &node->children.front())
    arities.push_back(node->children.size());
  return arities;
}

namespace {

/// Children that the nodes of each level keep, and the cores that remain.
struct KeptShape {
  std::vector<size_t> kept;
  size_t cores = 0;
};

/// Finds shapes that keep at most so many cores.
class ReservedShapes {
public:
  ReservedShapes(const std::vector<size_t> &arities, size_t mostCores)
      : arities(arities), mostCores(mostCores), current(arities),
        ofLevel(arities.size()), ofMultiple(std::size(multiples)) {
    choose(0, 1);
  }

  /// The most cores first.
  std::vector<KeptShape> all() const {
    std::vector<KeptShape> shapes = {most};
    for (const auto *group : {&ofLevel, &ofMultiple})
      for (const KeptShape &shape : *group)
        if (shape.cores * 2 >= most.cores &&
            std::ranges::find(shapes, shape.kept, &KeptShape::kept) ==
                shapes.end())
          shapes.push_back(shape);
    std::ranges::stable_sort(shapes, std::ranges::greater(), &KeptShape::cores);
    return shapes;
  }

  /// The best for a machine whose parts nobody compares.
  const KeptShape &usual() const {
    constexpr size_t share = 16;
    const KeptShape &even = ofMultiple.back();
    return even.cores * share >= most.cores * (share - 1) ? even : most;
  }

private:
  static constexpr size_t multiples[] = {2, 4, 8, 16};

  /// Chooses for `level` and all below it, where `nodes` remain above.
  void choose(size_t level, size_t nodes) {
    if (level == arities.size()) {
      if (nodes <= mostCores)
        consider(nodes);
      return;
    }
    for (size_t arity = arities[level]; arity > 0; --arity) {
      current[level] = arity;
      choose(level + 1, nodes * arity);
    }
  }

  void consider(size_t cores) {
    // What keeps more parts at the top comes first.
    const auto offer = [&](KeptShape &best) {
      if (cores > best.cores)
        best = {current, cores};
    };
    offer(most);
    size_t changes = 0, last = 0, common = 0;
    for (size_t level = 0; level < arities.size(); ++level)
      if (current[level] < arities[level]) {
        ++changes;
        last = level;
        common = std::gcd(common, current[level]);
      }
    if (changes == 1)
      offer(ofLevel[last]);
    for (size_t i = 0; i < std::size(multiples); ++i)
      if (common % multiples[i] == 0)
        offer(ofMultiple[i]);
  }

  const std::vector<size_t> &arities;
  const size_t mostCores;
  std::vector<size_t> current;
  KeptShape most;
  /// By the only level that gives cores, and by `multiples`.
  std::vector<KeptShape> ofLevel, ofMultiple;
};

} // namespace

static void collectCores(const MachineNode &node,
                         std::vector<const MachineNode *> &cores) {
  if (node.kind == "core")
    cores.push_back(&node);
  for (const MachineNode &child : node.children)
    collectCores(child, cores);
}

/// `node` with the last `kept[level]` children of each node from `level` on;
/// adds the cores of the others to `taken`.
static MachineNode keepLast(const MachineNode &node,
                            const std::vector<size_t> &kept, size_t level,
                            std::vector<const MachineNode *> &taken) {
  if (level == kept.size())
    return node;
  MachineNode copy = node;
  copy.children.clear();
  const size_t first = node.children.size() - kept[level];
  for (size_t i = 0; i < node.children.size(); ++i)
    if (i < first)
      collectCores(node.children[i], taken);
    else
      copy.children.push_back(
          keepLast(node.children[i], kept, level + 1, taken));
  return copy;
}

Result<std::vector<SymmetricPart>>
sandwich::partsWithReservedCores(const MachineNode &machine,
                                 const SymmetricPart &part, uint64_t cores) {
  const uint64_t all = countParts(machine, "core");
  if (cores >= all)
    return makeError("cannot reserve ", cores, " of ", all,
                     all == 1 ? " core" : " cores",
                     ": at least one must remain for the model");
  if (cores == 0)
    return std::vector{part};
  const uint64_t used = countParts(part.root, "core");
  const std::string asked = countOf(cores, "core") + " reserved";
  if (all - used >= cores) {
    SymmetricPart whole = part;
    whole.leftOut.push_back(asked + ": of those that plans leave out anyway");
    return std::vector{std::move(whole)};
  }
  const std::vector<size_t> arities = aritiesOf(part.root);
  const ReservedShapes shapes(arities, all - cores);
  std::vector<SymmetricPart> parts;
  for (const KeptShape &shape :
       used > maxComparedCores ? std::vector{shapes.usual()} : shapes.all()) {
    std::vector<const MachineNode *> taken;
    SymmetricPart &rest = parts.emplace_back();
    rest.root = keepLast(part.root, shape.kept, 0, taken);
    rest.leftOut = part.leftOut;
    rest.leftOut.push_back(describe(taken) + ": " + asked +
                           (all - shape.cores > cores
                                ? ", and others for all parts to stay alike"
                                : ""));
  }
  return parts;
}
