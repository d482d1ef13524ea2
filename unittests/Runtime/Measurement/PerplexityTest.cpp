//===- PerplexityTest.cpp - The windows of a text -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/Perplexity.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace sandwich;

namespace {

TEST(Perplexity, WindowsOverlapByWhatIsNotNew) {
  EXPECT_EQ(perplexityWindows(10, 4, 2),
            (std::vector<PerplexityWindow>{
                {0, 4, 1}, {2, 4, 4}, {4, 4, 6}, {6, 4, 8}}));
  EXPECT_EQ(perplexityWindows(4, 8, 4),
            (std::vector<PerplexityWindow>{{0, 4, 1}}));
  EXPECT_EQ(perplexityWindows(2, 2, 1),
            (std::vector<PerplexityWindow>{{0, 2, 1}}));
  EXPECT_TRUE(perplexityWindows(1, 2, 1).empty());
}

TEST(Perplexity, EveryTokenButTheFirstIsScoredOnce) {
  for (size_t tokens : {2, 3, 17, 64, 65})
    for (size_t window : {2, 3, 5, 16, 64, 100})
      for (size_t stride = 1; stride <= window; ++stride) {
        size_t next = 1;
        for (const PerplexityWindow &each :
             perplexityWindows(tokens, window, stride)) {
          EXPECT_EQ(each.firstScored, next);
          EXPECT_LE(each.size, window);
          EXPECT_LT(each.begin, each.firstScored);
          EXPECT_GT(each.begin + each.size, each.firstScored);
          if (each.begin > 0) {
            EXPECT_GE(each.firstScored - each.begin, window - stride);
          }
          next = each.begin + each.size;
        }
        EXPECT_EQ(next, tokens) << window << " " << stride;
      }
}

TEST(Perplexity, IsTheExponentialOfTheMean) {
  const Perplexity perplexity{
      .tokens = 4, .meanNats = std::log(12.0), .meanNatsError = 0.25};
  EXPECT_NEAR(perplexity.value(), 12, 1e-12);
  EXPECT_NEAR(perplexity.error(), 3, 1e-12);
}

} // namespace
