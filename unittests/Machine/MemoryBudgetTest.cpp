//===- MemoryBudgetTest.cpp - How much memory this process may use --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/MemoryBudget.h"

#include "TemporaryFolder.h"
#include "sandwich/Machine/Process/MemoryBinding.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandwich;
using sandwich::test::TemporaryFolder;

namespace {
/// A root folder with what the kernel shows about memory.
class MemoryBudgetTest : public ::testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::path full = folder.file("root") + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  std::vector<MemoryLimit> limits(const std::vector<unsigned> &nodes = {}) {
    return readMemoryLimits(nodes, folder.file("root"));
  }

  TemporaryFolder folder;
};
} // namespace

TEST_F(MemoryBudgetTest, WhatCannotBeReadLimitsNothing) {
  EXPECT_TRUE(limits().empty());
  EXPECT_TRUE(limits({0}).empty());
  write("/proc/meminfo", "MemAvailable: lots kB");
  write("/proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  write("/proc/self/cgroup", "0::/app");
  write("/sys/fs/cgroup/app/memory.max", "max");
  write("/sys/fs/cgroup/app/memory.current", "4096");
  EXPECT_TRUE(limits().empty());
}

TEST_F(MemoryBudgetTest, ReadsTheMachine) {
  write("/proc/meminfo", "MemTotal:       24684024 kB\n"
                         "MemFree:        20147764 kB\n"
                         "MemAvailable:   22314136 kB");
  ASSERT_EQ(limits().size(), 1u);
  EXPECT_EQ(limits()[0].available, uint64_t{22314136} << 10);
  EXPECT_EQ(limits()[0].where, "on this machine");
  EXPECT_FALSE(limits()[0].countsMappedFiles);
}

TEST_F(MemoryBudgetTest, ReadsTheUnifiedHierarchy) {
  write("/proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  write("/proc/self/cgroup", "0::/user/app");
  write("/sys/fs/cgroup/user/app/memory.max", "max");
  write("/sys/fs/cgroup/user/memory.max", "1000000");
  write("/sys/fs/cgroup/user/memory.current", "700000");
  write("/sys/fs/cgroup/user/memory.stat", "anon 300000\nfile 400000\n"
                                           "inactive_file 150000\n"
                                           "active_file 50000");
  ASSERT_EQ(limits().size(), 1u);
  // Pages of files can be given back.
  EXPECT_EQ(limits()[0].available, 500000u);
  EXPECT_EQ(limits()[0].where, "in the cgroup limit of " + folder.file("root") +
                                   "/sys/fs/cgroup/user/memory.max");
  write("/sys/fs/cgroup/user/memory.current", "1700000");
  EXPECT_EQ(limits()[0].available, 0u);
}

TEST_F(MemoryBudgetTest, ReadsTheLegacyHierarchy) {
  write("/proc/self/mountinfo",
        "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
  write("/proc/self/cgroup", "5:memory:/app\n4:cpu:/other");
  write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "1000000");
  write("/sys/fs/cgroup/memory/app/memory.usage_in_bytes", "600000");
  write("/sys/fs/cgroup/memory/app/memory.stat", "active_file 1\n"
                                                 "total_active_file 100000\n"
                                                 "total_inactive_file 0");
  ASSERT_EQ(limits().size(), 1u);
  EXPECT_EQ(limits()[0].available, 500000u);
}

TEST_F(MemoryBudgetTest, ReadsOneNode) {
  write("/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:       1000 kB\n"
        "Node 1 MemFree:         500 kB\n"
        "Node 1 Active(file):    200 kB\n"
        "Node 1 Inactive(file):  100 kB");
  EXPECT_TRUE(limits().empty());
  ASSERT_EQ(limits({0, 1}).size(), 1u);
  EXPECT_EQ(limits({0, 1})[0].available, uint64_t{800} << 10);
  EXPECT_EQ(limits({0, 1})[0].where, "on NUMA node 1");
  EXPECT_EQ(limits({0, 1})[0].numaNode, 1u);
}

TEST(MemoryLimitsTest, ThisMachineHasMemoryAndPerhapsALimitOfAddresses) {
  std::vector<MemoryLimit> limits = readMemoryLimits();
  ASSERT_FALSE(limits.empty());
  EXPECT_GT(limits[0].available, 0u);
  // In a process of its own, as the limit stays.
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr rlim_t most = uint64_t{1} << 40;
    struct rlimit limit = {most, RLIM_INFINITY};
    // An emulator says that it has set it.
    if (::setrlimit(RLIMIT_AS, &limit) != 0 ||
        ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != most)
      ::_exit(2);
    MemoryLimit last = readMemoryLimits().back();
    bool right = last.countsMappedFiles && last.available > 0 &&
                 last.available < limit.rlim_cur;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  // A sanitizer needs more addresses than that.
  if (status == 0x200)
    GTEST_SKIP() << "the address space cannot be limited here";
  EXPECT_EQ(status, 0);
}

TEST(MemoryBindingTest, TellsWherePagesAre) {
  std::vector<std::byte> memory(size_t{1} << 22, std::byte{1});
  std::optional<PagePlaces> places = placesOf(memory, {{0}}, 50);
  if (!places)
    GTEST_SKIP() << "the kernel does not tell here";
  EXPECT_EQ(places->present, 50u);
  // On a node that no machine has, nothing is.
  places = placesOf(memory, {{1023}}, 50);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->elsewhere, 50u);
  places = placesOf({}, {{0}});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->present, 0u);
}

namespace {
/// Makes hwloc see two NUMA nodes on this machine, while the test runs.
class TwoNodesTest : public ::testing::Test {
protected:
  void SetUp() override {
    ::setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
    ::setenv("HWLOC_THISSYSTEM", "1", 1);
  }
  void TearDown() override {
    ::unsetenv("HWLOC_SYNTHETIC");
    ::unsetenv("HWLOC_THISSYSTEM");
  }

  static Result<std::optional<std::string>> bind(unsigned node) {
    static std::vector<std::byte> memory(size_t{1} << 22, std::byte{1});
    std::span<const std::byte> areas[] = {memory, {}};
    return bindMemory(areas, {{node}});
  }
};
} // namespace

TEST_F(TwoNodesTest, CpusHaveTheNodeThatAllOfThemBelongTo) {
  auto nodeOf = [](std::vector<unsigned> cpus) { return numaNodeOf(cpus); };
  EXPECT_EQ(nodeOf({0}), 0u);
  EXPECT_EQ(nodeOf({1}), 1u);
  EXPECT_EQ(nodeOf({0, 1}), std::nullopt);
  EXPECT_EQ(nodeOf({}), std::nullopt);
  for (const char *machine :
       {"pack:2 node:2 core:2 pu:2", "pack:2 [numa] die:2 [numa] pu:4",
        "node:4 core:2 pu:2"}) {
    ::setenv("HWLOC_SYNTHETIC", machine, 1);
    EXPECT_EQ(nodeOf({4, 5, 6}), 1u) << machine;
    EXPECT_NE(nodeOf({0, 1}), nodeOf({12})) << machine;
  }
}

TEST_F(TwoNodesTest, WhatTheSystemRefusesIsTold) {
  if (std::filesystem::exists("/sys/devices/system/node/node1"))
    GTEST_SKIP() << "this machine has another node";
  // Where a sandbox forbids binding, that is told, too.
  Result<std::optional<std::string>> bound = bind(0);
  ASSERT_TRUE(bound) << bound.error().message;
  if (*bound) {
    EXPECT_TRUE((*bound)->starts_with("cannot ")) << **bound;
  }
  bound = bind(1);
  ASSERT_TRUE(bound) << bound.error().message;
  ASSERT_TRUE(*bound);
  EXPECT_TRUE((*bound)->starts_with("cannot bind memory to NUMA node 1: "))
      << **bound;
  bound = bind(2);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().message, "there is no NUMA node 2 on this machine, "
                                   "whose nodes are 0, 1");
}
