//===- MPICommunicatorTest.cpp - Ranks of several machines ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each test runs in every rank that mpiexec starts.

#include "CommunicatorChecks.h"

#include "sandwich/Runtime/Communication/MPICommunicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#define OMPI_SKIP_MPICXX
#include <mpi.h>

using namespace sandwich;

TEST(MPICommunicatorTest, AgreesWithPlainLoops) {
  constexpr int32_t lanes = 2;
  Result<std::unique_ptr<MPICommunicator>> created = MPICommunicator::create();
  ASSERT_TRUE(created) << created.error().message;
  MPICommunicator &communicator = **created;
  // Started otherwise, it would be alone.
  ASSERT_EQ(communicator.ranks(), 3);
  EXPECT_FALSE(MPICommunicator::create());
  ASSERT_TRUE(communicator.prepare(lanes));
  checkAll(communicator);
  for (size_t count : {1, 40, 5000, 70000}) {
    checkAllReduce(communicator, lanes, 1, count);
    checkAllGather(communicator, lanes, 1, 3, count / 3);
  }
  runRandomly(communicator, 300);
  std::vector<float> all(9, -1);
  for (int i = 0; i < 3; ++i)
    all[static_cast<size_t>(communicator.rank() * 3 + i)] =
        static_cast<float>(communicator.rank());
  communicator.gatherPart(1, all.data() + communicator.rank() * 3, all.data(),
                          3);
  EXPECT_EQ(all, (std::vector<float>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_TRUE(communicator.failure());
  Status left = communicator.leave();
  EXPECT_TRUE(left) << left.error().message;
  // What was exchanged stays good, whatever a host says now.
  communicator.fail("too late");
  EXPECT_TRUE(communicator.failure());
}

TEST(MPICommunicatorTest, FailureWhileOthersLeave) {
  Result<std::unique_ptr<MPICommunicator>> created = MPICommunicator::create();
  ASSERT_TRUE(created) << created.error().message;
  std::unique_ptr<MPICommunicator> communicator = std::move(*created);
  ASSERT_EQ(communicator->ranks(), 3);
  const std::string expected =
      communicator->rank() == 2
          ? "is tired"
          : "host " + communicator->nameOf(2) + ": is tired";
  if (communicator->rank() == 2) {
    // The others have said that they leave by then.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    communicator->fail("is tired");
  }
  Status left = communicator->leave();
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().message, expected);
  communicator.reset();
  // It is left to MPI to end processes after a failure, but here all live.
  MPI_Finalize();
}
