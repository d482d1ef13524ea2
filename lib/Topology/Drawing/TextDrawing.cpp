//===- TextDrawing.cpp - Machines as lines of text ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summary.h"
#include "sandwich/Machine/Indexes.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Topology/Drawing/MachineDrawing.h"

#include <algorithm>
#include <map>

using namespace sandwich;

/// Trees of more lines are drawn with equal neighbours as one.
static constexpr size_t maxFullLines = 40;

/// Larger matrices do not fit a line.
static constexpr size_t maxShownDistances = 16;

namespace {

/// Nodes that are drawn as one: equal ones, `eachParent` from each parent.
struct Bundle {
  std::vector<const MachineNode *> nodes;
  size_t eachParent = 1;
};

class TreeText {
public:
  TreeText(const MachineNode &root, bool merge, bool colours)
      : merge(merge), colours(colours) {
    if (merge)
      (void)shapeOf(root);
    draw({{&root}, 1}, "");
  }

  std::string text;

private:
  /// The number of the shape of `node`: equal for nodes that are drawn alike.
  size_t shapeOf(const MachineNode &node) {
    std::string key = node.kind + " " + detailsOf(node);
    for (const MachineNode &child : node.children)
      key += " " + std::to_string(shapeOf(child));
    return shapes[&node] = numbers.emplace(key, numbers.size()).first->second;
  }

  void draw(Bundle bundle, const std::string &indent) {
    text += labelOf(bundle);
    std::vector<Bundle> below = childrenOf(bundle);
    // What is alone in its parent, and the CPUs of a core.
    while (below.size() == 1 &&
           (below[0].eachParent == 1 || below[0].nodes[0]->kind == "cpu")) {
      bundle = std::move(below[0]);
      text += ", " + labelOf(bundle);
      below = childrenOf(bundle);
    }
    text += '\n';
    for (size_t i = 0; i < below.size(); ++i) {
      bool last = i + 1 == below.size();
      text += paint(indent + (last ? "`- " : "|- "), "2");
      draw(below[i], indent + (last ? "   " : "|  "));
    }
  }

  std::vector<Bundle> childrenOf(const Bundle &bundle) {
    std::vector<Bundle> below;
    const std::vector<MachineNode> &first = bundle.nodes[0]->children;
    for (size_t i = 0; i < first.size();) {
      size_t end = i + 1;
      while (end < first.size() && alike(first[i], first[end]))
        ++end;
      Bundle &run = below.emplace_back();
      run.eachParent = end - i;
      // Equal nodes have equal children at the same places.
      for (const MachineNode *node : bundle.nodes)
        for (size_t child = i; child < end; ++child)
          run.nodes.push_back(&node->children[child]);
      i = end;
    }
    return below;
  }

  bool alike(const MachineNode &left, const MachineNode &right) const {
    if (left.kind == "cpu" && right.kind == "cpu")
      return true;
    return merge && shapes.at(&left) == shapes.at(&right);
  }

  std::string labelOf(const Bundle &bundle) const {
    const MachineNode &node = *bundle.nodes[0];
    bool cpus = node.kind == "cpu";
    std::string label;
    if (bundle.eachParent > 1 && !cpus)
      label = std::to_string(bundle.eachParent) + " x ";
    label += paint(node.kind, colourOf(node.kind));
    if (std::string indexes = indexesOf(bundle); !indexes.empty())
      label += " " + indexes;
    if (std::string details = detailsOf(node); !details.empty())
      label += " (" + details + ")";
    return label;
  }

  /// "0-3", or "0-1 to 6-7" for those in the first and in the last parent.
  static std::string indexesOf(const Bundle &bundle) {
    std::vector<int64_t> all;
    for (const MachineNode *node : bundle.nodes)
      if (node->index < 0)
        return "";
      else
        all.push_back(node->index);
    auto each = static_cast<ptrdiff_t>(bundle.eachParent);
    std::string first = formatIndexes({all.begin(), all.begin() + each});
    std::string last = formatIndexes({all.end() - each, all.end()});
    if (each == 1 && std::is_sorted(all.begin(), all.end()))
      return formatIndexes(all);
    return first == last ? first : first + " to " + last;
  }

  static const char *colourOf(const std::string &kind) {
    if (kind == "numa")
      return "32";
    if (kind == "core" || kind == "cpu")
      return "33";
    return kind[0] == 'l' ? "36" : "1";
  }

  std::string paint(const std::string &part, const char *colour) const {
    if (!colours)
      return part;
    return std::string("\033[") + colour + "m" + part + "\033[0m";
  }

  bool merge;
  bool colours;
  std::map<std::string, size_t> numbers;
  std::map<const MachineNode *, size_t> shapes;
};

} // namespace

static std::string drawTree(const MachineNode &root,
                            const TextDrawingOptions &options) {
  std::string text = TreeText(root, /*merge=*/false, options.colours).text;
  auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  if (options.full || lines <= maxFullLines)
    return text;
  return TreeText(root, /*merge=*/true, options.colours).text;
}

static std::string drawDistances(const NumaDistances &distances) {
  size_t count = distances.nodes.size();
  if (count < 2 || count > maxShownDistances)
    return "";
  auto column = [](const std::string &value) {
    return std::string(value.size() < 6 ? 6 - value.size() : 1, ' ') + value;
  };
  std::string text = "NUMA distances, 10 is a node's own memory:\n  from\\to";
  for (unsigned node : distances.nodes)
    text += column(std::to_string(node));
  text += '\n';
  for (size_t from = 0; from < count; ++from) {
    text += "  " + column(std::to_string(distances.nodes[from])) + " ";
    for (uint64_t value : distances.values[from])
      text += column(std::to_string(value));
    text += '\n';
  }
  return text;
}

std::string sandwich::drawText(const Machine &machine,
                               const TextDrawingOptions &options) {
  std::string text = machine.name;
  if (!machine.cpuModel.empty())
    text += ": " + machine.cpuModel;
  text +=
      "\n" + summaryOf(machine.root) + "\n" + drawTree(machine.root, options);
  for (const MachineNode &memory : machine.memories)
    text += "beside it: numa " + std::to_string(memory.index) + " (" +
            detailsOf(memory) + ")\n";
  text += drawDistances(machine.distances);
  for (const std::string &sentence : machine.leftOut)
    text += "left out: " + sentence + "\n";
  return text;
}
