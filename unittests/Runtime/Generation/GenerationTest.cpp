//===- GenerationTest.cpp - Continuing a text -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Generation/Generation.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class GenerationTest : public ::testing::Test {
protected:
  std::unique_ptr<Engine> load(const HashModelOptions &model = {}) {
    std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), {});
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }

  /// The `count` most probable tokens after `prompt`, one after another.
  static std::vector<int32_t> expected(std::vector<int32_t> prompt,
                                       size_t count) {
    size_t start = prompt.size();
    for (size_t i = 0; i < count; ++i)
      prompt.push_back(hashModelNext(prompt));
    return {prompt.begin() + static_cast<std::ptrdiff_t>(start), prompt.end()};
  }

  const std::vector<int32_t> prompt = {72, 101, 108, 108, 111};
  TemporaryFolder folder;
};
} // namespace

TEST_F(GenerationTest, FollowsTheModel) {
  std::unique_ptr<Engine> engine = load();
  Sequence sequence = engine->newSequence();
  std::vector<int32_t> streamed;
  Result<GenerationStatistics> result = generate(
      *engine, sequence, prompt, {.maxTokens = 40}, [&](int32_t token) {
        streamed.push_back(token);
        return true;
      });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->tokens, expected(prompt, 40));
  EXPECT_EQ(streamed, result->tokens);
  EXPECT_EQ(result->promptTokens, 5u);
  EXPECT_EQ(result->stopReason, StopReason::MaxTokens);
  EXPECT_GT(result->timeToFirstTokenMs, 0);
  EXPECT_GT(result->timePerOutputTokenMs, 0);
}

TEST_F(GenerationTest, APromptOfManyStepsChangesNothing) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 4});
  std::vector<int32_t> longPrompt(101);
  for (size_t i = 0; i < longPrompt.size(); ++i)
    longPrompt[i] = static_cast<int32_t>(i * 7 % 256);
  Sequence sequence = engine->newSequence();
  Result<GenerationStatistics> result =
      generate(*engine, sequence, longPrompt, {.maxTokens = 5}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->tokens, expected(longPrompt, 5));
}

TEST_F(GenerationTest, ASequenceGoesOn) {
  std::unique_ptr<Engine> engine = load();
  Sequence sequence = engine->newSequence();
  Result<GenerationStatistics> first =
      generate(*engine, sequence, prompt, {.maxTokens = 3}, {});
  ASSERT_TRUE(first) << first.error().message;
  // The last token was chosen but not fed yet.
  std::vector<int32_t> text = prompt;
  text.insert(text.end(), first->tokens.begin(), first->tokens.end());
  EXPECT_EQ(sequence.length(), text.size() - 1);
  std::vector<int32_t> more = {text.back(), 33};
  text.push_back(33);
  Result<GenerationStatistics> second =
      generate(*engine, sequence, more, {.maxTokens = 3}, {});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->tokens, expected(text, 3));
}

TEST_F(GenerationTest, StopsAtTheEndOfTheText) {
  std::vector<int32_t> tokens = expected(prompt, 10);
  size_t end = 1;
  while (std::find(tokens.begin(), tokens.begin() + static_cast<long>(end),
                   tokens[end]) != tokens.begin() + static_cast<long>(end))
    ++end;
  std::unique_ptr<Engine> engine = load({.endOfTextTokens = {5, tokens[end]}});
  Sequence sequence = engine->newSequence();
  Result<GenerationStatistics> result =
      generate(*engine, sequence, prompt, {.maxTokens = 10}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stopReason, StopReason::EndOfText);
  EXPECT_EQ(result->tokens,
            std::vector<int32_t>(tokens.begin(),
                                 tokens.begin() + static_cast<long>(end)));
  Sequence another = engine->newSequence();
  result =
      generate(*engine, another, prompt,
               {.maxTokens = 10, .sampling = {.ignoreEndOfText = true}}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->tokens, tokens);
}

TEST_F(GenerationTest, StopsWhenTheContextIsFull) {
  std::unique_ptr<Engine> engine = load({.contextLength = 8});
  Sequence sequence = engine->newSequence();
  Result<GenerationStatistics> result =
      generate(*engine, sequence, prompt, {.maxTokens = 100}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stopReason, StopReason::ContextFull);
  // The last one needs no room, as it is not fed.
  EXPECT_EQ(result->tokens, expected(prompt, 4));
}

TEST_F(GenerationTest, StopsWhenAsked) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 2});
  Sequence sequence = engine->newSequence();
  int left = 3;
  Result<GenerationStatistics> result =
      generate(*engine, sequence, prompt, {.maxTokens = 100},
               [&](int32_t) { return --left > 0; });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stopReason, StopReason::Stopped);
  EXPECT_EQ(result->tokens, expected(prompt, 3));

  Sequence another = engine->newSequence();
  int asked = 0;
  result = generate(*engine, another, prompt, {.maxTokens = 100}, {},
                    [&] { return ++asked == 2; });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stopReason, StopReason::Stopped);
  EXPECT_TRUE(result->tokens.empty());
  EXPECT_EQ(another.length(), 2u);
}

TEST_F(GenerationTest, TheSeedFixesTheTokens) {
  std::unique_ptr<Engine> engine = load();
  auto tokens = [&](uint64_t seed) {
    Sequence sequence = engine->newSequence();
    GenerationOptions options;
    options.maxTokens = 20;
    options.sampling.temperature = 2;
    options.sampling.seed = seed;
    Result<GenerationStatistics> result =
        generate(*engine, sequence, prompt, options, {});
    EXPECT_TRUE(result);
    return result->tokens;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
}

TEST_F(GenerationTest, RefusesWhatCannotBeGenerated) {
  std::unique_ptr<Engine> engine = load({.contextLength = 8});
  auto message = [&](const std::vector<int32_t> &tokens,
                     const GenerationOptions &options) {
    Sequence sequence = engine->newSequence();
    Result<GenerationStatistics> result =
        generate(*engine, sequence, tokens, options, {});
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message({}, {}), "the prompt is empty; give at least one token");
  EXPECT_EQ(message(prompt, {.maxTokens = 0}),
            "max-tokens is 0; it must be at least 1");
  EXPECT_EQ(message(std::vector<int32_t>(9, 1), {}),
            "the prompt of 9 tokens is longer than the model's context of 8 "
            "tokens; shorten it");
  EXPECT_EQ(message({1, 400}, {}),
            "token id 400 (number 1) is outside the vocabulary of 260 tokens");
  EXPECT_EQ(message({HASH_MODEL_VOCABULARY - 1}, {}),
            "the logit of token 0 at position 0 is nan; the model computed no "
            "finite number");
  GenerationOptions options;
  options.sampling.temperature = -1;
  EXPECT_EQ(message(prompt, options),
            "temperature is -1; it must be a number of at least 0");
}

TEST_F(GenerationTest, KeepsTheLogitsAfterTheTokenFedLast) {
  std::unique_ptr<Engine> engine = load();
  Sequence sequence = engine->newSequence();
  std::vector<float> logits;
  auto run = [&](std::vector<int32_t> tokens) {
    return generate(*engine, sequence, tokens, {.maxTokens = 3}, {}, {},
                    &logits);
  };
  Result<GenerationStatistics> result = run(prompt);
  ASSERT_TRUE(result);
  std::vector<int32_t> fed = prompt;
  fed.insert(fed.end(), result->tokens.begin(), result->tokens.end() - 1);
  EXPECT_EQ(sequence.length(), fed.size());
  EXPECT_EQ(logits, hashModelLogits(fed));
  // Refused whole, though the bad token is beyond the first step.
  std::vector<int32_t> bad(20, 1);
  bad.back() = HASH_MODEL_VOCABULARY;
  EXPECT_FALSE(run(bad));
  EXPECT_FALSE(run({}));
  EXPECT_EQ(sequence.length(), fed.size());
  EXPECT_EQ(logits, hashModelLogits(fed));
}
