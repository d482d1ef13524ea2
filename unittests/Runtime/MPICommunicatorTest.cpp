//===- MPICommunicatorTest.cpp - Ranks of several machines ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Runs in every rank that mpiexec starts.

#include "CommunicatorChecks.h"

#include "sandwich/Runtime/MPICommunicator.h"

#include <gtest/gtest.h>

using namespace sandwich;

TEST(MPICommunicatorTest, AgreesWithPlainLoops) {
  constexpr int32_t lanes = 2;
  Result<std::unique_ptr<MPICommunicator>> created =
      MPICommunicator::create(lanes);
  ASSERT_TRUE(created) << created.error().message;
  MPICommunicator &communicator = **created;
  // Started otherwise, it would be alone.
  ASSERT_EQ(communicator.ranks(), 3);
  EXPECT_FALSE(MPICommunicator::create(lanes));
  checkAll(communicator);
  for (size_t count : {1, 40, 5000, 70000}) {
    checkAllReduce(communicator, lanes, 1, count);
    checkAllGather(communicator, lanes, 1, 3, count / 3);
  }
  runRandomly(communicator, 300);
  EXPECT_TRUE(communicator.failure());
  // Collectives that cannot run end at once, with a reason.
  float value = 1;
  communicator.allReduce(2, 3, &value, 1);
  ASSERT_FALSE(communicator.failure());
  EXPECT_EQ(communicator.failure().error().message,
            "a collective ran as thread 2 of 3, but MPI was joined for 2");
}
