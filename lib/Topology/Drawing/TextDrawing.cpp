//===- TextDrawing.cpp - Machines as lines of text ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"
#include "Summary.h"
#include "sandwich/Topology/Drawing/MachineDrawing.h"

#include <algorithm>

using namespace sandwich;

/// Trees of more lines are drawn with equal neighbours as one.
static constexpr size_t maxFullLines = 40;

/// Larger matrices do not fit a line.
static constexpr size_t maxShownDistances = 16;

namespace {

class TreeText {
public:
  TreeText(const MachineNode &root, bool merge, bool colours)
      : bundles(root,
                merge ? Bundles::Merge::Neighbours : Bundles::Merge::Cpus),
        colours(colours) {
    draw({{&root}, 1}, "");
  }

  std::string text;

private:
  void draw(Bundle bundle, const std::string &indent) {
    text += labelOf(bundle);
    std::vector<Bundle> below = bundles.childrenOf(bundle);
    // What is alone in its parent, and the CPUs of a core.
    while (below.size() == 1 &&
           (below[0].eachParent == 1 || below[0].node().kind == "cpu")) {
      bundle = std::move(below[0]);
      text += ", " + labelOf(bundle);
      below = bundles.childrenOf(bundle);
    }
    text += '\n';
    for (size_t i = 0; i < below.size(); ++i) {
      bool last = i + 1 == below.size();
      text += paint(indent + (last ? "`- " : "|- "), "2");
      draw(below[i], indent + (last ? "   " : "|  "));
    }
  }

  std::string labelOf(const Bundle &bundle) const {
    const MachineNode &node = bundle.node();
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

  Bundles bundles;
  bool colours;
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
