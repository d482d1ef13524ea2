//===- CpuBudget.cpp - How many threads this process may use --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/CpuBudget.h"

#include "Cgroup.h"
#include "sandwich/Machine/Hwloc.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace sandwich;

static std::optional<double> readNumber(const std::string &text) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// The quota set in the cgroup folder `folder` itself.
static std::optional<CgroupQuota> readQuotaIn(const std::string &folder,
                                              bool unified) {
  std::optional<double> quota;
  std::optional<double> period;
  std::string source;
  if (unified) {
    source = folder + "/cpu.max";
    std::vector<std::string> fields = splitText(readFirstLine(source), ' ');
    if (fields.size() != 2)
      return std::nullopt;
    quota = readNumber(fields[0]);
    period = readNumber(fields[1]);
  } else {
    source = folder + "/cpu.cfs_quota_us";
    quota = readNumber(readFirstLine(source));
    period = readNumber(readFirstLine(folder + "/cpu.cfs_period_us"));
  }
  // "max" and -1 mean no quota.
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return std::nullopt;
  return CgroupQuota{*quota / *period, source};
}

std::optional<CgroupQuota> sandwich::readCgroupQuota(const std::string &root) {
  std::optional<CgroupQuota> tightest;
  for (const CgroupFolder &folder : cgroupFolders(root, "cpu")) {
    std::optional<CgroupQuota> quota = readQuotaIn(folder.path, folder.unified);
    if (quota && (!tightest || quota->cpus < tightest->cpus))
      tightest = quota;
  }
  return tightest;
}

/// The quota as a number of threads.
static unsigned quotaThreads(const CgroupQuota &quota) {
  return static_cast<unsigned>(
      std::clamp(std::floor(quota.cpus), 1.0, 1048576.0));
}

unsigned CpuBudget::threads() const {
  return std::min(hardwareThreads(), std::max(allowedCores, 1u));
}

unsigned CpuBudget::hardwareThreads() const {
  const unsigned count =
      quota ? std::min(allowedCpus, quotaThreads(*quota)) : allowedCpus;
  return std::max(count, 1u);
}

std::vector<unsigned> CpuBudget::cpusFor(unsigned threads) const {
  if (threads < allowedCores || threads > cpus.size())
    return {};
  return {cpus.begin(), cpus.begin() + threads};
}

std::string CpuBudget::limit() const {
  if (quota && quotaThreads(*quota) < std::min(allowedCpus, allowedCores))
    return "the cgroup quota in " + quota->source;
  if (allowedCpus < machineCpus && allowedCpus <= allowedCores)
    return "the CPU affinity mask";
  return "physical cores";
}

Result<CpuBudget> sandwich::readCpuBudget() {
  SANDWICH_ASSIGN_OR_RETURN(HwlocTopology owner, createTopology());
  hwloc_topology_t topology = owner.get();
  // Cores and CPUs are all that is needed, and all that takes little time.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE,
                                 HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) != 0)
    return makeError("hwloc cannot read this machine's topology");
  CpuLimits limits = readCpuLimits(topology);

  // [core][n-th allowed CPU of the core]
  std::vector<std::vector<unsigned>> cores;
  auto addCore = [&](hwloc_const_cpuset_t cpuset) {
    std::vector<unsigned> cpus;
    int index;
    hwloc_bitmap_foreach_begin(index, cpuset) {
      if (hwloc_bitmap_isset(limits.usable.get(), static_cast<unsigned>(index)))
        cpus.push_back(static_cast<unsigned>(index));
    }
    hwloc_bitmap_foreach_end();
    if (!cpus.empty())
      cores.push_back(cpus);
  };
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core));)
    addCore(core->cpuset);
  // Some virtual machines describe no cores: every CPU counts as one.
  if (cores.empty())
    for (hwloc_obj_t cpu = nullptr;
         (cpu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, cpu));)
      addCore(cpu->cpuset);

  CpuBudget budget;
  budget.allowedCores =
      static_cast<unsigned>(std::max<size_t>(cores.size(), 1));
  size_t deepest = 0;
  for (const std::vector<unsigned> &core : cores)
    deepest = std::max(deepest, core.size());
  for (size_t turn = 0; turn < deepest; ++turn)
    for (const std::vector<unsigned> &core : cores)
      if (turn < core.size())
        budget.cpus.push_back(core[turn]);
  budget.allowedCpus =
      static_cast<unsigned>(std::max<size_t>(budget.cpus.size(), 1));
  budget.machineCpus = static_cast<unsigned>(std::max(
      hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(topology)), 1));
  budget.quota = readCgroupQuota();
  return budget;
}
