//===- ToolCallParserTest.cpp - Calls of tools in a model's text ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCallParser.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

/// All that a text was divided into, as one line.
struct Divided {
  std::string text;
  std::vector<std::string> calls;

  void take(const ToolCallParser::Step &step) {
    text += step.text;
    for (const ToolCallPart &part : step.calls)
      calls.push_back(std::to_string(part.index) + " " + part.id + " " +
                      part.name + part.arguments);
  }
  bool operator==(const Divided &) const = default;
};

std::ostream &operator<<(std::ostream &out, const Divided &divided) {
  out << "'" << divided.text << "'";
  for (const std::string &call : divided.calls)
    out << " [" << call << "]";
  return out;
}

Divided divide(const ToolCallSyntax &syntax,
               const std::vector<std::string_view> &pieces) {
  ToolCallParser parser(syntax, "id");
  Divided divided;
  for (std::string_view piece : pieces)
    divided.take(parser.add(piece));
  divided.take(parser.finish());
  EXPECT_EQ(parser.hasCalls(), !divided.calls.empty());
  return divided;
}

/// The same wherever the text is cut: in one, in two and in three pieces, and
/// byte by byte.
void expect(const ToolCallSyntax &syntax, std::string_view text,
            const Divided &expected) {
  EXPECT_EQ(divide(syntax, {text}), expected) << text;
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i)
    bytes.push_back(text.substr(i, 1));
  EXPECT_EQ(divide(syntax, bytes), expected) << text;
  for (size_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(divide(syntax, {text.substr(0, i), text.substr(i)}), expected)
        << text << ", cut at " << i;
    for (size_t j = i; j <= text.size(); ++j)
      ASSERT_EQ(divide(syntax, {text.substr(0, i), text.substr(i, j - i),
                                text.substr(j)}),
                expected)
          << text << ", cut at " << i << " and " << j;
  }
}

const ToolCallSyntax tagged = {.open = "<tool_call>", .close = "</tool_call>"};
const ToolCallSyntax list = {.open = "[TOOL_CALLS]", .isList = true};
const ToolCallSyntax plain = {};

TEST(ToolCallParser, FindsTaggedCalls) {
  expect(tagged,
         R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)",
         {"", {R"(0 id0 f{"a":1})"}});
  expect(tagged, R"(<tool_call>
{"name": "f"}
</tool_call>
<tool_call>{"name": "g", "parameters": {}}</tool_call>
)",
         {"", {"0 id0 f{}", "1 id1 g{}"}});
  expect(tagged, R"(Well:  <tool_call>{"name": "f"}</tool_call> So.)",
         {"Well: So.", {"0 id0 f{}"}});
  expect(tagged, R"(<tool_call>[{"name": "f"}, {"name": "g"}]</tool_call>)",
         {"", {"0 id0 f{}", "1 id1 g{}"}});
}

TEST(ToolCallParser, TakesArgumentsThatAreText) {
  expect(tagged,
         R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)",
         {"", {R"(0 id0 f{"a": 1})"}});
}

TEST(ToolCallParser, EndsACallWhereTheTextEnds) {
  expect(tagged, R"(<tool_call>{"name": "f"})", {"", {"0 id0 f{}"}});
  expect(tagged, R"(a<tool_call>{"name": "f"} )", {"a", {"0 id0 f{}"}});
}

TEST(ToolCallParser, TellsWhatIsNoCallAsItIs) {
  for (const char *text :
       {"", " ", "plain text", "a < b", "<tool_cal", "<<tool_ca<", "<tool_call",
        "<tool_call>", "x \n <tool_call>", "<tool_call></tool_call>",
        " <tool_call>nonsense</tool_call> ", "<tool_call>{}</tool_call>",
        "<tool_call>[]</tool_call>", R"(<tool_call>{"name": 5}</tool_call>)",
        R"(<tool_call>[{"name": "f"}, 5]</tool_call>)", "</tool_call>",
        R"(<tool_call>{"name": "f"</tool_call>)", "ends in spaces \n ",
        "<tool_call><tool_call></tool_call></tool_call>"})
    expect(tagged, text, {text, {}});
}

TEST(ToolCallParser, GoesOnBehindWhatIsNoCall) {
  expect(
      tagged,
      R"(a <tool_call>no</tool_call> b <tool_call>{"name": "f"}</tool_call>)",
      {"a <tool_call>no</tool_call> b", {"0 id0 f{}"}});
}

TEST(ToolCallParser, FindsLists) {
  expect(list, R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": [1]}}])",
         {"", {R"(0 id0 f{"x":[1]})"}});
  expect(list, R"(Yes. [TOOL_CALLS][{"name": "f"}, {"name": "g"}])",
         {"Yes.", {"0 id0 f{}", "1 id1 g{}"}});
  expect(list, "a [TOOL_CALL", {"a [TOOL_CALL", {}});
  expect(list, "a [TOOL_CALLS] b", {"a [TOOL_CALLS] b", {}});
}

TEST(ToolCallParser, FindsTextsThatAreACall) {
  expect(plain, R"( {"name": "f", "parameters": {"a": "b"}} )",
         {"", {R"(0 id0 f{"a":"b"})"}});
  expect(plain, R"([{"name": "f"}])", {"", {"0 id0 f{}"}});
  for (const char *text :
       {"", " ", " text", "{", "{}", R"({"name": 5})", R"({"name": "f"} x)",
        R"(x {"name": "f"})", "[1]", "[[]]", "{\"a\": 1}"})
    expect(plain, text, {text, {}});
}

TEST(ToolCallParser, SpeaksWhileNoCallCanBegin) {
  ToolCallParser parser(tagged, "id");
  EXPECT_EQ(parser.add("Hello").text, "Hello");
  // Spaces wait for what follows.
  EXPECT_EQ(parser.add(" ").text, "");
  EXPECT_EQ(parser.add("a <").text, " a");
  EXPECT_EQ(parser.add("b").text, " <b");
  ToolCallParser whole(plain, "id");
  EXPECT_EQ(whole.add(" \n").text, "");
  EXPECT_EQ(whole.add("Hello").text, " \nHello");
  EXPECT_EQ(whole.add("{").text, "{");
}

TEST(ToolCallParser, ReadsLongCallsInTheTimeOfTheirLength) {
  // A hundred thousand pieces of a call; looking at all of it for each of them
  // would take minutes.
  ToolCallParser parser(tagged, "id");
  parser.add("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"");
  for (int i = 0; i < 100000; ++i)
    ASSERT_EQ(parser.add("<</tool ").text, "");
  const ToolCallParser::Step step = parser.add("\"}}</tool_call>");
  ASSERT_EQ(step.calls.size(), 1u);
  EXPECT_EQ(step.calls[0].arguments.size(), 800008u);
}

TEST(ToolCallParser, GivesUpOnCallsWithoutAnEnd) {
  ToolCallParser parser(tagged, "id");
  size_t told = parser.add("<tool_call>").text.size();
  const std::string piece(1000, 'x');
  for (int i = 0; i < 2000; ++i)
    told += parser.add(piece).text.size();
  EXPECT_GT(told, 1000000u);
  told += parser.finish().text.size();
  EXPECT_EQ(told, 11u + 2000000u);
}

TEST(ToolCallParser, TellsNoMoreCallsThanAskedFor) {
  ToolCallParser parser(tagged, "id", {}, 1);
  ToolCallParser::Step step =
      parser.add("<tool_call>{\"name\": \"f\"}</tool_call>\n"
                 "<tool_call>{\"name\": \"g\"}</tool_call> and");
  ASSERT_EQ(step.calls.size(), 1u);
  EXPECT_EQ(step.calls[0].name, "f");
  EXPECT_EQ(step.text + parser.finish().text, " and");
  EXPECT_TRUE(parser.hasCalls());
}

TEST(ToolCallSyntax, IsWhatTheTemplateWrites) {
  EXPECT_FALSE(findToolCallSyntax("{{ messages }}"));
  auto syntax = findToolCallSyntax("{% if tools %}<tool_call>");
  ASSERT_TRUE(syntax);
  EXPECT_EQ(syntax->open, "<tool_call>");
  EXPECT_EQ(syntax->close, "</tool_call>");
  syntax = findToolCallSyntax("{% if tools %}[TOOL_CALLS]");
  ASSERT_TRUE(syntax);
  EXPECT_EQ(syntax->open, "[TOOL_CALLS]");
  EXPECT_TRUE(syntax->isList);
  syntax = findToolCallSyntax(R"({% if tools %}{"name":, "parameters":})");
  ASSERT_TRUE(syntax);
  EXPECT_EQ(syntax->open, "");
  EXPECT_EQ(syntax->argumentsKey, "parameters");
}

} // namespace
