//===- Indexes.h - Lists of indexes for people ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_INDEXES_H
#define SANDWICH_MACHINE_INDEXES_H

#include <cstdint>
#include <string>
#include <vector>

namespace sandwich {

/// "0-3,8": sorted, with runs of three and more as ranges; each index once.
std::string formatIndexes(std::vector<int64_t> indexes);

/// "CPU 3" or "CPUs 3-5".
std::string formatCpus(const std::vector<int64_t> &cpus);

} // namespace sandwich

#endif // SANDWICH_MACHINE_INDEXES_H
