//===- InstanceCpusTest.cpp - Cores beside an accelerator -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/InstanceCpus.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace sandwich;

namespace {

using Cpus = std::vector<unsigned>;

/// `cores` cores with two CPUs each: c and c + cores.
CpuBudget makeBudget(unsigned cores) {
  CpuBudget budget;
  budget.allowedCores = cores;
  budget.allowedCpus = 2 * cores;
  budget.cpus.resize(budget.allowedCpus);
  std::iota(budget.cpus.begin(), budget.cpus.end(), 0);
  return budget;
}

std::optional<unsigned> oneNode(unsigned) { return 0; }
/// Four cores each.
std::optional<unsigned> nodesOfFour(unsigned cpu) { return cpu / 4; }

TEST(InstanceCpus, ReservesAQuarterAndOneCoreAtLeast) {
  EXPECT_EQ(reservedCores(1), 0U);
  EXPECT_EQ(reservedCores(2), 1U);
  EXPECT_EQ(reservedCores(7), 1U);
  EXPECT_EQ(reservedCores(8), 2U);
  EXPECT_EQ(reservedCores(192), 48U);
}

TEST(InstanceCpus, TakesTheLastCoresFirst) {
  EXPECT_EQ(chooseInstanceCpus(makeBudget(8), 3, 2, oneNode), (Cpus{7, 6, 5}));
  // Never a second CPU of a core, nor one that is reserved.
  EXPECT_EQ(chooseInstanceCpus(makeBudget(8), 6, 2, oneNode),
            (Cpus{7, 6, 5, 4, 3, 2}));
  EXPECT_EQ(chooseInstanceCpus(makeBudget(8), 7, 2, oneNode), Cpus());
  EXPECT_EQ(chooseInstanceCpus(makeBudget(8), 0, 0, oneNode), Cpus());
}

TEST(InstanceCpus, StaysWithinANodeWhileItFits) {
  const CpuBudget budget = makeBudget(12);
  EXPECT_EQ(chooseInstanceCpus(budget, 4, 3, nodesOfFour),
            (Cpus{11, 10, 9, 8}));
  EXPECT_EQ(chooseInstanceCpus(budget, 5, 3, nodesOfFour),
            (Cpus{11, 10, 9, 8, 7}));
  // The last node has two cores that may be used, the one before has four.
  CpuBudget partly = makeBudget(12);
  partly.allowedCores = 10;
  partly.cpus = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(chooseInstanceCpus(partly, 3, 2, nodesOfFour), (Cpus{7, 6, 5}));
  EXPECT_EQ(chooseInstanceCpus(partly, 2, 2, nodesOfFour), (Cpus{9, 8}));
}

TEST(InstanceCpus, DoesWithoutNodes) {
  EXPECT_EQ(chooseInstanceCpus(makeBudget(4), 2, 1,
                               [](unsigned) { return std::nullopt; }),
            (Cpus{3, 2}));
}

} // namespace
