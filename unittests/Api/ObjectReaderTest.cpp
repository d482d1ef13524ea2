//===- ObjectReaderTest.cpp - The fields of a JSON object, checked --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ObjectReader.h"

#include <gtest/gtest.h>
#include <limits>

using namespace sandwich;

namespace {

Json parse(std::string_view text) {
  auto json = parseJson(text);
  EXPECT_TRUE(json) << json.error().message;
  return json ? *json : Json();
}

/// What `read` finds wrong with the object `text`.
template <typename Read>
ApiError errorOf(std::string_view text, Read read,
                 const std::string &path = "") {
  const Json json = parse(text);
  ObjectReader reader(json, path);
  read(reader);
  auto error = reader.finish();
  EXPECT_TRUE(error) << text;
  return error.value_or(ApiError{});
}

TEST(ObjectReader, ReadsWhatIsThere) {
  const Json json = parse(R"({"a": true, "b": -1.5, "c": 7, "d": "text",
                              "e": {"f": 1}, "g": [1], "h": null})");
  ObjectReader reader(json, "");
  EXPECT_EQ(reader.boolean("a"), true);
  EXPECT_EQ(reader.number("b", -2, 2), -1.5);
  EXPECT_EQ(reader.number("c", 0, 10), 7.0);
  EXPECT_EQ(reader.integer("c", 7, 7), 7);
  EXPECT_EQ(reader.string("d", 4), "text");
  ASSERT_TRUE(reader.object("e"));
  ASSERT_TRUE(reader.list("g"));
  EXPECT_EQ(reader.find("h"), nullptr);
  EXPECT_EQ(reader.boolean("h"), std::nullopt);
  EXPECT_EQ(reader.integer("none", 0, 1), std::nullopt);
  EXPECT_FALSE(reader.finish());
}

TEST(ObjectReader, RefusesWhatIsNoObject) {
  const auto nothing = [](ObjectReader &reader) {
    EXPECT_EQ(reader.find("a"), nullptr);
    EXPECT_EQ(reader.boolean("a"), std::nullopt);
  };
  ApiError error = errorOf("[1]", nothing);
  EXPECT_EQ(error.message, "the request is a list; it must be an object");
  EXPECT_FALSE(error.param);
  error = errorOf("5", nothing, "messages[3].");
  EXPECT_EQ(error.message, "messages[3] is 5; it must be an object");
  EXPECT_EQ(error.param, "messages[3]");
}

TEST(ObjectReader, NamesFieldsThatAreWrong) {
  const auto message = [](std::string_view text, auto read) {
    const ApiError error = errorOf(text, read, "a.");
    EXPECT_EQ(error.status, 400u);
    EXPECT_EQ(error.param, "a.x");
    return error.message;
  };
  EXPECT_EQ(message(R"({"x": 1})", [](auto &r) { r.boolean("x"); }),
            "a.x is 1; it must be true or false");
  EXPECT_EQ(message(R"({"x": "1"})", [](auto &r) { r.number("x", 0, 1); }),
            "a.x is \"1\"; it must be a number from 0 to 1");
  EXPECT_EQ(message(R"({"x": 1.5})", [](auto &r) { r.number("x", 0, 1); }),
            "a.x is 1.5; it must be a number from 0 to 1");
  EXPECT_EQ(message(R"({"x": {}})", [](auto &r) { r.integer("x", 0, 1); }),
            "a.x is an object; it must be a whole number from 0 to 1");
  EXPECT_EQ(message(R"({"x": []})", [](auto &r) { r.string("x", 5); }),
            "a.x is a list; it must be a string");
  EXPECT_EQ(message(R"({"x": "123456"})", [](auto &r) { r.string("x", 5); }),
            "a.x has 6 bytes; it must have at most 5");
  EXPECT_EQ(message(R"({"x": []})", [](auto &r) { r.object("x"); }),
            "a.x is a list; it must be an object");
  EXPECT_EQ(message(R"({"x": {}})", [](auto &r) { r.list("x"); }),
            "a.x is an object; it must be a list");
  EXPECT_EQ(message(R"({"x": 2})", [](auto &r) { r.requireDefault("x", 1); }),
            "a.x is 2; this server knows it only as 1");
}

TEST(ObjectReader, TakesWholeNumbersOnly) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const auto read = [](std::string_view number) {
    const Json json = parse("{\"x\": " + std::string(number) + "}");
    ObjectReader reader(json, "");
    auto value = reader.integer("x", least, most);
    EXPECT_EQ(value.has_value(), !reader.finish().has_value());
    return value;
  };
  EXPECT_EQ(read("9223372036854775807"), most);
  EXPECT_EQ(read("-9223372036854775808"), least);
  EXPECT_EQ(read("16.0"), 16);
  EXPECT_EQ(read("-16.0"), -16);
  EXPECT_EQ(read("1e3"), 1000);
  EXPECT_EQ(read("-0"), 0);
  EXPECT_EQ(read("9007199254740992.0"), int64_t{1} << 53);
  for (const char *number :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616",
        "-9223372036854775809", "1.5", "1e300", "-1e19", "1e-3", "true",
        "\"1\"", "[]"})
    EXPECT_EQ(read(number), std::nullopt) << number;
}

TEST(ObjectReader, TellsTheFirstError) {
  const ApiError error =
      errorOf(R"({"a": 1, "b": 2})", [](ObjectReader &reader) {
        reader.boolean("b");
        reader.boolean("a");
        EXPECT_TRUE(reader.hasError());
      });
  EXPECT_EQ(error.param, "b");
}

TEST(ObjectReader, RefusesFieldsThatNobodyRead) {
  const ApiError error =
      errorOf(R"({"a": 1, "b": 2})", [](ObjectReader &r) { r.ignore({"a"}); });
  EXPECT_EQ(error.param, "b");
  EXPECT_EQ(error.code, "unknown_parameter");
  // Null says nothing, whoever it is said of.
  const Json json = parse(R"({"a": null})");
  ObjectReader reader(json, "");
  EXPECT_FALSE(reader.finish());
}

TEST(ObjectReader, ReadsObjectsWithin) {
  const auto read = [](ObjectReader &reader) {
    reader.within("a", [](ObjectReader &within) {
      within.within("b", [](ObjectReader &inner) { inner.boolean("c"); });
    });
  };
  EXPECT_EQ(errorOf(R"({"a": {"b": {"c": 1}}})", read).param, "a.b.c");
  EXPECT_EQ(errorOf(R"({"a": {"b": {"d": 1}}})", read).param, "a.b.d");
  EXPECT_EQ(errorOf(R"({"a": {"b": 5}})", read).param, "a.b");
  EXPECT_EQ(errorOf(R"({"a": 5})", read).param, "a");
  const Json json = parse(R"({"a": {"b": {"c": true}}})");
  ObjectReader reader(json, "");
  read(reader);
  EXPECT_FALSE(reader.finish());
}

TEST(ObjectReader, CutsWhatItQuotes) {
  EXPECT_EQ(excerpt(Json("short")), "\"short\"");
  EXPECT_EQ(excerpt(Json(std::string(100, 'x'))),
            '"' + std::string(60, 'x') + "...\"");
  // Between characters.
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "\xE2\x82\xAC";
  const std::string cut = excerpt(Json(text));
  EXPECT_EQ(cut.size(), 60 + 3 + 2);
  EXPECT_EQ(excerpt(Json::array({1, 2})), "a list");
  EXPECT_EQ(excerpt(parse("{}")), "an object");
  EXPECT_EQ(excerpt(Json(1.5)), "1.5");
}

TEST(ObjectReader, TellsLongNamesInShort) {
  const std::string name(100000, 'x');
  const ApiError error =
      errorOf("{\"" + name + "\": 1}", [](ObjectReader &) {});
  EXPECT_LT(error.message.size(), 200u);
  EXPECT_LT(error.param->size(), 200u);
}

} // namespace
