//===- PlanCores.h - The cores of a service configuration -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PLANCORES_H
#define SANDWICH_MACHINE_PLANCORES_H

#include <vector>

namespace sandwich {

/// Operating-system indexes of the CPUs that each process of a plan runs on.
struct PlanCores {
  /// [process] The CPUs awake in each phase. Both have the same processes.
  std::vector<std::vector<unsigned>> prefill;
  std::vector<std::vector<unsigned>> decode;
};

} // namespace sandwich

#endif // SANDWICH_MACHINE_PLANCORES_H
