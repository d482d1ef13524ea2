//===- ServingTraceTest.cpp - What requests a server gets -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ServingTrace.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace sandwich;

static std::string errorOf(std::string_view text) {
  Result<ServingTrace> trace = parseServingTrace(text);
  return trace ? "" : trace.error().message;
}

TEST(ServingTrace, ReadsNumbers) {
  Result<ServingTrace> trace =
      parseServingTrace("# lengths\n100 20\n7\r\n\n 1030,3 # long\n");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(*trace, (ServingTrace{{100, 20, {}}, {7, 0, {}}, {1030, 3, {}}}));
}

TEST(ServingTrace, ReadsObjects) {
  Result<ServingTrace> trace = parseServingTrace(
      "{\"prompt_tokens\": 5, \"output_tokens\": 9, \"arrival_seconds\": 0}\n"
      "{\"arrival_seconds\": 0.25, \"prompt_tokens\": 6}");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(*trace, (ServingTrace{{5, 9, 0.0}, {6, 0, 0.25}}));
}

TEST(ServingTrace, NamesTheLineAtFault) {
  EXPECT_EQ(errorOf("1\nx\n"),
            "line 2: 'x' is not the tokens of a prompt and, after a space, "
            "those generated");
  EXPECT_NE(errorOf("1 2 3\n"), "");
  EXPECT_NE(errorOf("-1\n"), "");
  EXPECT_NE(errorOf("99999999999999999999\n"), "");
  EXPECT_EQ(errorOf("0\n"), "line 1: a prompt has at least one token");
  EXPECT_EQ(errorOf("# none\n"), "the trace has no prompts");
  EXPECT_EQ(errorOf("{}"), "line 1: \"prompt_tokens\" is absent");
  EXPECT_EQ(errorOf("{\"prompt_tokens\": 1.5}"),
            "line 1: \"prompt_tokens\" is not an integer of 1 to 16777216");
  EXPECT_EQ(errorOf("{\"prompt_tokens\": 1, \"output_tokens\": -1}"),
            "line 1: \"output_tokens\" is not an integer of 0 to 16777216");
  EXPECT_EQ(errorOf("\n{\"prompt_tokens\": 1, \"prompt\": \"hi\"}"),
            "line 2: \"prompt\" is not known");
  EXPECT_EQ(errorOf("{\"prompt_tokens\": 1, \"arrival_seconds\": 1}\n2 2"),
            "line 2: arrival times are on all lines or on none");
  EXPECT_EQ(errorOf("{\"prompt_tokens\": 1, \"arrival_seconds\": 1}\n"
                    "{\"prompt_tokens\": 1, \"arrival_seconds\": 0.5}"),
            "line 2: arrives before the request of the line before");
  EXPECT_NE(errorOf("{\"prompt_tokens\": 1"), "");
}

TEST(ServingTrace, NamesTheFile) {
  test::TemporaryFolder folder;
  std::string path = folder.write("trace", "1\n0\n");
  Result<ServingTrace> trace = readServingTrace(path);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message,
            path + ": line 2: a prompt has at least one token");
  EXPECT_EQ(findServingTrace("sharegpt")->size(), 64u);
  EXPECT_EQ(findServingTrace(folder.write("own", "5 6"))->size(), 1u);
}

TEST(ServingTrace, DrawsTheLengthsItPromises) {
  for (const LengthDistribution &distribution : lengthDistributions()) {
    Result<ServingTrace> trace =
        makeServingTrace(distribution.name, 4000, 2, 7);
    ASSERT_TRUE(trace);
    double prompts = 0;
    double logarithms = 0;
    double outputs = 0;
    for (const ServingRequest &request : *trace) {
      prompts += static_cast<double>(request.promptTokens);
      logarithms += std::log(request.promptTokens);
      outputs += static_cast<double>(request.outputTokens);
    }
    // Cutting long ones takes a few percent of the mean.
    EXPECT_NEAR(prompts / 4000, distribution.meanPromptTokens,
                distribution.meanPromptTokens * 0.08);
    EXPECT_NEAR(outputs / 4000, distribution.meanOutputTokens,
                distribution.meanOutputTokens * 0.08);
    EXPECT_NEAR(logarithms / 4000,
                std::log(distribution.meanPromptTokens) - 0.5, 0.1);
    EXPECT_NEAR(*trace->back().arrivalSeconds, 2000, 120);
    EXPECT_EQ(*trace, *makeServingTrace(distribution.name, 4000, 2, 7));
    EXPECT_NE(*trace, *makeServingTrace(distribution.name, 4000, 2, 8));
  }
}

TEST(ServingTrace, RefusesWhatMakesNoTrace) {
  auto refusal = [](std::string_view name, int64_t requests, double rate) {
    Result<ServingTrace> trace = makeServingTrace(name, requests, rate, 1);
    return trace ? "" : trace.error().message;
  };
  EXPECT_EQ(refusal("alpaca", 1, 0),
            "no trace is called 'alpaca'; there are sharegpt, lmsys");
  EXPECT_EQ(refusal("lmsys", 0, 0), "a trace has at least one request");
  EXPECT_NE(refusal("lmsys", 1, -1), "");
  EXPECT_NE(refusal("lmsys", 1, NAN), "");
  EXPECT_EQ(makeServingTrace("lmsys", 2, 0, 1)->back().arrivalSeconds,
            std::nullopt);
}

TEST(ServingTraceTest, ArrivalsAreDrawnAnew) {
  const ServingTrace trace(
      4000, {.promptTokens = 3, .outputTokens = 7, .arrivalSeconds = 1});
  const ServingTrace drawn = *drawArrivals(trace, 20, 1);
  ASSERT_EQ(drawn.size(), trace.size());
  double before = 0;
  size_t shortGaps = 0;
  for (const ServingRequest &request : drawn) {
    EXPECT_EQ(request.promptTokens, 3);
    EXPECT_EQ(request.outputTokens, 7);
    EXPECT_GT(*request.arrivalSeconds, before);
    shortGaps += *request.arrivalSeconds - before < 0.05;
    before = *request.arrivalSeconds;
  }
  EXPECT_NEAR(before, 200, 10);
  // Of a Poisson process, 1 - 1/e are shorter than the mean.
  EXPECT_NEAR(static_cast<double>(shortGaps), 0.632 * 4000, 120);
  EXPECT_EQ(*drawArrivals(trace, 20, 1), drawn);
  EXPECT_NE(*drawArrivals(trace, 20, 2), drawn);
  for (double rate :
       {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(drawArrivals(trace, rate, 1));
}
