//===- InstanceParts.h - Parts that serve a model by themselves -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Instances of a model instead of ranks: sockets and NUMA nodes that are alike
/// can each serve whole requests, with weights of their own and nothing to
/// exchange.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_PLANNING_INSTANCEPARTS_H
#define SANDWICH_LIB_PLANNING_INSTANCEPARTS_H

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/Search/ServiceConfiguration.h"
#include "sandwich/Topology/Trees/TopoTree.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace sandwich {

/// All parts of a machine at one level.
struct InstanceParts {
  /// "package" or "numa".
  std::string kind;
  /// The first of them, fundamental.
  TopoTree tree;
  /// For each part the leaf that stands in it where a CPU stands in the first.
  std::vector<std::unordered_map<unsigned, TopoCpu>> cpus;

  size_t count() const { return cpus.size(); }
  /// `ranks`, which are in the first part, in another one.
  std::vector<std::vector<unsigned>>
  move(const std::vector<std::vector<unsigned>> &ranks, size_t part) const;
  /// A configuration of the first part in another one, without a derivation.
  ServiceConfiguration move(const ServiceConfiguration &configuration,
                            size_t part) const;
};

/// The levels of `tree`, which was made of `symmetric` with such leaves, whose
/// nodes are sockets or NUMA nodes, several of them: outermost first.
Result<std::vector<InstanceParts>>
findInstanceParts(const TopoTree &tree, const MachineNode &symmetric,
                  TopoLeaves leaves);

} // namespace sandwich

#endif // SANDWICH_LIB_PLANNING_INSTANCEPARTS_H
