//===- JsonTest.cpp - Reading untrusted JSON ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Json.h"

#include <gtest/gtest.h>

using namespace sandwich;

TEST(Json, KeepsTheOrderOfKeys) {
  auto document = parseJson(R"({"b": 1, "a": [true, null]})");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->begin().key(), "b");
}

TEST(Json, RefusesDuplicateKeys) {
  auto document = parseJson(R"({"a": {"x": 1, "x": 2}})");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message, "duplicate key \"x\"");
}

TEST(Json, AllowsTheSameKeyInDifferentObjects) {
  EXPECT_TRUE(parseJson(R"([{"a": 1}, {"a": {"a": 2}}])"));
}

TEST(Json, RefusesDeepNestingWithoutOverflowingTheStack) {
  auto document = parseJson(std::string(100 << 20, '['));
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message, "JSON nested deeper than 64");
}

TEST(Json, RefusesCutAndTrailingText) {
  EXPECT_FALSE(parseJson(""));
  EXPECT_FALSE(parseJson(R"({"a": )"));
  EXPECT_FALSE(parseJson("{} {}"));
  EXPECT_FALSE(parseJson("\"\xff\""));
}
