//===- Summary.h - What both drawings say -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TOPOLOGY_DRAWING_SUMMARY_H
#define SANDWICH_LIB_TOPOLOGY_DRAWING_SUMMARY_H

#include "sandwich/Machine/MachineTopology.h"

#include <string>

namespace sandwich {

/// "package x 1, numa x 1, core x 2, cpu x 2".
std::string summaryOf(const MachineNode &root);

/// A node's size, bandwidth, latency and speed as "64 GiB, 180 GB/s, 90 ns".
std::string detailsOf(const MachineNode &node);

} // namespace sandwich

#endif // SANDWICH_LIB_TOPOLOGY_DRAWING_SUMMARY_H
