//===- TensorParallelismTest.cpp - Tests of what divides a model ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/TensorParallelism.h"

#include <gtest/gtest.h>

using namespace sandwich;

TEST(TensorParallelism, NamesWhatDoesNotDivideAndWhatWould) {
  TensorParallelSizes sizes{32, 4, 11008, 32000};
  EXPECT_EQ(sizes.allowedDegrees(), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_FALSE(sizes.refuse(1));
  EXPECT_FALSE(sizes.refuse(4));
  EXPECT_EQ(sizes.refuse(3),
            "3 ranks do not divide 32 query heads; 1, 2 and 4 are possible");
  EXPECT_EQ(sizes.refuse(8),
            "8 ranks do not divide 4 KV heads; 1, 2 and 4 are possible");
  EXPECT_EQ((TensorParallelSizes{8, 8, 100, 64}.refuse(8)),
            "8 ranks do not divide 100 intermediate features; 1, 2 and 4 are "
            "possible");
  EXPECT_EQ((TensorParallelSizes{8, 8, 64, 101}.refuse(2)),
            "2 ranks do not divide 101 vocabulary entries; only 1 is possible");
}

TEST(TensorParallelism, RefusesNumbersThatAreNoRanks) {
  EXPECT_EQ((TensorParallelSizes{2, 2, 2, 2}.refuse(0)),
            "0 ranks are not between 1 and 64; 1 and 2 are possible");
  EXPECT_EQ((TensorParallelSizes{2, 2, 2, 2}.refuse(-1)),
            "-1 ranks are not between 1 and 64; 1 and 2 are possible");
  EXPECT_EQ((TensorParallelSizes{128, 128, 128, 128}.refuse(128)),
            "128 ranks are not between 1 and 64; 1, 2, 4, 8, 16, 32 and 64 are "
            "possible");
  EXPECT_FALSE(TensorParallelSizes{}.refuse(7));
}
