//===- WorkloadTest.cpp - What requests come, and when --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/Workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

using namespace sandwich;

TEST(TokenRangeTest, ReadsNumbersAndRanges) {
  EXPECT_EQ(*TokenRange::parse("1"), (TokenRange{1, 1}));
  EXPECT_EQ(*TokenRange::parse("64-256"), (TokenRange{64, 256}));
  EXPECT_EQ(*TokenRange::parse("7-7"), (TokenRange{7, 7}));
  for (const char *text :
       {"", "-", "0", "-5", "5-", "0-5", "6-5", "1-2-3", "x", "1.5", " 1", "1 ",
        "16777217", "99999999999999999999", "1-99999999999999999999"})
    EXPECT_FALSE(TokenRange::parse(text)) << text;
  EXPECT_EQ(TokenRange::parse("x").error().message,
            "'x' is neither a number of tokens from 1 to 16777216 nor a range "
            "of them such as 64-256");
}

TEST(WorkloadTest, LengthsFillTheirRanges) {
  const ServingTrace trace = drawLengths(2000, {3, 6}, {5, 5}, 1);
  ASSERT_EQ(trace.size(), 2000u);
  std::set<int64_t> prompts;
  for (const ServingRequest &request : trace) {
    prompts.insert(request.promptTokens);
    EXPECT_EQ(request.outputTokens, 5);
    EXPECT_FALSE(request.arrivalSeconds);
  }
  EXPECT_EQ(prompts, (std::set<int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(drawLengths(2000, {3, 6}, {5, 5}, 1), trace);
  EXPECT_NE(drawLengths(2000, {3, 6}, {5, 5}, 2), trace);
  EXPECT_TRUE(drawLengths(0, {1, 1}, {1, 1}, 1).empty());
}

static ServingTrace arrive(size_t requests, const ArrivalOptions &options,
                           double rate, uint64_t seed = 1) {
  const Result<ServingTrace> trace =
      drawArrivals(ServingTrace(requests), options, rate, seed);
  EXPECT_TRUE(trace) << trace.error().message;
  return *trace;
}

/// Mean, and deviation over the mean, of the times between arrivals.
static std::pair<double, double> gapsOf(const ServingTrace &trace) {
  std::vector<double> gaps;
  double before = 0;
  for (const ServingRequest &request : trace) {
    EXPECT_GE(*request.arrivalSeconds, before);
    gaps.push_back(*request.arrivalSeconds - before);
    before = *request.arrivalSeconds;
  }
  const auto count = static_cast<double>(gaps.size());
  const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / count;
  double squares = 0;
  for (double gap : gaps)
    squares += (gap - mean) * (gap - mean);
  return {mean, std::sqrt(squares / count) / mean};
}

// The draws of these seeds are the same on every machine, and far from the
// bounds.

TEST(WorkloadTest, PoissonArrivalsAreThoseOfReplays) {
  EXPECT_EQ(arrive(100, {}, 4, 7), *drawArrivals(ServingTrace(100), 4, 7));
  const auto [mean, variation] = gapsOf(arrive(20000, {}, 4));
  EXPECT_NEAR(mean, 0.25, 0.01);
  EXPECT_NEAR(variation, 1, 0.03);
}

TEST(WorkloadTest, BurstinessChangesTheVariationAlone) {
  for (double burstiness : {0.1, 0.25, 0.9, 1.1, 4.0, 100.0}) {
    const ArrivalOptions options{.burstiness = burstiness};
    const auto [mean, variation] = gapsOf(arrive(40000, options, 5));
    EXPECT_NEAR(mean, 0.2, 0.01) << burstiness;
    EXPECT_NEAR(variation, 1 / std::sqrt(burstiness),
                0.05 / std::sqrt(burstiness))
        << burstiness;
    EXPECT_EQ(arrive(50, options, 5), arrive(50, options, 5));
    EXPECT_NE(arrive(50, options, 5, 1), arrive(50, options, 5, 2));
  }
}

TEST(WorkloadTest, UniformArrivalsAreAsFarApart) {
  const ServingTrace trace = arrive(5, {.process = ArrivalProcess::Uniform}, 2);
  for (size_t i = 0; i < trace.size(); ++i)
    EXPECT_DOUBLE_EQ(*trace[i].arrivalSeconds, 0.5 * static_cast<double>(i));
}

TEST(WorkloadTest, BurstsComeAtOnce) {
  const ServingTrace trace =
      arrive(7, {.process = ArrivalProcess::Burst, .burstSize = 3}, 6);
  const double expected[] = {0, 0, 0, 0.5, 0.5, 0.5, 1};
  for (size_t i = 0; i < trace.size(); ++i)
    EXPECT_DOUBLE_EQ(*trace[i].arrivalSeconds, expected[i]);
}

TEST(WorkloadTest, LengthsStay) {
  const ServingTrace lengths = drawLengths(9, {1, 90}, {1, 90}, 3);
  for (ArrivalProcess process :
       {ArrivalProcess::Random, ArrivalProcess::Uniform,
        ArrivalProcess::Burst}) {
    const Result<ServingTrace> trace =
        drawArrivals(lengths, {.process = process, .burstiness = 2}, 3, 1);
    ASSERT_TRUE(trace);
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_EQ((*trace)[i].promptTokens, lengths[i].promptTokens);
      EXPECT_EQ((*trace)[i].outputTokens, lengths[i].outputTokens);
    }
  }
}

TEST(WorkloadTest, RefusesRatesThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (double bad : {0.0, -1.0, nan, infinity}) {
    EXPECT_FALSE(drawArrivals(ServingTrace(1), ArrivalOptions(), bad, 1));
    EXPECT_FALSE(drawArrivals(ServingTrace(1), {.burstiness = bad}, 1, 1));
  }
  EXPECT_FALSE(drawArrivals(ServingTrace(1),
                            {.process = ArrivalProcess::Burst, .burstSize = 0},
                            1, 1));
}
