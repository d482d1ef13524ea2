//===- EmbeddingProtocolTest.cpp - What servers are asked -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Remote/EmbeddingProtocol.h"

#include <gtest/gtest.h>

#include <limits>

using namespace sandwich;

static DeviceBatch batchOf(std::vector<std::vector<int32_t>> texts) {
  DeviceBatch batch;
  for (std::vector<int32_t> &tokens : texts)
    batch.push_back({batch.size(), std::make_shared<const std::vector<int32_t>>(
                                       std::move(tokens))});
  return batch;
}

TEST(EmbeddingProtocolTest, RequestsAreOfTheirApi) {
  const DeviceBatch batch = batchOf({{1, 22, 333}, {4}});
  EXPECT_EQ(makeEmbeddingRequest(EmbeddingApi::OpenAI,
                                 RemoteEncoding::Base64, "a \"model\"",
                                 batch),
            R"({"model":"a \"model\"","encoding_format":"base64",)"
            R"("input":[[1,22,333],[4]]})");
  EXPECT_EQ(makeEmbeddingRequest(EmbeddingApi::OpenAI, RemoteEncoding::Float,
                                 "m", batchOf({{7}})),
            R"({"model":"m","encoding_format":"float","input":[[7]]})");
  EXPECT_EQ(makeEmbeddingRequest(EmbeddingApi::TextEmbeddingsInference,
                                 RemoteEncoding::Float, "", batch),
            R"({"inputs":[[1,22,333],[4]],"truncate":false})");
  EXPECT_EQ(pathOf(EmbeddingApi::OpenAI), "/v1/embeddings");
  EXPECT_EQ(pathOf(EmbeddingApi::TextEmbeddingsInference), "/embed");
}

static std::vector<Embedding> parse(EmbeddingApi api, std::string_view json,
                                    size_t queries) {
  auto embeddings = parseEmbeddings(api, json, queries, 2);
  EXPECT_TRUE(embeddings) << embeddings.error().message;
  return embeddings ? *std::move(embeddings) : std::vector<Embedding>();
}

TEST(EmbeddingProtocolTest, ReadsFloatsAndBase64InAnyOrder) {
  const std::vector<Embedding> expected = {{1, -2.5}, {0.25, 3}};
  EXPECT_EQ(parse(EmbeddingApi::OpenAI,
                  R"({"object":"list","model":"m","usage":{"total_tokens":3},
                      "data":[{"index":1,"embedding":[0.25,3]},
                              {"index":0,"embedding":"AACAPwAAIMA="}]})",
                  2),
            expected);
  EXPECT_EQ(
      parse(EmbeddingApi::TextEmbeddingsInference, "[[1,-2.5],[2.5e-1,3]]", 2),
      expected);
}

static std::string refusal(EmbeddingApi api, std::string_view json,
                           size_t queries = 1) {
  const auto embeddings = parseEmbeddings(api, json, queries, 2);
  return embeddings ? "" : embeddings.error().message;
}

TEST(EmbeddingProtocolTest, RefusesOtherAnswersOfOpenAI) {
  const auto of = [](std::string_view json, size_t queries = 1) {
    return refusal(EmbeddingApi::OpenAI, json, queries);
  };
  EXPECT_NE(of("nonsense"), "");
  EXPECT_EQ(of("[]"), "the answer has no data");
  EXPECT_EQ(of("{}"), "the answer has no data");
  EXPECT_EQ(of(R"({"data":1})"), "data is no list");
  EXPECT_EQ(of(R"({"data":[]})"), "data has 0 embeddings of 1 queries");
  EXPECT_EQ(of(R"({"data":[1]})"),
            "an entry of data has no index or no embedding");
  EXPECT_EQ(of(R"({"data":[{"index":0}]})"),
            "an entry of data has no index or no embedding");
  for (const char *index : {"1", "-1", "0.5", "\"0\"", "18446744073709551616"})
    EXPECT_EQ(of(std::string(R"({"data":[{"embedding":[1,2],"index":)") +
                 index + "}]}"),
              "an index of data is no whole number below 1");
  EXPECT_EQ(of(R"({"data":[{"index":0,"embedding":[1,2]},
                           {"index":0,"embedding":[1,2]}]})",
               2),
            "index 0 of data comes twice");
  const auto with = [&](const std::string &embedding) {
    return of(R"({"data":[{"index":0,"embedding":)" + embedding + "}]}");
  };
  EXPECT_EQ(with("1"), "embedding 0 is neither a list of numbers nor base64");
  EXPECT_EQ(with("[1]"), "embedding 0 has 1 numbers instead of 2");
  EXPECT_EQ(with("[1,null]"), "embedding 0 holds what is no number");
  EXPECT_EQ(with("[1,1e39]"), "embedding 0 has a number that is not finite");
  EXPECT_EQ(with("\"\""),
            "embedding 0 has 0 characters, which are not 2 numbers");
  EXPECT_EQ(with("\"AACAPwAAIMA!\""), "embedding 0 is no base64");
  EXPECT_EQ(with("\"AACAPwAAIMAA\""), "embedding 0 is no base64");
  EXPECT_EQ(with("\"AACAPwAAgH8=\""),
            "embedding 0 has a number that is not finite");
  EXPECT_EQ(with("\"AACAPwAAwH8=\""),
            "embedding 0 has a number that is not finite");
}

TEST(EmbeddingProtocolTest, RefusesOtherAnswersOfTEI) {
  const auto of = [](std::string_view json, size_t queries = 1) {
    return refusal(EmbeddingApi::TextEmbeddingsInference, json, queries);
  };
  EXPECT_EQ(of("{}"), "the answer is no list");
  EXPECT_EQ(of("[[1,2]]", 2), "the answer has 1 embeddings of 2 queries");
  EXPECT_EQ(of("[[1,2],[3]]", 2), "embedding 1 has 1 numbers instead of 2");
  EXPECT_EQ(of(R"(["AACAPwAAIMA="])"), "embedding 0 is no list of numbers");
  EXPECT_EQ(of("[[1,true]]"), "embedding 0 holds what is no number");
}

TEST(EmbeddingProtocolTest, SizesOfAnswersDoNotWrap) {
  EXPECT_GT(mostAnswerBytes(64, 1024).value(), 64u * 1024 * 25);
  EXPECT_EQ(mostAnswerBytes(std::numeric_limits<size_t>::max() / 1024, 1024),
            std::nullopt);
  EXPECT_EQ(mostAnswerBytes(std::numeric_limits<size_t>::max(), 1),
            std::nullopt);
}

TEST(EmbeddingProtocolTest, RetryAfterIsOfSeconds) {
  EXPECT_EQ(parseRetryAfter("0"), 0);
  EXPECT_EQ(parseRetryAfter("120"), 120);
  EXPECT_EQ(parseRetryAfter("99999999999"), 1e6);
  for (const char *other : {"", "-1", "1.5", "1 ", "99999999999999999999999",
                            "Wed, 21 Oct 2015 07:28:00 GMT"})
    EXPECT_EQ(parseRetryAfter(other), std::nullopt) << other;
}
