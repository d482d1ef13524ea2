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

TEST(Json, BuildsEveryKindOfValue) {
  auto document = parseJson(
      R"({"a": [1, -2, 0.5, "x", null, false, {}], "b": {"c": []}, "d": 3})");
  ASSERT_TRUE(document);
  Json expected = {
      {"a", {1, -2, 0.5, "x", nullptr, false, Json::object()}},
      {"b", {{"c", Json::array()}}},
      {"d", 3},
  };
  EXPECT_EQ(*document, expected);
  EXPECT_TRUE((*document)["a"][0].is_number_unsigned());
  EXPECT_EQ(parseJson("7")->get<int>(), 7);
}

TEST(Json, FindsADuplicateAmongManyKeys) {
  std::string text = "{";
  for (int i = 0; i != 200000; ++i)
    text += "\"k" + std::to_string(i) + "\": 0, ";
  auto document = parseJson(text + "\"k123\": 1}");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message, "duplicate key \"k123\"");
  EXPECT_EQ(parseJson(text + "\"k\": 1}")->size(), 200001u);
}
