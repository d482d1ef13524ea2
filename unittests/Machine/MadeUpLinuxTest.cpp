//===- MadeUpLinuxTest.cpp - What the kernel shows ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemporaryFolder.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Machine/Process/MemoryBinding.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace sandwich;
using sandwich::test::TemporaryFolder;
using Strings = std::vector<std::string>;

namespace {

/// A folder with the files that Linux shows of a machine, which hwloc reads
/// instead of this machine's while the test runs. It has a package with two
/// performance cores of two threads each (CPUs 0 to 3), four efficiency cores
/// that share an L2 cache (CPUs 4 to 7), two CPUs that are offline, and a
/// memory without cores.
class MadeUpLinuxTest : public ::testing::Test {
protected:
  using Cpus = std::vector<unsigned>;

  void SetUp() override {
    ::setenv("HWLOC_FSROOT", folder.path().c_str(), 1);
    ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    for (unsigned cpu = 0; cpu < 4; ++cpu)
      addCpu(cpu, cpu / 2, {cpu / 2 * 2, cpu / 2 * 2 + 1},
             {cpu / 2 * 2, cpu / 2 * 2 + 1}, 5000000);
    for (unsigned cpu = 4; cpu < 8; ++cpu)
      addCpu(cpu, cpu, {cpu}, {4, 5, 6, 7}, 3000000);
    write(cpuFolder(8) + "online", "0");
    write(cpuFolder(9) + "online", "0");
    addNode(0, mask(all), 8, "10 40");
    addNode(1, mask({}), 16, "40 10");
    write("/sys/devices/system/node/online", "0-1");
    addAccess(0, 90000, 70000, 95);
    write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Made-up CPU");
  }
  void TearDown() override {
    ::unsetenv("HWLOC_FSROOT");
    ::unsetenv("HWLOC_COMPONENTS");
  }

  /// Adds a memory of 4 GiB beside node 0's, twice as fast.
  void addFastMemory() {
    addNode(0, mask(all), 8, "10 40 15");
    addNode(1, mask({}), 16, "40 10 45");
    addNode(2, mask({}), 4, "15 45 10");
    write("/sys/devices/system/node/online", "0-2");
    addAccess(2, 180000, 140000, 120);
  }

  /// Puts the process into a cgroup with these CPUs.
  void setCpuset(const std::string &cpus) {
    write("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0");
    write("/proc/self/cgroup", "0::/app");
    write("/sys/fs/cgroup/cgroup.controllers", "cpuset");
    write("/sys/fs/cgroup/app/cgroup.controllers", "cpuset");
    write("/sys/fs/cgroup/app/cpuset.cpus.effective", cpus);
    write("/sys/fs/cgroup/app/cpuset.mems.effective", "0-1");
  }

private:
  /// What the firmware says of `node` for the CPUs of node 0: MB/s and
  /// nanoseconds.
  void addAccess(unsigned node, unsigned reading, unsigned writing,
                 unsigned latency) {
    const std::string path = "/sys/devices/system/node/node" +
                             std::to_string(node) + "/access0/initiators/";
    write(path + "node0/online", "1");
    write(path + "read_bandwidth", std::to_string(reading));
    write(path + "write_bandwidth", std::to_string(writing));
    write(path + "read_latency", std::to_string(latency));
    write(path + "write_latency", std::to_string(latency));
  }
  void write(const std::string &path, const std::string &text) {
    std::filesystem::path full = folder.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  static std::string cpuFolder(unsigned cpu) {
    return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
  }
  static std::string mask(const Cpus &cpus) {
    unsigned bits = 0;
    for (unsigned cpu : cpus)
      bits |= 1u << cpu;
    char text[16];
    std::snprintf(text, sizeof(text), "%08x", bits);
    return text;
  }
  void addCpu(unsigned cpu, unsigned core, const Cpus &siblings,
              const Cpus &l2Sharers, unsigned frequency) {
    std::string path = cpuFolder(cpu);
    write(path + "online", "1");
    write(path + "topology/core_cpus", mask(siblings));
    write(path + "topology/thread_siblings", mask(siblings));
    write(path + "topology/package_cpus", mask(all));
    write(path + "topology/core_siblings", mask(all));
    write(path + "topology/core_id", std::to_string(core));
    write(path + "topology/physical_package_id", "0");
    write(path + "cpufreq/cpuinfo_max_freq", std::to_string(frequency));
    addCache(path + "cache/index0/", 2, "1024K", mask(l2Sharers));
    addCache(path + "cache/index1/", 3, "8192K", mask(all));
  }
  void addCache(const std::string &path, int level, const std::string &size,
                const std::string &sharers) {
    write(path + "level", std::to_string(level));
    write(path + "type", "Unified");
    write(path + "size", size);
    write(path + "shared_cpu_map", sharers);
    write(path + "coherency_line_size", "64");
    write(path + "number_of_sets", "64");
    write(path + "physical_line_partition", "1");
  }
  void addNode(unsigned node, const std::string &cpus, uint64_t gibibytes,
               const std::string &distances) {
    std::string number = std::to_string(node);
    std::string path = "/sys/devices/system/node/node" + number + "/";
    write(path + "cpumap", cpus);
    write(path + "distance", distances);
    write(path + "meminfo", "Node " + number + " MemTotal: " +
                                std::to_string(gibibytes << 20) + " kB");
  }

  const Cpus all = {0, 1, 2, 3, 4, 5, 6, 7};
  TemporaryFolder folder;
};

} // namespace

TEST_F(MadeUpLinuxTest, AHybridMachine) {
  Result<Machine> machine = readMachineTopology();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->cpuModel, "Made-up CPU");
  EXPECT_EQ(countParts(machine->root, "cpu"), 8u);
  EXPECT_EQ(machine->leftOut,
            (Strings{"CPUs 8,9: offline",
                     "numa 1 (16 GiB): memory without cores of its own"}));
  ASSERT_EQ(machine->memories.size(), 1u);
  EXPECT_EQ(machine->memories[0].bytes, uint64_t{16} << 30);
  const MachineNode &numa = machine->root.children[0].children[0];
  ASSERT_EQ(numa.kind, "numa");
  EXPECT_EQ(numa.bytes, uint64_t{8} << 30);
  EXPECT_EQ(numa.bandwidth, uint64_t{80000} << 20)
      << "hwloc takes the mean of reading and writing";
  EXPECT_EQ(numa.latency, 95u);
  EXPECT_EQ(machine->distances.values,
            (std::vector<std::vector<uint64_t>>{{10, 40}, {40, 10}}));

  // Four cores with 0.6 of the speed are more than two.
  Result<SymmetricPart> part = largestSymmetricPart(machine->root);
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "core"), 4u);
  EXPECT_EQ(part->leftOut, Strings{"cores 0,1 (CPUs 0-3): faster than the 4 "
                                   "cores used, which do more together"});
}

TEST_F(MadeUpLinuxTest, AFastMemoryBesideANodes) {
  addFastMemory();
  Result<Machine> machine = readMachineTopology();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(countParts(machine->root, "numa"), 1u);
  ASSERT_EQ(machine->memories.size(), 2u);
  const MachineNode *fast = &machine->memories.front();
  if (fast->index != 2)
    ++fast;
  EXPECT_EQ(fast->index, 2);
  EXPECT_EQ(fast->besideNodes, std::vector<unsigned>{0});
  EXPECT_EQ(fast->bandwidth, uint64_t{160000} << 20);
  // What is bound to the node goes there first.
  EXPECT_EQ(memoryNodesOf(0), (std::vector<unsigned>{2, 0}));
  EXPECT_EQ(memoryNodesOf(1), std::vector<unsigned>{1});
  EXPECT_EQ(memoryNodesOf(9), std::vector<unsigned>{9});
  const unsigned cpus[] = {0, 5};
  EXPECT_EQ(numaNodeOf(cpus), 0u);
}

TEST_F(MadeUpLinuxTest, ACgroupsCpuset) {
  setCpuset("0-4,8");
  Result<Machine> machine = readMachineTopology();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(countParts(machine->root, "cpu"), 5u);
  EXPECT_EQ(machine->root.coreCount, 6u);
  EXPECT_EQ(
      machine->leftOut,
      (Strings{"CPUs 8,9: offline", "CPUs 5-7: not in the cgroup's cpuset",
               "numa 1 (16 GiB): memory without cores of its own"}));
  Result<SymmetricPart> part = largestSymmetricPart(machine->root);
  ASSERT_TRUE(part);
  EXPECT_EQ(countParts(part->root, "cpu"), 4u);
  EXPECT_EQ(part->leftOut,
            Strings{"core 4 (CPU 4): slower, as efficiency cores are, than "
                    "the 2 cores used"});
  // The same CPUs count for the number of threads.
  Result<CpuBudget> budget = readCpuBudget();
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->cpus, (std::vector<unsigned>{0, 2, 4, 1, 3}));
  EXPECT_EQ(budget->machineCpus, 10u);
}

TEST_F(MadeUpLinuxTest, CoresKeepTheirPlacesInACpuset) {
  setCpuset("2-3,6");
  Result<Machine> machine = readMachineTopology();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->root.firstCore, 0u);
  EXPECT_EQ(machine->root.coreCount, 6u);
  std::vector<uint64_t> places;
  auto collect = [&](const MachineNode &node, const auto &again) -> void {
    if (node.kind == "core") {
      EXPECT_EQ(node.coreCount, 1u);
      places.push_back(node.firstCore);
    } else if (node.kind != "cpu") {
      EXPECT_GT(node.coreCount, 0u) << node.kind;
    }
    for (const MachineNode &child : node.children)
      again(child, again);
  };
  collect(machine->root, collect);
  EXPECT_EQ(places, (std::vector<uint64_t>{1, 4}));
}

TEST_F(MadeUpLinuxTest, ACpusetThatLeavesNone) {
  setCpuset("8-9");
  Result<Machine> machine = readMachineTopology();
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().message,
            "this machine: none of its 8 CPUs may be used: the cpuset leaves "
            "none");
}
