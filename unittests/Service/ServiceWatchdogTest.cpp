//===- ServiceWatchdogTest.cpp - Whether a service still works ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/ServiceWatchdog.h"

#include "sandwich/Service/RestartLimit.h"

#include <gtest/gtest.h>

using namespace sandwich;

TEST(ServiceWatchdogTest, StallsAreToldOnceAndSoIsTheirEnd) {
  ServiceWatchdog watchdog(10);
  EXPECT_FALSE(watchdog.look(100, true, 5));
  EXPECT_FALSE(watchdog.look(110, true, 5));
  EXPECT_FALSE(watchdog.stalled());
  auto stalled = watchdog.look(111, true, 5);
  ASSERT_TRUE(stalled);
  EXPECT_TRUE(stalled->stalled);
  EXPECT_EQ(stalled->seconds, 11);
  EXPECT_TRUE(watchdog.stalled());
  EXPECT_FALSE(watchdog.look(150, true, 5));
  auto recovered = watchdog.look(160, true, 6);
  ASSERT_TRUE(recovered);
  EXPECT_FALSE(recovered->stalled);
  EXPECT_EQ(recovered->seconds, 60);
  EXPECT_FALSE(watchdog.stalled());
  // It may stall again.
  EXPECT_FALSE(watchdog.look(170, true, 6));
  EXPECT_TRUE(watchdog.look(171, true, 6));
}

TEST(ServiceWatchdogTest, StepsThatEndAreNoStall) {
  ServiceWatchdog watchdog(1);
  for (uint64_t i = 0; i < 100; ++i)
    EXPECT_FALSE(watchdog.look(static_cast<double>(i), true, i));
}

TEST(ServiceWatchdogTest, WhoHasNothingToDoDoesNotStall) {
  ServiceWatchdog watchdog(1);
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(watchdog.look(i, false, 7));
  // Time without work does not count.
  EXPECT_FALSE(watchdog.look(100, true, 7));
  EXPECT_FALSE(watchdog.look(101, true, 7));
  EXPECT_TRUE(watchdog.look(101.5, true, 7));
  // Requests that are taken back end a stall, too.
  auto recovered = watchdog.look(102, false, 7);
  ASSERT_TRUE(recovered);
  EXPECT_FALSE(recovered->stalled);
  EXPECT_FALSE(watchdog.look(103, false, 7));
  EXPECT_FALSE(watchdog.look(104, true, 7));
}

TEST(ServiceWatchdogTest, WorkThatCameAndWentBetweenLooksIsNoStall) {
  ServiceWatchdog watchdog(1);
  EXPECT_FALSE(watchdog.look(0, true, 0));
  EXPECT_FALSE(watchdog.look(50, true, 9));
  EXPECT_FALSE(watchdog.look(51, true, 9));
}

TEST(RestartLimitTest, RestartsAreCountedWithinAWindow) {
  RestartLimit limit(2, 60);
  EXPECT_TRUE(limit.take(0));
  EXPECT_TRUE(limit.take(10));
  Status refused = limit.take(59);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "no restart is left of the 2 in 60 seconds");
  // What was refused does not count.
  EXPECT_TRUE(limit.take(60));
  EXPECT_FALSE(limit.take(69));
  EXPECT_TRUE(limit.take(70));
}

TEST(RestartLimitTest, NoneAndAnyNumber) {
  EXPECT_FALSE(RestartLimit(0, 60).take(0));
  RestartLimit unlimited({}, 60);
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(unlimited.take(0));
}
