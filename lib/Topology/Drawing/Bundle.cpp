//===- Bundle.cpp - Equal parts that are drawn once -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"

#include "Summary.h"
#include "sandwich/Machine/Indexes.h"

#include <algorithm>

using namespace sandwich;

/// What is longer than half a line: "0,16,32,...,1008".
static std::string shorten(const std::string &indexes) {
  constexpr size_t longest = 40;
  if (indexes.size() <= longest)
    return indexes;
  size_t end = 0;
  for (int shown = 0; shown < 3 && end != std::string::npos; ++shown)
    end = indexes.find(',', end + 1);
  const size_t last = indexes.rfind(',');
  if (end == std::string::npos || end == last)
    return indexes;
  return indexes.substr(0, end) + ",..." + indexes.substr(last);
}

std::string sandwich::indexesOf(const Bundle &bundle) {
  std::vector<int64_t> all;
  for (const MachineNode *node : bundle.nodes)
    if (node->index < 0)
      return "";
    else
      all.push_back(node->index);
  auto each = static_cast<ptrdiff_t>(bundle.eachParent);
  if (each == 1 && std::is_sorted(all.begin(), all.end()))
    return shorten(formatIndexes(all));
  std::string first = shorten(formatIndexes({all.begin(), all.begin() + each}));
  std::string last = shorten(formatIndexes({all.end() - each, all.end()}));
  return first == last ? first : first + " to " + last;
}

Bundles::Bundles(
    const MachineNode &root, Merge merge,
    const std::function<std::string(const MachineNode &cpu)> &stateOf)
    : merge(merge) {
  std::map<std::string, size_t> numbers;
  if (merge == Merge::Neighbours || merge == Merge::Siblings)
    addShapes(root, stateOf, numbers);
}

size_t Bundles::addShapes(
    const MachineNode &node,
    const std::function<std::string(const MachineNode &cpu)> &stateOf,
    std::map<std::string, size_t> &numbers) {
  std::string key = node.kind + " " + detailsOf(node);
  if (stateOf && node.kind == "cpu")
    key += " " + stateOf(node);
  for (const MachineNode &child : node.children)
    key += " " + std::to_string(addShapes(child, stateOf, numbers));
  return shapes[&node] = numbers.emplace(key, numbers.size()).first->second;
}

bool Bundles::areAlike(const MachineNode &left,
                       const MachineNode &right) const {
  if (merge == Merge::Nothing)
    return false;
  if (left.kind == "cpu" && right.kind == "cpu")
    return true;
  return merge == Merge::Neighbours && shapes.at(&left) == shapes.at(&right);
}

std::vector<Bundle> Bundles::childrenOf(const Bundle &bundle) const {
  const std::vector<MachineNode> &first = bundle.node().children;
  // The places of the children of each bundle.
  std::vector<std::vector<size_t>> places;
  std::map<size_t, size_t> bundleOfShape;
  for (size_t child = 0; child < first.size(); ++child) {
    size_t into = places.size();
    if (merge == Merge::Siblings)
      into = bundleOfShape.try_emplace(shapes.at(&first[child]), into)
                 .first->second;
    else if (child > 0 && areAlike(first[child - 1], first[child]))
      --into;
    if (into == places.size())
      places.emplace_back();
    places[into].push_back(child);
  }
  std::vector<Bundle> below;
  for (const std::vector<size_t> &of : places) {
    Bundle &one = below.emplace_back();
    one.eachParent = of.size();
    // Equal nodes have equal children at the same places.
    for (const MachineNode *node : bundle.nodes)
      for (size_t child : of)
        one.nodes.push_back(&node->children[child]);
  }
  return below;
}
