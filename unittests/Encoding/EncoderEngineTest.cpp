//===- EncoderEngineTest.cpp - Batches of texts ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/EncoderEngine.h"
#include "TemporaryFolder.h"
#include "WriteSumModel.h"
#include "sandwich/Runtime/Engine/Engine.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace sandwich;
using namespace sandwich::test;

namespace {

class EncoderEngineTest : public testing::Test {
protected:
  std::string path() const { return folder.path() + "/sum.sandwich"; }

  Result<Artifact>
  open(const std::function<void(proto::Manifest &)> &change = {}) {
    SANDWICH_RETURN_IF_ERROR(writeSumModel(path(), change));
    return Artifact::open(path(), {.use = ModelUse::Encode});
  }

  std::unique_ptr<EncoderEngine> makeEngine() {
    Result<Artifact> artifact = open();
    EXPECT_TRUE(artifact) << artifact.error().message;
    if (!artifact)
      return nullptr;
    auto engine = EncoderEngine::create(*std::move(artifact), {});
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? *std::move(engine) : nullptr;
  }

  TemporaryFolder folder;
};

TEST_F(EncoderEngineTest, EmbedsTextsOfABatch) {
  auto engine = makeEngine();
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->columns(), SUM_MODEL_COLUMNS);
  EXPECT_EQ(engine->contextLength(), SUM_MODEL_CONTEXT);
  EXPECT_EQ(engine->maxTokens(), SUM_MODEL_TOKENS);
  const std::vector<int32_t> first = {4, 5, 6}, second = {7}, types = {0, 1, 1};
  const EncoderInput batch[] = {{first, types}, {second}};
  auto rows = engine->run(batch, EncoderOutput::Texts);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(std::vector(rows->begin(), rows->end()),
            (std::vector<float>{15, 3, 2, 3, 7, 1, 0, 0}));
}

TEST_F(EncoderEngineTest, EmbedsTokens) {
  auto engine = makeEngine();
  ASSERT_TRUE(engine);
  const std::vector<int32_t> first = {4, 5}, second = {7};
  const EncoderInput batch[] = {{first}, {second}};
  auto rows = engine->run(batch, EncoderOutput::Tokens);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(std::vector(rows->begin(), rows->end()),
            (std::vector<float>{4, 1, 0, 0, 5, 1, 0, 1, 7, 1, 0, 0}));
}

TEST_F(EncoderEngineTest, TakesTheLargestBatches) {
  auto engine = makeEngine();
  ASSERT_TRUE(engine);
  // As many texts as tokens, and two of the longest.
  const std::vector<int32_t> one = {3};
  std::vector<EncoderInput> batch(SUM_MODEL_TOKENS, EncoderInput{one});
  EXPECT_TRUE(engine->run(batch, EncoderOutput::Texts));
  batch.emplace_back(one);
  EXPECT_EQ(engine->run(batch, EncoderOutput::Texts).error().message,
            "there are 65 texts; 1 to 64 make a batch");
  std::vector<int32_t> longest(SUM_MODEL_CONTEXT);
  std::iota(longest.begin(), longest.end(), 20);
  batch.assign(2, EncoderInput{longest});
  auto rows = engine->run(batch, EncoderOutput::Texts);
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[4], std::reduce(longest.begin(), longest.end()));
  batch.emplace_back(one);
  EXPECT_EQ(engine->run(batch, EncoderOutput::Texts).error().message,
            "the texts have 65 tokens; a batch has at most 64");
}

TEST_F(EncoderEngineTest, RefusesWhatIsNoText) {
  auto engine = makeEngine();
  ASSERT_TRUE(engine);
  auto error = [&](const std::vector<int32_t> &ids,
                   const std::vector<int32_t> &types = {}) {
    Status status = engine->check({ids, types});
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(error({}), "the text has no tokens");
  EXPECT_EQ(error({1, 100}),
            "token 1 is 100, outside the vocabulary of 100 tokens");
  EXPECT_EQ(error({-1}), "token 0 is -1, outside the vocabulary of 100 tokens");
  EXPECT_EQ(error(std::vector<int32_t>(33, 1)),
            "the text has 33 tokens, more than the model's 32; shorten it, or "
            "have it truncated");
  EXPECT_EQ(engine->check({std::vector<int32_t>(33, 1)}).error().kind,
            ErrorKind::ContextExceeded);
  EXPECT_EQ(error({1, 2}, {0}), "there are 1 token types for 2 tokens");
  EXPECT_EQ(error({1, 2}, {0, 2}),
            "a token's type is 2, and the model knows 2");
  EXPECT_FALSE(engine->run({}, EncoderOutput::Texts));
}

TEST_F(EncoderEngineTest, IsNotTakenForAModelThatGenerates) {
  ASSERT_TRUE(writeSumModel(path()));
  Result<Artifact> artifact = Artifact::open(path());
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.error().message,
            path() + ": is a model that embeds or classifies texts and "
                     "generates none; 'sandwich-run embed' runs it");
}

TEST_F(EncoderEngineTest, RefusesManifestsThatDoNotFit) {
  auto problem = [&](const std::function<void(proto::Manifest &)> &change) {
    Result<Artifact> artifact = open(change);
    if (!artifact)
      return artifact.error().message;
    auto engine = EncoderEngine::create(*std::move(artifact), {});
    return engine ? std::string() : engine.error().message;
  };
  auto expectProblem = [&](const std::function<void(proto::Manifest &)> &change,
                           const std::string &expected) {
    const std::string found = problem(change);
    EXPECT_NE(found.find(expected), found.npos) << found;
  };
  expectProblem([](auto &m) { m.mutable_encoding()->set_pooling("max"); },
                "encoding.pooling is \"max\"");
  expectProblem([](auto &m) { m.mutable_encoding()->set_token_types(3); },
                "encoding.token_types is 3");
  expectProblem([](auto &m) { m.mutable_encoding()->add_dimensions(5); },
                "encoding.dimensions is 5; 1 to 4 is accepted");
  expectProblem([](auto &m) { m.mutable_encoding()->set_default_prompt("x"); },
                "encoding.default_prompt is \"x\"");
  expectProblem([](auto &m) { m.mutable_encoding()->set_labels(3); },
                "phases[0].name is \"embed\"; \"classify\" is accepted");
  expectProblem([](auto &m) { m.mutable_phases()->RemoveLast(); },
                "phases has no \"embed_tokens\"");
  expectProblem(
      [](auto &m) { m.mutable_model()->set_context_length(65); },
      "max_tokens is 64, less than model.context_length, which is 65");
  expectProblem([](auto &m) { m.mutable_model()->set_context_length(33); },
                "knows 32 positions");
  expectProblem([](auto &m) { m.mutable_model()->set_vocab_size(101); },
                "model.vocab_size is 101");
  expectProblem([](auto &m) { m.mutable_model()->set_hidden_size(5); },
                "the columns of what it returns is 5");
  expectProblem([](auto &m) { m.add_plan()->add_prefill_cpus(0); },
                "plan is of prefill and decode");
}

TEST_F(EncoderEngineTest, RunsOnAsManyCpusAsThreads) {
  Result<Artifact> artifact = open();
  ASSERT_TRUE(artifact);
  auto engine = EncoderEngine::create(*std::move(artifact), {.cpus = {0}});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message,
            path() + ": was compiled for 2 threads, but is to run on 1 CPUs; "
                     "compile it with --threads=1");
}

} // namespace
