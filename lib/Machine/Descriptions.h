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

namespace sandwich {

/// Whether `xml` is one element `topology` with elements inside each other, as
/// hwloc writes them. Errors, with the line: anything cut or out of place,
/// deep nesting, entities.
Status checkTopologyXml(std::string_view xml);

/// Whether `description` names no more CPUs than `maxTopologyCpus`, as hwloc
/// would begin to build any number of them. Error: it names more, or nothing.
Status checkSyntheticDescription(std::string_view description);

/// Whether `load` returns true in a child process within `limit`: hwloc 2.9
/// ends the process on some files that contradict themselves. A child of a
/// process with threads may wait forever for what one of them held, so it is
/// ended.
bool survives(const std::function<bool()> &load,
              std::chrono::milliseconds limit = std::chrono::seconds(120));

} // namespace sandwich

#endif // SANDWICH_LIB_MACHINE_DESCRIPTIONS_H
