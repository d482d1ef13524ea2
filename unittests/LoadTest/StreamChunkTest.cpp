//===- StreamChunkTest.cpp - A piece of a streamed answer -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/StreamChunk.h"

#include <gtest/gtest.h>

#include <string>

using namespace sandwich;

static StreamChunk parse(std::string_view text) {
  Result<StreamChunk> chunk = parseStreamChunk(text);
  EXPECT_TRUE(chunk) << text << ": " << chunk.error().message;
  return chunk ? *chunk : StreamChunk();
}

TEST(StreamChunkTest, FindsTextWhereverServersPutIt) {
  for (
      const char *text :
      {R"({"choices":[{"text":"a"}]})",
       R"({"id":"x","choices":[{"index":0,"logprobs":null,"text":"a","finish_reason":null}],"usage":null})",
       R"({"choices":[{"delta":{"content":"a"}}]})",
       R"({"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"a"}}]})",
       R"({"choices":[{"delta":{"reasoning":"a"}}]})",
       R"({"choices":[{"delta":{"refusal":"a"}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]})",
       R"({"choices":[{"text":""},{"text":"b"}]})"}) {
    EXPECT_TRUE(parse(text).hasText) << text;
    EXPECT_FALSE(parse(text).finishes) << text;
    EXPECT_FALSE(parse(text).error) << text;
  }
}

TEST(StreamChunkTest, OtherStringsAreNoText) {
  for (const char *text :
       {R"({})", R"({"choices":[]})", R"({"choices":[{"text":""}]})",
        R"({"choices":[{"delta":{"role":"assistant","content":""}}]})",
        R"({"choices":[{"delta":{"role":"assistant","content":null}}]})",
        R"({"choices":[{"delta":{"tool_calls":[]}}]})", R"({"text":"a"})",
        R"({"content":"a"})", R"({"choices":{"text":"a"}})",
        R"({"choices":[{"logprobs":{"text":"a","tokens":["text"]}}]})",
        R"({"choices":[{"x":{"delta":{"content":"a"}}}]})",
        R"({"choices":[[{"text":"a"}]]})", R"({"delta":{"content":"a"}})"})
    EXPECT_FALSE(parse(text).hasText) << text;
}

TEST(StreamChunkTest, SeesTheEnd) {
  EXPECT_TRUE(
      parse(R"({"choices":[{"text":"","finish_reason":"stop"}]})").finishes);
  EXPECT_FALSE(
      parse(R"({"choices":[{"text":"","finish_reason":null}]})").finishes);
  const StreamChunk both =
      parse(R"({"choices":[{"text":"a","finish_reason":"length"}]})");
  EXPECT_TRUE(both.finishes && both.hasText);
}

TEST(StreamChunkTest, ReadsUsage) {
  const StreamChunk chunk = parse(
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":8,)"
      R"("total_tokens":15,"prompt_tokens_details":{"cached_tokens":3}}})");
  EXPECT_EQ(chunk.promptTokens, 7u);
  EXPECT_EQ(chunk.outputTokens, 8u);
  EXPECT_EQ(chunk.cachedPromptTokens, 3u);
  const StreamChunk none = parse(
      R"({"prompt_tokens":1,"cached_tokens":1,"usage":{"prompt_tokens":-1,)"
      R"("completion_tokens":1.5,"prompt_tokens_details":null}})");
  EXPECT_FALSE(none.promptTokens);
  EXPECT_FALSE(none.outputTokens);
  EXPECT_FALSE(none.cachedPromptTokens);
}

TEST(StreamChunkTest, ReadsErrors) {
  EXPECT_EQ(parse(R"({"error":{"code":500,"message":"it broke"}})").error,
            "it broke");
  EXPECT_EQ(parse(R"({"error":"it broke"})").error, "it broke");
  EXPECT_EQ(parse(R"({"error":{"code":500}})").error,
            "an error without a message");
  EXPECT_FALSE(parse(R"({"error":null})").error);
}

TEST(StreamChunkTest, RefusesWhatIsNoObject) {
  for (const char *text :
       {"", " ", "[DONE]", "[]", "1", "\"text\"", "null", "{", "{}x",
        R"({"choices":[})", R"({"choices":[{"text":"a]})", "{\"a\":\"\xFF\"}",
        "{'a':1}"})
    EXPECT_FALSE(parseStreamChunk(text)) << text;
  EXPECT_EQ(parseStreamChunk("[]").error().message, "it is no object");
}

TEST(StreamChunkTest, RefusesWhatIsTooDeepOrTooMuch) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') +
           std::string(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(parseStreamChunk(nested(64)));
  EXPECT_FALSE(parseStreamChunk(nested(65)));
  EXPECT_FALSE(parseStreamChunk(nested(100'000)));
  EXPECT_TRUE(parseStreamChunk(R"({"usage":{"prompt_tokens":1099511627776}})"));
  EXPECT_FALSE(
      parseStreamChunk(R"({"usage":{"completion_tokens":1099511627777}})"));
}
