//===- CpuBudgetTest.cpp - How many threads this process may use ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/CpuBudget.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace sandwich;
using sandwich::test::TemporaryFolder;

namespace {
/// A root folder with what the kernel shows about cgroups.
class CgroupTest : public ::testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::path full = folder.file("root") + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text << '\n';
  }
  std::optional<CgroupQuota> quota() {
    return readCgroupQuota(folder.file("root"));
  }

  static constexpr char unifiedMount[] =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
  static constexpr char legacyMount[] =
      "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:5 - cgroup "
      "cgroup rw,cpu,cpuacct";

  TemporaryFolder folder;
};
} // namespace

TEST_F(CgroupTest, NoneWithoutCgroups) { EXPECT_FALSE(quota()); }

TEST_F(CgroupTest, ReadsTheUnifiedHierarchy) {
  write("/proc/self/mountinfo", unifiedMount);
  write("/proc/self/cgroup", "0::/user/app");
  write("/sys/fs/cgroup/user/app/cpu.max", "150000 100000");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->cpus, 1.5);
  EXPECT_TRUE(quota()->source.ends_with("/sys/fs/cgroup/user/app/cpu.max"));
}

TEST_F(CgroupTest, MaxIsNoQuota) {
  write("/proc/self/mountinfo", unifiedMount);
  write("/proc/self/cgroup", "0::/app");
  write("/sys/fs/cgroup/app/cpu.max", "max 100000");
  EXPECT_FALSE(quota());
}

TEST_F(CgroupTest, TheTightestAncestorCounts) {
  write("/proc/self/mountinfo", unifiedMount);
  write("/proc/self/cgroup", "0::/user/app");
  write("/sys/fs/cgroup/user/app/cpu.max", "800000 100000");
  write("/sys/fs/cgroup/user/cpu.max", "300000 100000");
  write("/sys/fs/cgroup/cpu.max", "400000 100000");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->cpus, 3);
}

TEST_F(CgroupTest, ReadsTheLegacyHierarchy) {
  write("/proc/self/mountinfo", legacyMount);
  write("/proc/self/cgroup", "5:memory:/other\n4:cpu,cpuacct:/app\n0::/");
  write("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000");
  write("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->cpus, 2.5);
}

TEST_F(CgroupTest, AContainerSeesItsOwnCgroupAsTheMountPoint) {
  write("/proc/self/mountinfo",
        "31 23 0:27 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu");
  write("/proc/self/cgroup", "4:cpu:/docker/abc");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  ASSERT_TRUE(quota());
  EXPECT_DOUBLE_EQ(quota()->cpus, 2);
}

TEST_F(CgroupTest, NonsenseIsNoQuota) {
  write("/proc/self/mountinfo",
        std::string("garbage\n1 2 3 -\n") + unifiedMount + "\n- - - - - - -");
  write("/proc/self/cgroup", "garbage\n0::/app/../..");
  write("/sys/fs/cgroup/cpu.max", "lots of");
  EXPECT_FALSE(quota());
  write("/sys/fs/cgroup/cpu.max", "100000 0");
  EXPECT_FALSE(quota());
}

TEST(CpuBudgetTest, TakesTheLeastAndNamesIt) {
  CpuBudget budget;
  budget.allowedCpus = 8;
  budget.machineCpus = 16;
  budget.allowedCores = 8;
  EXPECT_EQ(budget.threads(), 8u);
  EXPECT_EQ(budget.limit(), "the CPU affinity mask");
  budget.allowedCores = 4;
  EXPECT_EQ(budget.threads(), 4u);
  EXPECT_EQ(budget.hardwareThreads(), 8u);
  EXPECT_EQ(budget.limit(), "physical cores");
  budget.quota = CgroupQuota{2.9, "cpu.max"};
  EXPECT_EQ(budget.threads(), 2u);
  EXPECT_EQ(budget.hardwareThreads(), 2u);
  EXPECT_EQ(budget.limit(), "the cgroup quota in cpu.max");
  budget.quota->cpus = 0.1;
  EXPECT_EQ(budget.threads(), 1u);
  budget.quota->cpus = 64;
  EXPECT_EQ(budget.threads(), 4u);
  EXPECT_EQ(budget.limit(), "physical cores");
}

TEST(CpuBudgetTest, HonoursTheAffinityMask) {
  // The mask belongs to the thread, and the budget is asked by one.
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
    Result<CpuBudget> all = readCpuBudget();
    ASSERT_TRUE(all);
    EXPECT_EQ(all->allowedCpus, static_cast<unsigned>(CPU_COUNT(&mask)));
    EXPECT_EQ(all->cpus.size(), all->allowedCpus);
    EXPECT_EQ(std::set<unsigned>(all->cpus.begin(), all->cpus.end()).size(),
              all->allowedCpus);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all->cpus.back(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    Result<CpuBudget> restricted = readCpuBudget();
    ASSERT_TRUE(restricted);
    EXPECT_EQ(restricted->threads(), 1u);
    EXPECT_EQ(restricted->cpus, std::vector<unsigned>{all->cpus.back()});
  }).join();
}

TEST(CpuBudgetTest, KeepsOnlyTeamsThatFillTheCoresOnCpus) {
  CpuBudget budget;
  budget.allowedCpus = 4;
  budget.allowedCores = 2;
  budget.cpus = {0, 2, 1, 3};
  using Cpus = std::vector<unsigned>;
  EXPECT_EQ(budget.cpusFor(1), Cpus());
  EXPECT_EQ(budget.cpusFor(2), (Cpus{0, 2}));
  EXPECT_EQ(budget.cpusFor(3), (Cpus{0, 2, 1}));
  EXPECT_EQ(budget.cpusFor(4), budget.cpus);
  EXPECT_EQ(budget.cpusFor(5), Cpus());
  // A quota allows one thread at a time, but on any core.
  budget.quota = CgroupQuota{1.0, "cpu.max"};
  EXPECT_EQ(budget.cpusFor(budget.threads()), Cpus());
}
