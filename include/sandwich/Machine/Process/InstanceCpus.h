//===- InstanceCpus.h - Cores beside an accelerator -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which cores a CPU instance of a model gets where accelerators and the
/// service itself need some, too (WindVE, IV.D): the last ones first, as
/// drivers and services keep to the first, within a NUMA node while they fit,
/// and never those that are reserved.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PROCESS_INSTANCECPUS_H
#define SANDWICH_MACHINE_PROCESS_INSTANCECPUS_H

#include "sandwich/Machine/Process/CpuBudget.h"

#include <functional>
#include <optional>
#include <vector>

namespace sandwich {

/// How many of `cores` are left to the service and the accelerators' drivers: a
/// quarter, and one at least; none where there is one alone.
unsigned reservedCores(unsigned cores);

/// The NUMA node of a CPU; nothing: it has none of its own.
using NodeOfCpu = std::function<std::optional<unsigned>(unsigned cpu)>;

/// That of the machine this is.
std::optional<unsigned> findNodeOfCpu(unsigned cpu);

/// A CPU of a core of its own for each of `threads` threads, in reversed order:
/// all of one NUMA node if one has as many, the last such node, and else from
/// the last cores on. Empty where `reserved` cores would not be left.
std::vector<unsigned> chooseInstanceCpus(const CpuBudget &budget,
                                         unsigned threads, unsigned reserved,
                                         const NodeOfCpu &nodeOf);

} // namespace sandwich

#endif // SANDWICH_MACHINE_PROCESS_INSTANCECPUS_H
