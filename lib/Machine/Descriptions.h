//===- Descriptions.h - Descriptions nobody vouches for ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_MACHINE_DESCRIPTIONS_H
#define SANDWICH_LIB_MACHINE_DESCRIPTIONS_H

#include "sandwich/Support/Result.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Whether `xml` is one element `topology` with elements inside each other, as
/// hwloc writes them. Errors, with the line: anything cut or out of place,
/// deep nesting, entities.
Status checkTopologyXml(std::string_view xml);

/// Whether `description` names no more CPUs than `maxTopologyCpus`, as hwloc
/// would begin to build any number of them. Error: it names more, or nothing.
Status checkSyntheticDescription(std::string_view description);

/// A synthetic description that hwloc loads in reasonable time, and the parts
/// in it that the machine does not have.
struct LoadableDescription {
  std::string text;
  /// Of the levels of groups, innermost first, which are made up.
  std::vector<bool> madeUpGroups;
};

/// hwloc compares each part with all its siblings, which takes minutes for tens
/// of thousands. So where `description` has more than a few hundred siblings,
/// they are divided among groups, as far as their number can be divided.
LoadableDescription divideSiblings(std::string_view description);

/// What became of loading a description.
enum class LoadOutcome {
  Loaded,
  /// `load` said so, or the process that it ran in crashed.
  Refused,
  TooSlow,
};

/// Calls `load` in a child process: hwloc 2.9 ends the process on some files
/// that contradict themselves. What computes for more than a minute is too
/// slow, and so is what takes longer than `limit`: a child of a process with
/// threads may wait forever for what one of them held. Error: no child process
/// can be started, which tells nothing of the description.
Result<LoadOutcome>
tryToLoad(const std::function<bool()> &load,
          std::chrono::milliseconds limit = std::chrono::seconds(120));

} // namespace sandwich

#endif // SANDWICH_LIB_MACHINE_DESCRIPTIONS_H
