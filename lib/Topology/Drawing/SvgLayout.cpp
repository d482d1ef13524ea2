//===- SvgLayout.cpp - Where rectangles stand -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SvgLayout.h"

#include "Summary.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace sandwich;
using namespace sandwich::svg;

static constexpr double cellWidth = 62;
/// Of the fonts of cores and CPUs.
static constexpr double smallCharacterWidth = 5.7;
/// Width to height of what is drawn, where there is a choice.
static constexpr double wantedAspect = 1.7;

/// "64 x " for those that stand for many.
static std::string countOf(const Bundle &bundle) {
  return bundle.eachParent == 1 ? ""
                                : std::to_string(bundle.eachParent) + " x ";
}

std::string svg::labelOf(const Bundle &bundle) {
  // How many CPUs there are says the core.
  const std::string &kind = bundle.node().kind;
  const std::string indexes = indexesOf(bundle);
  return (kind == "cpu" ? "" : countOf(bundle)) + kind +
         (indexes.empty() ? "" : " " + indexes);
}

std::string svg::titleOf(const Bundle &bundle) {
  static const std::map<std::string, std::string> names = {
      {"machine", "Machine"}, {"package", "Package"}, {"die", "Die"},
      {"numa", "NUMA"},       {"l3", "L3"},           {"l2", "L2"},
      {"l1d", "L1d"},         {"group", "Group"}};
  const MachineNode &node = bundle.node();
  auto known = names.find(node.kind);
  std::string title =
      countOf(bundle) + (known == names.end() ? node.kind : known->second);
  if (std::string indexes = indexesOf(bundle); !indexes.empty())
    title += " " + indexes;
  if (std::string details = detailsOf(node); !details.empty())
    title += " \u00b7 " + details;
  return title;
}

std::string svg::coreLabelOf(const Box &box) {
  return labelOf({box.own.back().nodes, box.bundle.eachParent});
}

/// Chooses how many children stand in each row. All columns are as wide as
/// the widest child, so that equal machines look equal.
static void place(Box &box) {
  double widest = 0;
  double highest = 0;
  for (const Box &child : box.children) {
    widest = std::max(widest, child.width);
    highest = std::max(highest, child.height);
  }
  size_t count = box.children.size();
  size_t columns = 1;
  double best = INFINITY;
  for (size_t tried = 1; tried <= count; ++tried) {
    size_t rows = (count + tried - 1) / tried;
    double aspect = (static_cast<double>(tried) * (widest + gap)) /
                    (static_cast<double>(rows) * (highest + gap) + boxTitle);
    double empty =
        static_cast<double>(rows * tried - count) / static_cast<double>(count);
    double cost = std::abs(std::log(aspect / wantedAspect)) + 4 * empty;
    if (cost < best) {
      best = cost;
      columns = tried;
    }
  }
  double y = boxTitle;
  for (size_t i = 0; i < count; i += columns) {
    double rowHeight = 0;
    for (size_t j = i; j < std::min(count, i + columns); ++j) {
      Box &child = box.children[j];
      child.x = padding + static_cast<double>(j - i) * (widest + gap);
      child.y = y;
      rowHeight = std::max(rowHeight, child.height);
      box.width = std::max(box.width, child.x + child.width + padding);
    }
    y += rowHeight + gap;
  }
  box.height = y - gap + padding;
  double title =
      static_cast<double>(titleOf(box.bundle).size()) * characterWidth;
  box.width = std::max(box.width, title + 2 * padding);
}

Box svg::arrangeBoxes(const Bundle &bundle, const Bundles &bundles) {
  Box box;
  box.bundle = bundle;
  for (Bundle part = bundle;; part = bundles.childrenOf(part).front()) {
    const MachineNode &node = part.node();
    box.own.push_back(part);
    if (node.kind == "core")
      break;
    if (node.children.size() != 1 || node.kind == "machine" ||
        node.kind == "package" || node.kind == "numa") {
      box.own.clear();
      break;
    }
  }
  if (!box.own.empty()) {
    box.cpus = bundles.childrenOf(box.own.back());
    size_t longest = coreLabelOf(box).size();
    for (const Bundle &cpu : box.cpus)
      longest = std::max(longest, labelOf(cpu).size());
    box.width = std::max(
        cellWidth, static_cast<double>(longest) * smallCharacterWidth + 10);
    box.height =
        coreTitle + 4 +
        cpuHeight * static_cast<double>(std::max<size_t>(box.cpus.size(), 1));
    return box;
  }
  for (const Bundle &child : bundles.childrenOf(bundle))
    box.children.push_back(arrangeBoxes(child, bundles));
  place(box);
  return box;
}
