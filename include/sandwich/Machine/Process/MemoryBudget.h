//===- MemoryBudget.h - How much memory this process may use ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What of the machine's memory, of the cgroups' limits, of one NUMA node and
/// of the address space is left for this process: the memory's counterpart of
/// `CpuBudget`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PROCESS_MEMORYBUDGET_H
#define SANDWICH_MACHINE_PROCESS_MEMORYBUDGET_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// One thing that limits how much memory this process can get.
struct MemoryLimit {
  /// Bytes that it leaves. Pages of files count as left, since the kernel gives
  /// them back when memory is short.
  uint64_t available = 0;
  /// "on this machine", "in the cgroup limit of FILE", "on NUMA node 1" or
  /// "below the address space limit (ulimit -v)".
  std::string where;
  /// Whether mapped files count against it, even if they take no memory. Such a
  /// limit is one of each process; the others are of all together.
  bool countsMappedFiles = false;
  /// The NUMA node that it is about, with the memories beside it.
  std::optional<unsigned> numaNode = {};
  /// Among how many what is left is to be divided, who asks included.
  uint64_t sharers = 1;
};

/// What is available now:
/// - on this machine, `MemAvailable` of /proc/meminfo;
/// - in each cgroup that sets a limit (v2: `memory.max`, v1:
///   `memory.limit_in_bytes`), the limit without the use of it that is no page
///   of a file;
/// - on each of `numaNodes`, with the memories beside it (`memoryNodesOf`),
///   what is free or holds pages of files there;
/// - with a limit on the address space, what of it is not used.
/// What cannot be read limits nothing. Paths are looked up under `root`, which
/// is "" but in tests; with another one the address space is not asked about,
/// nor what is beside a node.
std::vector<MemoryLimit>
readMemoryLimits(const std::vector<unsigned> &numaNodes = {},
                 const std::string &root = "");

} // namespace sandwich

#endif // SANDWICH_MACHINE_PROCESS_MEMORYBUDGET_H
