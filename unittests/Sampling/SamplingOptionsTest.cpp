//===- SamplingOptionsTest.cpp - How tokens are chosen --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/SamplingOptions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

using namespace sandwich;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The message for options that must not be valid.
static std::string messageOf(const SamplingOptions &options) {
  Status status = options.validate();
  EXPECT_FALSE(status);
  if (status)
    return "";
  EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
  return status.error().message;
}

TEST(SamplingOptionsTest, EachErrorNamesFieldValueAndRange) {
  const std::pair<SamplingOptions, const char *> cases[] = {
      {{.temperature = -0.5f},
       "temperature is -0.5; it must be a number of at least 0"},
      {{.topP = 0}, "top-p is 0; it must be above 0 and at most 1"},
      {{.minP = 1.5f}, "min-p is 1.5; it must be from 0 to 1"},
      {{.repetitionPenalty = 0},
       "repetition-penalty is 0; it must be a number above 0"},
      {{.frequencyPenalty = 2.5f},
       "frequency-penalty is 2.5; it must be from -2 to 2"},
      {{.presencePenalty = -3},
       "presence-penalty is -3; it must be from -2 to 2"},
      {{.logProbabilities = 21},
       "log-probabilities is 21; it must be from 0 to 20"},
      {{.logitBias = {{7, 101.0f}}},
       "logit-bias of token 7 is 101; it must be from -100 to 100, or minus "
       "infinity"},
      {{.logitBias = {{-1, 0.0f}}},
       "a token of logit-bias is -1; it must be at least 0"}};
  for (const auto &[options, message] : cases)
    EXPECT_EQ(messageOf(options), message);
}

TEST(SamplingOptionsTest, RefusesWhatIsNoNumber) {
  for (float bad : {NAN, infinity}) {
    messageOf({.repetitionPenalty = bad});
    messageOf({.frequencyPenalty = bad});
    messageOf({.presencePenalty = bad});
    messageOf({.temperature = bad});
    messageOf({.minP = bad});
    messageOf({.topP = bad});
    messageOf({.logitBias = {{0, bad}}});
  }
}

TEST(SamplingOptionsTest, AcceptsTheEndsOfRanges) {
  EXPECT_TRUE(SamplingOptions().validate());
  EXPECT_TRUE(SamplingOptions({.logitBias = {{0, -100.0f}, {1, -infinity}},
                               .frequencyPenalty = 2,
                               .presencePenalty = -2,
                               .temperature = 3e38f,
                               .minP = 1,
                               .topP = 1e-45f,
                               .logProbabilities = 20})
                  .validate());
}

TEST(SamplingOptionsTest, ChecksTokensAgainstTheVocabulary) {
  const SamplingOptions options{.logitBias = {{3, 1.0f}, {9, 1.0f}}};
  EXPECT_TRUE(options.checkTokens(10));
  Status status = options.checkTokens(9);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "logit-bias names token 9; the model has 9");
  EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
  EXPECT_TRUE(SamplingOptions().checkTokens(0));
}
