//===- CpuBudget.h - How many threads this process may use ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The default thread count is the least of what the CPU affinity mask, the
/// cgroup quota and the physical cores allow. The compiler asks for the plan's
/// thread count, the runtime to see whether a plan fits the machine.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PROCESS_CPUBUDGET_H
#define SANDWICH_MACHINE_PROCESS_CPUBUDGET_H

#include "sandwich/Support/Result.h"

#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// A limit on CPU time set by a cgroup.
struct CgroupQuota {
  /// CPUs' worth of time, for example 1.5.
  double cpus = 0;
  /// The file that sets it.
  std::string source;
};

/// The tightest CPU quota on this process's cgroup and the cgroups above it,
/// under cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us`), or nothing where
/// none is set. Paths are looked up under `root`, which is "" but in tests.
std::optional<CgroupQuota> readCgroupQuota(const std::string &root = "");

struct CpuBudget {
  /// Logical CPUs in the affinity mask, and on the machine.
  unsigned allowedCpus = 1;
  unsigned machineCpus = 1;
  /// Physical cores that have at least one CPU in the affinity mask.
  unsigned allowedCores = 1;
  std::optional<CgroupQuota> quota;
  /// Operating-system indexes of the allowed CPUs: the first CPU of every
  /// core, then every second CPU, and so on, so that the first
  /// `allowedCores` of them share no core.
  std::vector<unsigned> cpus;

  /// The default thread count, at least 1. A quota is rounded down.
  unsigned threads() const;
  /// The most threads that can run at a time, one on each CPU: of cores with
  /// several hardware threads all of them. At least 1.
  unsigned hardwareThreads() const;
  /// The CPUs to keep a team of `threads` threads on, one for each. None where
  /// the team leaves a core free, or has more threads than there are CPUs:
  /// every other process and model would choose the same ones, so such a team
  /// is better left to the system.
  std::vector<unsigned> cpusFor(unsigned threads) const;
  /// What makes `threads()` no larger: "the CPU affinity mask", "the cgroup
  /// quota in FILE" or "physical cores".
  std::string limit() const;
};

/// Asks the operating system, about the calling thread's affinity mask. Errors:
/// hwloc cannot read the topology.
Result<CpuBudget> readCpuBudget();

} // namespace sandwich

#endif // SANDWICH_MACHINE_PROCESS_CPUBUDGET_H
