//===- BlockKernelsTest.cpp - Vectorized loops over blocks of logits ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Sampling/BlockKernels.h"

#include "TargetsOfTests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sandwich;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// Normal logits in a block that is not aligned.
static std::vector<float> makeBlock(float deviation) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> block(blockSize + 1);
  std::ranges::generate(block, [&] { return normal(generator); });
  return block;
}

TEST(BlockKernelsTest, FindsTheLargestWhereverItIs) {
  forEachTarget([] {
    std::vector<float> block = makeBlock(1);
    const float *logits = block.data() + 1;
    EXPECT_EQ(findLargest(logits),
              *std::max_element(logits, logits + blockSize));
    for (size_t i = 1; i <= blockSize; ++i) {
      const float before = block[i];
      for (float value : {100.0f, infinity}) {
        block[i] = value;
        EXPECT_EQ(findLargest(logits), value);
      }
      block[i] = before;
    }
    std::ranges::fill(block, -infinity);
    EXPECT_EQ(findLargest(logits), -infinity);
  });
}

TEST(BlockKernelsTest, FindsNaNWhereverItIs) {
  forEachTarget([] {
    std::vector<float> block = makeBlock(1);
    for (float largest : {1.0f, 1e30f}) {
      block[1] = largest;
      for (size_t i = 2; i <= blockSize; ++i) {
        const float before = block[i];
        block[i] = i % 2 ? NAN : -NAN;
        EXPECT_EQ(findLargest(block.data() + 1), infinity) << i;
        block[i] = before;
      }
    }
  });
}

TEST(BlockKernelsTest, SumsHaveTheErrorStated) {
  forEachTarget([] {
    for (float deviation : {1e-6f, 0.1f, 1.0f, 10.0f, 1e4f})
      for (float offset : {0.0f, 7.5f, -1e3f, 1e30f})
        for (double scale : {1e-30, 0.3, 1.0, 50.0, 1e30}) {
          std::vector<float> block = makeBlock(deviation);
          for (float &logit : block)
            logit += offset;
          block[5] = -infinity;
          block[6] = -3e38f;
          const float *logits = block.data() + 1;
          const float largest = findLargest(logits);
          long double exact = 0;
          for (size_t i = 0; i < blockSize; ++i)
            exact += std::exp((static_cast<long double>(logits[i]) - largest) *
                              scale);
          const double sum = sumWeights(logits, largest, scale);
          ASSERT_NEAR(sum, static_cast<double>(exact), sum * weightError)
              << deviation << ' ' << offset << ' ' << scale;
        }
  });
}

TEST(BlockKernelsTest, RoughSumsHaveTheErrorStated) {
  forEachTarget([] {
    for (float deviation : {1e-6f, 0.1f, 1.0f, 3.0f, 10.0f, 1e4f})
      for (float offset : {0.0f, 7.5f, -1e3f, 1e30f}) {
        std::vector<float> block = makeBlock(deviation);
        for (float &logit : block)
          logit += offset;
        block[5] = -infinity;
        block[6] = -3e38f;
        const float *logits = block.data() + 1;
        const float largest = findLargest(logits);
        double exact = 0;
        for (size_t i = 0; i < blockSize; ++i)
          exact += std::exp(static_cast<double>(logits[i]) - largest);
        ASSERT_NEAR(sumWeightsRoughly(logits, largest), exact,
                    exact * roughWeightError)
            << deviation << ' ' << offset;
      }
    // The worst of single weights: far from the largest, but many.
    for (float distance = 0; distance < 80; distance += 0.0137f) {
      std::vector<float> block(blockSize, -distance);
      block[3] = 0;
      const double exact = 1 + (blockSize - 1) * std::exp(double(-distance));
      ASSERT_NEAR(sumWeightsRoughly(block.data(), 0), exact,
                  exact * roughWeightError)
          << distance;
    }
  });
}

// The error of one weight: the block's other weights are next to nothing.
TEST(BlockKernelsTest, WeightsHaveTheErrorStated) {
  forEachTarget([] {
    std::vector<float> block(blockSize, -infinity);
    block[0] = 0;
    for (float logit = 0; logit > -18; logit -= 0.00371f) {
      block[77] = logit;
      const double weight = sumWeights(block.data(), 0, 1) - 1;
      // Adding to 1 rounds.
      ASSERT_NEAR(weight, std::exp(double(logit)),
                  std::exp(double(logit)) * weightError + 2e-9);
    }
  });
}

TEST(BlockKernelsTest, FindsWhatReachesAThreshold) {
  forEachTarget([] {
    const std::vector<float> block = makeBlock(1);
    const float *logits = block.data() + 1;
    for (float threshold : {-infinity, -0.3f, 1.5f, logits[100], 9.0f}) {
      std::vector<uint32_t> expected;
      for (uint32_t i = 0; i < blockSize; ++i)
        if (logits[i] >= threshold)
          expected.push_back(i);
      uint32_t positions[blockSize];
      const size_t count = findAtLeast(logits, threshold, positions);
      EXPECT_EQ(std::vector<uint32_t>(positions, positions + count), expected);
    }
  });
}

TEST(BlockKernelsTest, BarsWhatIsNotAllowed) {
  forEachTarget([] {
    const std::vector<float> block = makeBlock(1);
    std::mt19937_64 generator(2);
    for (int i = 0; i < 20; ++i) {
      std::vector<uint64_t> allowed(blockSize / 64);
      for (uint64_t &word : allowed)
        word = i == 0 ? 0 : i == 1 ? ~uint64_t{0} : generator();
      std::vector<float> copy(blockSize);
      barOthers(block.data() + 1, allowed.data(), copy.data());
      std::vector<float> same(block.begin() + 1, block.end());
      barOthers(same.data(), allowed.data(), same.data());
      for (size_t j = 0; j < blockSize; ++j) {
        const bool isAllowed = (allowed[j / 64] >> (j % 64)) & 1;
        ASSERT_EQ(copy[j], isAllowed ? block[j + 1] : -infinity);
      }
      EXPECT_EQ(same, copy);
    }
  });
}
