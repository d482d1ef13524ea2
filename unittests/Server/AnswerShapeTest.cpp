//===- AnswerShapeTest.cpp - Texts in the words of an endpoint ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AnswerShape.h"

#include "sandwich/Support/File.h"

#include <gtest/gtest.h>
#include <limits>

using namespace sandwich;

namespace {

std::optional<Tokenizer> jargonTokenizer() {
  auto text = readTextFile(TOKENIZER_FILE, size_t{1} << 20);
  EXPECT_TRUE(text);
  auto tokenizer = Tokenizer::fromText(text ? *text : "");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::optional(*tokenizer) : std::nullopt;
}

AnswerShape::Identity identity(bool scored = false, bool hasUsage = false) {
  return {.id = "id",
          .model = "m\"",
          .fingerprint = "fp",
          .created = 7,
          .scored = scored,
          .hasUsage = hasUsage};
}

/// What an event says, which must be one line of JSON between "data: " and an
/// empty line.
Json dataOf(const std::string &event) {
  EXPECT_TRUE(event.starts_with("data: ")) << event;
  EXPECT_TRUE(event.ends_with("}\n\n")) << event;
  EXPECT_EQ(event.find('\n'), event.size() - 2) << event;
  auto json = parseJson(std::string_view(event).substr(6, event.size() - 8));
  EXPECT_TRUE(json) << event;
  return json ? *json : Json();
}

TEST(AnswerShape, CountsCharacters) {
  EXPECT_EQ(countCharacters(""), 0u);
  EXPECT_EQ(countCharacters("a\xC3\xB6\xE2\x82\xAC\xF0\x9F\x98\x80"), 4u);
}

TEST(AnswerShape, WritesAnyBytesAsJson) {
  EXPECT_EQ(jsonString("a\"\\\n\x01"), R"("a\"\\\n\u0001")");
  EXPECT_EQ(jsonString("\xFF"), "\"\xEF\xBF\xBD\"");
}

TEST(AnswerShape, TellsUsage) {
  EXPECT_EQ(
      TokenUsage({.promptTokens = 5, .cachedTokens = 2, .generatedTokens = 7})
          .toJson()
          .dump(),
      R"({"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,)"
      R"("prompt_tokens_details":{"cached_tokens":2}})");
}

TEST(AnswerShape, TellsCompletionsInPieces) {
  auto shape = completionShape(identity(), std::nullopt);
  EXPECT_EQ(shape->opening(0), "");
  EXPECT_EQ(shape->chunk({.index = 2, .text = "a\n"}, {}),
            R"(data: {"id":"id","object":"text_completion","created":7,)"
            R"("model":"m\"","system_fingerprint":"fp","choices":[{"index":2,)"
            R"("text":"a\n","logprobs":null,"finish_reason":null}]})"
            "\n\n");
  EXPECT_EQ(dataOf(shape->chunk({.finish = "stop"},
                                {}))["choices"][0]["finish_reason"],
            "stop");
}

TEST(AnswerShape, TellsChatsInPieces) {
  auto shape = chatShape(identity(), std::nullopt);
  const Json opening = dataOf(shape->opening(1));
  EXPECT_EQ(opening["object"], "chat.completion.chunk");
  EXPECT_EQ(opening["choices"].dump(),
            R"([{"index":1,"delta":{"role":"assistant","content":""},)"
            R"("logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(dataOf(shape->chunk({.text = "a"}, {}))["choices"].dump(),
            R"([{"index":0,"delta":{"content":"a"},"logprobs":null,)"
            R"("finish_reason":null}])");
  EXPECT_EQ(dataOf(shape->chunk({.finish = "length"}, {}))["choices"].dump(),
            R"([{"index":0,"delta":{},"logprobs":null,)"
            R"("finish_reason":"length"}])");
  const ChoicePart calls = {
      .text = "a",
      .calls = {{.index = 0, .id = "c", .name = "f", .arguments = "{"},
                {.index = 0, .arguments = "}"}}};
  EXPECT_EQ(dataOf(shape->chunk(calls, {}))["choices"][0]["delta"].dump(),
            R"({"content":"a","tool_calls":[{"index":0,"id":"c",)"
            R"("type":"function","function":{"name":"f","arguments":"{"}},)"
            R"({"index":0,"function":{"arguments":"}"}}]})");
}

TEST(AnswerShape, TellsUsageInPiecesWhereItIsWanted) {
  for (auto &shape : {completionShape(identity(false, true), std::nullopt),
                      chatShape(identity(false, true), std::nullopt)}) {
    EXPECT_TRUE(dataOf(shape->chunk({.text = "a"}, {}))["usage"].is_null());
    EXPECT_EQ(dataOf(shape->chunk(
                  {.text = "a"},
                  TokenUsage{.promptTokens = 3}))["usage"]["total_tokens"],
              3);
    const Json last = dataOf(shape->usageChunk({.generatedTokens = 4}));
    EXPECT_EQ(last["choices"].dump(), "[]");
    EXPECT_EQ(last["usage"]["completion_tokens"], 4);
  }
  auto without = completionShape(identity(), std::nullopt);
  EXPECT_FALSE(dataOf(without->chunk({.text = "a"}, {})).contains("usage"));
}

TEST(AnswerShape, TellsWholeAnswers) {
  const std::vector<ChoicePart> parts = {
      {.index = 0, .text = "a", .finish = "stop"},
      {.index = 1,
       .calls = {{.index = 0, .id = "c", .name = "f", .arguments = "{"},
                 {.index = 0, .arguments = "}"},
                 {.index = 1, .id = "d", .name = "g", .arguments = "{}"}},
       .finish = "tool_calls"}};
  const Json completion =
      completionShape(identity(), std::nullopt)->whole(parts, {});
  EXPECT_EQ(completion["object"], "text_completion");
  EXPECT_EQ(completion["choices"][0].dump(),
            R"({"index":0,"text":"a","logprobs":null,"finish_reason":"stop"})");
  const Json chat = chatShape(identity(), std::nullopt)->whole(parts, {});
  EXPECT_EQ(chat["object"], "chat.completion");
  EXPECT_EQ(chat["choices"][0]["message"].dump(),
            R"({"role":"assistant","content":"a","refusal":null})");
  EXPECT_EQ(chat["choices"][1]["message"].dump(),
            R"({"role":"assistant","content":null,"tool_calls":[{"id":"c",)"
            R"("type":"function","function":{"name":"f","arguments":"{}"}},)"
            R"({"id":"d","type":"function","function":{"name":"g",)"
            R"("arguments":"{}"}}],"refusal":null})");
}

TEST(AnswerShape, TellsScoresOfCompletions) {
  const float infinity = std::numeric_limits<float>::infinity();
  const ChoicePart part = {.text = "ab",
                           .scores = {{.token = 5},
                                      {.token = 6,
                                       .logProbability = -1.5F,
                                       .top = {{7, -0.5F}, {8, -infinity}},
                                       .textOffset = 1}}};
  const Json scores = completionShape(identity(true), std::nullopt)
                          ->whole({&part, 1}, {})["choices"][0]["logprobs"];
  EXPECT_EQ(scores.dump(),
            R"({"tokens":["token_id:5","token_id:6"],)"
            R"("token_logprobs":[null,-1.5],"top_logprobs":[null,)"
            R"({"token_id:7":-0.5,"token_id:8":-9999.0,"token_id:6":-1.5}],)"
            R"("text_offset":[0,1]})");
}

TEST(AnswerShape, TellsScoresOfChats) {
  auto tokenizer = jargonTokenizer();
  const int32_t a = tokenizer->encode("a")->front();
  const ChoicePart part = {
      .text = "a",
      .scores = {{.token = a, .logProbability = -1.5F, .top = {{a, -1.5F}}}}};
  const Json scores = chatShape(identity(true), tokenizer)
                          ->whole({&part, 1}, {})["choices"][0]["logprobs"];
  EXPECT_EQ(scores.dump(),
            R"({"content":[{"token":"a","logprob":-1.5,"bytes":[97],)"
            R"("top_logprobs":[{"token":"a","logprob":-1.5,"bytes":[97]}]}],)"
            R"("refusal":null})");
}

TEST(AnswerShape, NamesTokens) {
  auto tokenizer = jargonTokenizer();
  auto shape = completionShape(identity(), tokenizer);
  auto tokens = tokenizer->encode("hacker \xE2\x82\xAC");
  ASSERT_TRUE(tokens);
  std::string all;
  for (int32_t token : *tokens) {
    const std::string name = shape->nameOf(token);
    all += name;
    EXPECT_FALSE(name.empty());
  }
  // The euro is no token of this model.
  EXPECT_TRUE(all.starts_with("hacker")) << all;
  EXPECT_NE(all.find("bytes:\\x"), std::string::npos) << all;
  EXPECT_EQ(shape->nameOf(3070), "<|begin_of_text|>");
}

TEST(TokenPlaces, AreCharactersOfTheText) {
  auto tokenizer = jargonTokenizer();
  const std::string text = "na\xC3\xAFve \xE2\x82\xAC hackers";
  auto tokens = tokenizer->encode(text);
  ASSERT_TRUE(tokens);
  TokenPlaces places(tokenizer, true, {}, 0);
  std::string before;
  StreamingDecoder decoder(*tokenizer, true);
  for (int32_t token : *tokens) {
    EXPECT_EQ(places.placeOf(token), countCharacters(before));
    before += decoder.decode(token);
  }
  EXPECT_EQ(before, text);
  // Those of a continuation begin behind what is continued.
  TokenPlaces behind(tokenizer, true, *tokens, 16);
  EXPECT_EQ(behind.placeOf(tokens->front()), 16u);
  EXPECT_GT(behind.placeOf(tokens->front()), 16u);
  // Special tokens are in the text or not.
  TokenPlaces with(tokenizer, false, {}, 0);
  TokenPlaces without(tokenizer, true, {}, 0);
  EXPECT_EQ(with.placeOf(3070), 0u);
  EXPECT_EQ(without.placeOf(3070), 0u);
  EXPECT_EQ(with.placeOf(tokens->front()), 17u);
  EXPECT_EQ(without.placeOf(tokens->front()), 0u);
  TokenPlaces unknown(std::nullopt, true, {}, 3);
  EXPECT_EQ(unknown.placeOf(5), 3u);
  EXPECT_EQ(unknown.placeOf(6), 3u);
}

} // namespace
