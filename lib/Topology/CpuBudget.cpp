//===- CpuBudget.cpp - How many threads this process may use --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/CpuBudget.h"

#include "Hwloc.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace sandwich;

namespace {

/// One mounted cgroup hierarchy that controls CPU time.
struct CgroupMount {
  bool unified = false;
  /// The cgroup that is visible as `mountPoint`.
  std::string root;
  std::string mountPoint;
};

} // namespace

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static bool contains(const std::string &commaList, const char *item) {
  std::vector<std::string> items = split(commaList, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

/// The CPU hierarchies in `/proc/self/mountinfo`, whose lines read
/// `id parent dev root mountpoint options [tags...] - type source options`.
static std::vector<CgroupMount> readMounts(const std::string &root) {
  std::vector<CgroupMount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields = split(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4)
      continue;
    const std::string &type = dash[1];
    if (type == "cgroup2")
      mounts.push_back({true, fields[3], fields[4]});
    else if (type == "cgroup" && contains(dash[3], "cpu"))
      mounts.push_back({false, fields[3], fields[4]});
  }
  return mounts;
}

/// This process's cgroup in the unified or the v1 `cpu` hierarchy, from
/// `/proc/self/cgroup`, whose lines read `id:controllers:path`.
static std::string readOwnCgroup(const std::string &root, bool unified) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':');
    size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : contains(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return "/";
}

static std::optional<double> readNumber(const std::string &text) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

static std::string readFirstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The quota set in the cgroup folder `folder` itself.
static std::optional<CgroupQuota> readQuotaIn(const std::string &folder,
                                              bool unified) {
  std::optional<double> quota;
  std::optional<double> period;
  std::string source;
  if (unified) {
    source = folder + "/cpu.max";
    std::vector<std::string> fields = split(readFirstLine(source), ' ');
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
  for (const CgroupMount &mount : readMounts(root)) {
    // The path is relative to the hierarchy, of which the mount may show only
    // the part below `mount.root`; a container often sees its own cgroup as
    // the mount point itself.
    std::string path = readOwnCgroup(root, mount.unified);
    if (mount.root != "/" && path.rfind(mount.root, 0) == 0)
      path = path.substr(mount.root.size());
    else if (mount.root != "/" || path.find("..") != std::string::npos)
      path.clear();
    std::string mountPoint = root + mount.mountPoint;
    while (true) {
      while (!path.empty() && path.back() == '/')
        path.pop_back();
      std::optional<CgroupQuota> quota =
          readQuotaIn(mountPoint + path, mount.unified);
      if (quota && (!tightest || quota->cpus < tightest->cpus))
        tightest = quota;
      if (path.empty())
        break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return tightest;
}

/// The quota as a number of threads.
static unsigned quotaThreads(const CgroupQuota &quota) {
  return static_cast<unsigned>(
      std::clamp(std::floor(quota.cpus), 1.0, 1048576.0));
}

unsigned CpuBudget::threads() const {
  unsigned count = std::min(allowedCpus, allowedCores);
  if (quota)
    count = std::min(count, quotaThreads(*quota));
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
