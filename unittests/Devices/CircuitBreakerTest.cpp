//===- CircuitBreakerTest.cpp - When to try again -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/CircuitBreaker.h"

#include <gtest/gtest.h>

using namespace sandwich;
using State = CircuitBreaker::State;

static CircuitBreaker make(CircuitBreakerOptions options, uint64_t seed = 1) {
  auto breaker = CircuitBreaker::create(options, seed);
  EXPECT_TRUE(breaker) << breaker.error().message;
  return *std::move(breaker);
}

TEST(CircuitBreakerTest, OpensAfterFailuresInARow) {
  CircuitBreaker breaker = make({.failures = 3, .jitter = 0});
  breaker.fail(0);
  breaker.fail(0);
  breaker.succeed();
  breaker.fail(0);
  breaker.fail(0);
  EXPECT_TRUE(breaker.allow(0));
  EXPECT_EQ(breaker.state(), State::Closed);
  breaker.fail(5);
  EXPECT_EQ(breaker.state(), State::Open);
  EXPECT_DOUBLE_EQ(breaker.trialTime(), 6);
  EXPECT_FALSE(breaker.allow(5.9));
}

TEST(CircuitBreakerTest, OneTrialDecides) {
  CircuitBreaker breaker = make({.jitter = 0});
  breaker.fail(0);
  EXPECT_TRUE(breaker.allow(1));
  EXPECT_EQ(breaker.state(), State::HalfOpen);
  EXPECT_FALSE(breaker.allow(1));
  breaker.succeed();
  EXPECT_EQ(breaker.state(), State::Closed);
  EXPECT_TRUE(breaker.allow(1));
}

TEST(CircuitBreakerTest, TimesGrowUpToTheirLimit) {
  CircuitBreaker breaker =
      make({.openSeconds = 1, .growth = 3, .mostOpenSeconds = 10, .jitter = 0});
  breaker.fail(0);
  double now = 0;
  for (const double seconds : {1, 3, 9, 10, 10}) {
    EXPECT_DOUBLE_EQ(breaker.trialTime(), now + seconds);
    now = breaker.trialTime();
    EXPECT_TRUE(breaker.allow(now));
    breaker.fail(now);
  }
}

/// What passes its trial and fails again is left alone for longer.
TEST(CircuitBreakerTest, FlappingDoesNotBeginAnew) {
  CircuitBreaker breaker = make({.jitter = 0});
  breaker.fail(0);
  EXPECT_TRUE(breaker.allow(1));
  breaker.succeed();
  breaker.fail(1);
  EXPECT_DOUBLE_EQ(breaker.trialTime(), 3);
  EXPECT_TRUE(breaker.allow(3));
  breaker.succeed();
  // This time it works.
  breaker.succeed();
  breaker.fail(4);
  EXPECT_DOUBLE_EQ(breaker.trialTime(), 5);
}

TEST(CircuitBreakerTest, TimesVaryWithinTheJitter) {
  double least = 1e9, most = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CircuitBreaker breaker = make({.jitter = 0.2}, seed);
    breaker.fail(0);
    least = std::min(least, breaker.trialTime());
    most = std::max(most, breaker.trialTime());
  }
  EXPECT_GE(least, 0.8);
  EXPECT_LT(least, 0.85);
  EXPECT_LE(most, 1.2);
  EXPECT_GT(most, 1.15);
}

TEST(CircuitBreakerTest, FailuresWhileItIsOpenChangeNothing) {
  CircuitBreaker breaker = make({.jitter = 0});
  breaker.fail(0);
  breaker.fail(0.5);
  EXPECT_DOUBLE_EQ(breaker.trialTime(), 1);
  breaker.beginTrial();
  EXPECT_EQ(breaker.state(), State::HalfOpen);
  breaker.fail(0.5);
  EXPECT_DOUBLE_EQ(breaker.trialTime(), 2.5);
}

TEST(CircuitBreakerTest, RefusesOptionsThatMakeNoSense) {
  const auto refuses = [](CircuitBreakerOptions options) {
    auto breaker = CircuitBreaker::create(options, 1);
    return !breaker && breaker.error().kind == ErrorKind::InvalidArgument;
  };
  EXPECT_TRUE(refuses({.failures = 0}));
  EXPECT_TRUE(refuses({.openSeconds = 0}));
  EXPECT_TRUE(refuses({.openSeconds = 2, .mostOpenSeconds = 1}));
  EXPECT_TRUE(refuses({.growth = 0.5}));
  EXPECT_TRUE(refuses({.jitter = 1}));
  EXPECT_TRUE(refuses({.jitter = -0.1}));
}
