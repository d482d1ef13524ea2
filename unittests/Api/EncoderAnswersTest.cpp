//===- EncoderAnswersTest.cpp - Embeddings and scores ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/EncoderAnswers.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace sandwich;

namespace {

using Embeddings = std::vector<std::vector<float>>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();

std::string text(const Result<std::string> &answer) {
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? *answer : "";
}

template <typename T> void expectNoNumber(const Result<T> &answer) {
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::Internal);
  EXPECT_EQ(answer.error().message,
            "the model computed a value that is not a number");
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

TEST(EmbeddingAnswer, HasTheShapeOfOpenAI) {
  EXPECT_EQ(text(embeddingAnswer("m\"", EmbeddingEncoding::Float,
                                 Embeddings{{0.5F, -1}, {0.1F, 1e-30F}}, 7)),
            R"({"object":"list","data":[)"
            R"({"object":"embedding","embedding":[0.5,-1],"index":0},)"
            R"({"object":"embedding","embedding":[0.1,1e-30],"index":1}],)"
            R"("model":"m\"","usage":{"prompt_tokens":7,"total_tokens":7}})");
  EXPECT_EQ(text(embeddingAnswer("", EmbeddingEncoding::Float, {}, 0)),
            R"({"object":"list","data":[],"model":"",)"
            R"("usage":{"prompt_tokens":0,"total_tokens":0}})");
}

TEST(EmbeddingAnswer, HasTheBytesOfF32InBase64) {
  // 1 is 00 00 80 3f, 2 is 00 00 00 40, -0.5 is 00 00 00 bf.
  EXPECT_EQ(
      text(embeddingAnswer("m", EmbeddingEncoding::Base64,
                           Embeddings{{1}, {1, 2}, {1, 2, -0.5F}, {}}, 1)),
      R"({"object":"list","data":[)"
      R"({"object":"embedding","embedding":"AACAPw==","index":0},)"
      R"({"object":"embedding","embedding":"AACAPwAAAEA=","index":1},)"
      R"({"object":"embedding","embedding":"AACAPwAAAEAAAAC/","index":2},)"
      R"({"object":"embedding","embedding":"","index":3}],)"
      R"("model":"m","usage":{"prompt_tokens":1,"total_tokens":1}})");
}

TEST(EmbeddingAnswer, RefusesWhatJsonCannotSay) {
  for (const float value : {infinity, -infinity, notANumber}) {
    for (const EmbeddingEncoding encoding :
         {EmbeddingEncoding::Float, EmbeddingEncoding::Base64})
      expectNoNumber(
          embeddingAnswer("m", encoding, Embeddings{{0}, {1, value}}, 1));
    expectNoNumber(teiEmbedAnswer(Embeddings{{value}}));
    expectNoNumber(teiEmbedAllAnswer(
        std::vector<TokenEmbeddings>{{.values = {1, value}, .dimensions = 2}}));
    expectNoNumber(teiSimilarityAnswer(std::vector<float>{value}));
  }
}

TEST(TeiEmbedAnswer, IsAListOfEmbeddings) {
  EXPECT_EQ(text(teiEmbedAnswer(Embeddings{{0.25F, 3}, {-2, 0}})),
            "[[0.25,3],[-2,0]]");
}

TEST(TeiEmbedAllAnswer, IsAListOfTokensForEachInput) {
  const std::vector<TokenEmbeddings> inputs = {
      {.values = {1, 2, 3, 4}, .dimensions = 2},
      {.values = {5, 6}, .dimensions = 2}};
  EXPECT_EQ(text(teiEmbedAllAnswer(inputs)), "[[[1,2],[3,4]],[[5,6]]]");
  for (const uint64_t dimensions : {0, 3}) {
    const auto answer = teiEmbedAllAnswer(std::vector<TokenEmbeddings>{
        {.values = {1, 2}, .dimensions = dimensions}});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::Internal);
  }
}

/// Readers have f64, and those that want f32 round what they read.
TEST(TeiEmbedAnswer, ReadsBackAsTheSameFloats) {
  std::vector<float> values = {std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest(),
                               std::numeric_limits<float>::denorm_min(),
                               std::nextafter(1.0F, 2.0F),
                               std::nextafter(1.0F, 0.0F),
                               1e20F,
                               123456789.0F};
  std::mt19937 random(1);
  while (values.size() < 100000) {
    // All exponents, and as often those that embeddings have.
    const auto value =
        values.size() % 2
            ? std::bit_cast<float>(uint32_t(random()))
            : std::uniform_real_distribution<float>(-1, 1)(random);
    if (std::isfinite(value))
      values.push_back(value);
  }
  const auto json = parseJson(text(teiEmbedAnswer(Embeddings{values})));
  ASSERT_TRUE(json);
  ASSERT_EQ((*json)[0].size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float read = static_cast<float>((*json)[0][i].get<double>());
    ASSERT_EQ(read, values[i]) << i;
  }
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

RerankRequest threeDocuments() {
  RerankRequest request;
  request.documents = {"a\n", "b", "c"};
  request.top = 3;
  return request;
}

std::vector<RankedDocument> ranksOf(const RerankRequest &request,
                                    const std::vector<float> &scores) {
  auto ranks = rankDocuments(request, scores);
  EXPECT_TRUE(ranks);
  return ranks ? *ranks : std::vector<RankedDocument>{};
}

std::vector<size_t> orderOf(const RerankRequest &request,
                            const std::vector<float> &scores) {
  std::vector<size_t> order;
  for (const RankedDocument &rank : ranksOf(request, scores))
    order.push_back(rank.index);
  return order;
}

TEST(RankDocuments, PutsTheBestFirst) {
  RerankRequest request = threeDocuments();
  EXPECT_EQ(orderOf(request, {-1, 2, 0}), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(orderOf(request, {1, 2, 1}), (std::vector<size_t>{1, 0, 2}));
  // Whose sigmoid is 1 for all.
  EXPECT_EQ(orderOf(request, {100, 300, 200}), (std::vector<size_t>{1, 2, 0}));
  request.top = 2;
  EXPECT_EQ(orderOf(request, {-1, 2, 0}), (std::vector<size_t>{1, 2}));
}

TEST(RankDocuments, HasScoresFromZeroToOneOrRawOnes) {
  RerankRequest request = threeDocuments();
  std::vector<RankedDocument> ranks = ranksOf(request, {0, -1000, 1000});
  EXPECT_EQ(ranks[0].score, 1.0F);
  EXPECT_EQ(ranks[1].score, 0.5F);
  EXPECT_EQ(ranks[2].score, 0.0F);
  EXPECT_FLOAT_EQ(ranksOf(request, {1, 0, 0})[0].score, 0.7310586F);
  request.rawScores = true;
  EXPECT_EQ(ranksOf(request, {0, -1000, 1000})[2].score, -1000.0F);
}

TEST(RankDocuments, RefusesWhatIsNoScore) {
  const RerankRequest request = threeDocuments();
  expectNoNumber(rankDocuments(request, std::vector<float>{0, notANumber, 1}));
  expectNoNumber(rankDocuments(request, std::vector<float>{0, infinity, 1}));
  const auto ranks = rankDocuments(request, std::vector<float>{0, 1});
  ASSERT_FALSE(ranks);
  EXPECT_EQ(ranks.error().message, "there are 2 scores of 3 documents");
}

TEST(RerankAnswer, HasTheShapeOfCohere) {
  RerankRequest request = threeDocuments();
  const std::vector<RankedDocument> ranks = {{1, 0.75F}, {0, 0.1F}};
  EXPECT_EQ(text(rerankAnswer("rerank-1", "m", request, ranks, 9)),
            R"({"id":"rerank-1","model":"m","results":[)"
            R"({"index":1,"relevance_score":0.75},)"
            R"({"index":0,"relevance_score":0.1}],)"
            R"("usage":{"prompt_tokens":9,"total_tokens":9}})");
  request.returnDocuments = true;
  EXPECT_EQ(text(rerankAnswer("rerank-1", "m", request, ranks, 9)),
            R"({"id":"rerank-1","model":"m","results":[)"
            R"({"index":1,"relevance_score":0.75,"document":{"text":"b"}},)"
            R"({"index":0,"relevance_score":0.1,"document":{"text":"a\n"}}],)"
            R"("usage":{"prompt_tokens":9,"total_tokens":9}})");
}

TEST(TeiRerankAnswer, IsAListOfRanks) {
  RerankRequest request = threeDocuments();
  const std::vector<RankedDocument> ranks = {{1, 0.75F}, {0, -3}};
  EXPECT_EQ(text(teiRerankAnswer(request, ranks)),
            R"([{"index":1,"score":0.75},{"index":0,"score":-3}])");
  request.returnDocuments = true;
  EXPECT_EQ(text(teiRerankAnswer(request, ranks)),
            R"([{"index":1,"text":"b","score":0.75},)"
            R"({"index":0,"text":"a\n","score":-3}])");
}

TEST(TeiRerankAnswer, RefusesWhatIsNoRank) {
  const RerankRequest request = threeDocuments();
  const std::vector<RankedDocument> beyond = {{3, 0}};
  const std::vector<RankedDocument> none = {{0, notANumber}};
  for (const auto &answer : {teiRerankAnswer(request, beyond),
                             rerankAnswer("i", "m", request, beyond, 0)}) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "there is no document 3");
  }
  expectNoNumber(teiRerankAnswer(request, none));
  expectNoNumber(rerankAnswer("i", "m", request, none, 0));
}

//===----------------------------------------------------------------------===//
// Similarity
//===----------------------------------------------------------------------===//

TEST(CosineSimilarity, IsThatOfTheAngle) {
  const auto cosine = [](const std::vector<float> &left,
                         const std::vector<float> &right) {
    return cosineSimilarity(left, right);
  };
  EXPECT_EQ(cosine({1, 0}, {0, 2}), 0.0F);
  EXPECT_EQ(cosine({3, 4}, {3, 4}), 1.0F);
  EXPECT_EQ(cosine({1, 2}, {-1, -2}), -1.0F);
  EXPECT_FLOAT_EQ(cosine({1, 0}, {1, 1}), std::sqrt(0.5F));
  EXPECT_EQ(cosine({0, 0}, {1, 1}), 0.0F);
  // Whose squares are no f32.
  EXPECT_EQ(cosine({1e30F}, {1e30F}), 1.0F);
  EXPECT_EQ(cosine({1e-30F}, {1e-30F}), 1.0F);
}

TEST(TeiSimilarityAnswer, IsAListOfCosines) {
  EXPECT_EQ(text(teiSimilarityAnswer(std::vector<float>{1, 0.3F, -0.25F})),
            "[1,0.3,-0.25]");
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

TEST(TeiInfoAnswer, HasAllFields) {
  EncoderCapabilities capabilities{.maxInputTokens = 512,
                                   .vocabularySize = 30522,
                                   .dimensions = 384,
                                   .maxInputs = 32};
  const TeiInfo info{.modelId = "BAAI/bge-small-en-v1.5",
                     .dataType = "float32",
                     .servedModelName = "bge",
                     .pooling = "cls",
                     .maxConcurrentRequests = 64,
                     .maxBatchTokens = 16384,
                     .tokenizationWorkers = 4,
                     .version = "1.0"};
  EXPECT_EQ(teiInfoAnswer(info, capabilities).dump(),
            R"({"model_id":"BAAI/bge-small-en-v1.5","model_sha":null,)"
            R"("model_dtype":"float32","served_model_name":"bge",)"
            R"("model_type":{"embedding":{"pooling":"cls"}},)"
            R"("max_concurrent_requests":64,"max_input_length":512,)"
            R"("max_batch_tokens":16384,"max_batch_requests":null,)"
            R"("max_client_batch_size":32,"auto_truncate":false,)"
            R"("tokenization_workers":4,"version":"1.0","sha":null,)"
            R"("docker_label":null})");
  capabilities.kind = EncoderCapabilities::Kind::Reranker;
  EXPECT_EQ(teiInfoAnswer(info, capabilities)["model_type"].dump(),
            R"({"reranker":{"id2label":{"0":"LABEL_0"},)"
            R"("label2id":{"LABEL_0":0}}})");
}

} // namespace
