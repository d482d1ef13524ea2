//===- EngineTest.cpp - A loaded model that runs steps --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/Engine.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class EngineTest : public ::testing::Test {
protected:
  std::unique_ptr<Engine> load(const HashModelOptions &model = {},
                               const EngineOptions &options = {}) {
    std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), options);
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }

  TemporaryFolder folder;
};

/// Logits as they arrive, row after row.
struct Recorder {
  std::vector<std::vector<float>> rows;
  std::vector<uint64_t> tokens;

  LogitsCallback callback() {
    return [this](std::span<const float> logits, uint64_t firstToken,
                  uint64_t count) -> Status {
      EXPECT_EQ(logits.size(), count * HASH_MODEL_VOCABULARY);
      for (uint64_t row = 0; row < count; ++row) {
        auto part =
            logits.subspan(row * HASH_MODEL_VOCABULARY, HASH_MODEL_VOCABULARY);
        rows.emplace_back(part.begin(), part.end());
        tokens.push_back(firstToken + row);
      }
      return {};
    };
  }
};
} // namespace

static std::vector<int32_t> makeTokens(size_t count, unsigned seed = 1) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<int32_t>(hashModelMix(seed * 1000 + i) % 256);
  return tokens;
}

static void expectAllLogits(const Recorder &recorder,
                            std::span<const int32_t> tokens) {
  ASSERT_EQ(recorder.rows.size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(recorder.tokens[i], i);
    EXPECT_EQ(recorder.rows[i], hashModelLogits(tokens.first(i + 1)))
        << "after token " << i;
  }
}

TEST_F(EngineTest, LogitsAreTheModelsForEveryThreadCountAndPiece) {
  std::vector<int32_t> tokens = makeTokens(45);
  for (unsigned threads = 1; threads <= 3; ++threads)
    for (WeightPlacement placement :
         {WeightPlacement::Mapped, WeightPlacement::HugePages}) {
      EngineOptions options;
      options.weightPlacement = placement;
      std::unique_ptr<Engine> engine = load({.threads = threads}, options);
      for (uint64_t chunk : {0, 1, 2, 7, 16, 1000}) {
        Sequence sequence(*engine);
        Recorder recorder;
        Status status = engine->feed(sequence, tokens, LogitRows::All,
                                     recorder.callback(), chunk);
        ASSERT_TRUE(status) << status.error().message;
        EXPECT_EQ(sequence.length(), tokens.size());
        expectAllLogits(recorder, tokens);
      }
    }
}

TEST_F(EngineTest, FewerLogitRowsThanTokensStillGiveAll) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 16, .maxLogitRows = 3});
  std::vector<int32_t> tokens = makeTokens(20);
  Sequence sequence(*engine);
  Recorder recorder;
  ASSERT_TRUE(
      engine->feed(sequence, tokens, LogitRows::All, recorder.callback()));
  expectAllLogits(recorder, tokens);
}

TEST_F(EngineTest, LastGivesOneRow) {
  std::unique_ptr<Engine> engine = load();
  std::vector<int32_t> tokens = makeTokens(19);
  Sequence sequence(*engine);
  Recorder recorder;
  ASSERT_TRUE(
      engine->feed(sequence, tokens, LogitRows::Last, recorder.callback()));
  ASSERT_EQ(recorder.rows.size(), 1u);
  EXPECT_EQ(recorder.tokens[0], 18u);
  EXPECT_EQ(recorder.rows[0], hashModelLogits(tokens));
  Recorder none;
  ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None, none.callback()));
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(sequence.length(), 38u);
}

TEST_F(EngineTest, SequencesTakeTurnsWithoutMixing) {
  std::unique_ptr<Engine> engine =
      load({}, {.kvCacheTokens = 200, .maxSequences = 3});
  std::vector<std::vector<int32_t>> texts;
  std::vector<Sequence> sequences;
  for (unsigned i = 0; i < 3; ++i) {
    texts.push_back(makeTokens(60, i));
    sequences.emplace_back(*engine);
  }
  // Pieces of different lengths, so that blocks of the sequences interleave.
  for (size_t start = 0; start < 60; start += 12)
    for (size_t i = 0; i < 3; ++i) {
      Recorder recorder;
      ASSERT_TRUE(engine->feed(
          sequences[i], std::span<const int32_t>(texts[i]).subspan(start, 12),
          LogitRows::Last, recorder.callback(), 5 + i));
      EXPECT_EQ(recorder.rows.at(0),
                hashModelLogits(
                    std::span<const int32_t>(texts[i]).first(start + 12)));
    }
}

TEST_F(EngineTest, DecodesSeveralSequencesInOneStep) {
  std::unique_ptr<Engine> engine =
      load({}, {.kvCacheTokens = 200, .maxSequences = 3});
  std::vector<std::vector<int32_t>> texts;
  std::vector<Sequence> sequences;
  for (unsigned i = 0; i < 3; ++i) {
    // Tables of different lengths.
    texts.push_back(makeTokens(3 + 17 * i, i));
    sequences.emplace_back(*engine);
    ASSERT_TRUE(engine->feed(sequences[i], texts[i], LogitRows::None));
  }
  for (int step = 0; step < 20; ++step) {
    std::vector<DecodeToken> batch;
    for (size_t i : {2, 0, 1}) {
      texts[i].push_back(static_cast<int32_t>(step * 3 + i));
      batch.push_back({&sequences[i], texts[i].back()});
    }
    Recorder recorder;
    ASSERT_TRUE(engine->decode(batch, recorder.callback()));
    ASSERT_EQ(recorder.rows.size(), 3u);
    EXPECT_EQ(recorder.rows[0], hashModelLogits(texts[2]));
    EXPECT_EQ(recorder.rows[1], hashModelLogits(texts[0]));
    EXPECT_EQ(recorder.rows[2], hashModelLogits(texts[1]));
  }
}

TEST_F(EngineTest, EndedSequencesReturnTheirBlocks) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 32});
  std::vector<int32_t> tokens = makeTokens(32);
  for (int i = 0; i < 3; ++i) {
    Sequence sequence(*engine);
    ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None));
    EXPECT_EQ(engine->kvCache().freeBlocks(), 0u);
    Sequence moved(std::move(sequence));
    EXPECT_EQ(moved.length(), 32u);
  }
  EXPECT_EQ(engine->kvCache().freeBlocks(), 2u);
  Sequence sequence(*engine);
  ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None));
  sequence.clear();
  EXPECT_EQ(sequence.length(), 0u);
  Recorder recorder;
  ASSERT_TRUE(
      engine->feed(sequence, tokens, LogitRows::All, recorder.callback()));
  expectAllLogits(recorder, tokens);
}

TEST_F(EngineTest, TruncatedSequencesGoOnFromWhatIsLeft) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 48});
  std::vector<int32_t> tokens = makeTokens(40);
  Sequence sequence(*engine);
  ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None));
  // More than there is changes nothing.
  sequence.truncate(41);
  EXPECT_EQ(sequence.length(), 40u);
  sequence.truncate(17);
  EXPECT_EQ(sequence.length(), 17u);
  EXPECT_EQ(engine->kvCache().freeBlocks(), 1u);
  std::vector<int32_t> other = makeTokens(20, 2);
  std::copy(tokens.begin(), tokens.begin() + 17, other.begin());
  Recorder recorder;
  ASSERT_TRUE(engine->feed(sequence, std::span(other).subspan(17),
                           LogitRows::Last, recorder.callback()));
  ASSERT_EQ(recorder.rows.size(), 1u);
  EXPECT_EQ(recorder.rows[0], hashModelLogits(other));
}

TEST_F(EngineTest, ForksGoOnFromTheSharedPrefix) {
  for (unsigned threads = 1; threads <= 3; ++threads)
    for (size_t shared : {0, 1, 15, 16, 17, 37}) {
      std::unique_ptr<Engine> engine =
          load({.threads = threads}, {.kvCacheTokens = 400, .maxSequences = 4});
      std::vector<int32_t> prefix = makeTokens(shared);
      Sequence original(*engine);
      if (shared > 0) {
        ASSERT_TRUE(engine->feed(original, prefix, LogitRows::None));
      }
      uint64_t freeBefore = engine->kvCache().freeBlocks();
      std::vector<Sequence> sequences;
      for (int i = 0; i < 2; ++i) {
        Result<Sequence> fork = original.fork();
        ASSERT_TRUE(fork);
        sequences.push_back(std::move(*fork));
        EXPECT_EQ(sequences.back().length(), shared);
      }
      sequences.push_back(std::move(original));
      EXPECT_EQ(engine->kvCache().freeBlocks(), freeBefore);

      // Every sequence gets its own text, by prefill and by decode steps, and
      // both together.
      std::vector<std::vector<int32_t>> texts(3, prefix);
      for (int step = 0; step < 20; ++step) {
        std::vector<DecodeToken> batch;
        for (size_t i = 0; i < 3; ++i) {
          texts[i].push_back(static_cast<int32_t>(step * 3 + i));
          batch.push_back({&sequences[i], texts[i].back()});
        }
        Recorder recorder;
        ASSERT_TRUE(engine->decode(batch, recorder.callback()));
        for (size_t i = 0; i < 3; ++i)
          EXPECT_EQ(recorder.rows[i], hashModelLogits(texts[i]));
        if (step % 7 != 3)
          continue;
        std::vector<int32_t> piece =
            makeTokens(11, static_cast<unsigned>(step));
        texts[step % 3].insert(texts[step % 3].end(), piece.begin(),
                               piece.end());
        Recorder fed;
        ASSERT_TRUE(engine->feed(sequences[step % 3], piece, LogitRows::Last,
                                 fed.callback()));
        EXPECT_EQ(fed.rows.at(0), hashModelLogits(texts[step % 3]));
      }
      sequences.clear();
      EXPECT_EQ(engine->kvCache().freeBlocks(), engine->kvCache().blockCount());
    }
}

TEST_F(EngineTest, ForksOutliveTheOriginalAndItsTruncation) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 96});
  std::vector<int32_t> tokens = makeTokens(40);
  auto original = std::make_unique<Sequence>(*engine);
  ASSERT_TRUE(engine->feed(*original, tokens, LogitRows::None));
  Result<Sequence> fork = original->fork();
  ASSERT_TRUE(fork);
  // Into the middle of a block that both have, which is then written over.
  original->truncate(20);
  EXPECT_EQ(engine->kvCache().freeBlocks(), 3u);
  std::vector<int32_t> other = makeTokens(10, 5);
  ASSERT_TRUE(engine->feed(*original, other, LogitRows::None));
  EXPECT_EQ(engine->kvCache().freeBlocks(), 2u);
  original.reset();
  EXPECT_EQ(engine->kvCache().freeBlocks(), 3u);
  tokens.push_back(7);
  Recorder recorder;
  ASSERT_TRUE(engine->feed(*fork, std::span(tokens).last(1), LogitRows::Last,
                           recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
}

static void expectError(const Status &status, const std::string &message) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, message);
}

TEST_F(EngineTest, RefusesBadTokensBeforeComputing) {
  std::unique_ptr<Engine> engine = load();
  Sequence sequence(*engine);
  expectError(engine->feed(sequence, {}, LogitRows::Last),
              "there are no tokens to feed; give at least one");
  std::vector<int32_t> tokens = {1, 2, HASH_MODEL_VOCABULARY};
  expectError(
      engine->feed(sequence, tokens, LogitRows::Last),
      "token id 260 (number 2) is outside the vocabulary of 260 tokens");
  tokens[2] = -1;
  expectError(engine->feed(sequence, tokens, LogitRows::Last),
              "token id -1 (number 2) is outside the vocabulary of 260 tokens");
  expectError(engine->decode(std::vector<DecodeToken>{{&sequence, 300}}, {}),
              "token id 300 (number 0) is outside the vocabulary of 260 "
              "tokens");
  EXPECT_EQ(sequence.length(), 0u);
}

TEST_F(EngineTest, RefusesMoreThanTheContext) {
  std::unique_ptr<Engine> engine = load({.contextLength = 20});
  Sequence sequence(*engine);
  expectError(engine->feed(sequence, makeTokens(21), LogitRows::Last),
              "21 tokens after 0 are more than the model's context of 20 "
              "tokens");
  ASSERT_TRUE(engine->feed(sequence, makeTokens(20), LogitRows::Last));
  expectError(engine->decode(std::vector<DecodeToken>{{&sequence, 1}}, {}),
              "1 tokens after 20 are more than the model's context of 20 "
              "tokens");
}

TEST_F(EngineTest, RefusesMoreThanTheKVCache) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 16});
  Sequence sequence(*engine);
  expectError(engine->feed(sequence, makeTokens(17), LogitRows::Last),
              "the KV cache is full: 2 more blocks are needed, 1 of 1 are "
              "free");
  // The sequence is as before and can go on.
  std::vector<int32_t> tokens = makeTokens(16);
  Recorder recorder;
  ASSERT_TRUE(
      engine->feed(sequence, tokens, LogitRows::All, recorder.callback()));
  expectAllLogits(recorder, tokens);
}

TEST_F(EngineTest, AStepThatDoesNotFitChangesNoSequence) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 32});
  std::vector<int32_t> tokens = makeTokens(16);
  Sequence first(*engine);
  ASSERT_TRUE(engine->feed(first, tokens, LogitRows::None));
  Sequence second(*engine);
  // Both need another block, and there is one.
  std::vector<DecodeToken> batch = {{&first, 1}, {&second, 2}};
  expectError(engine->decode(batch, {}),
              "the KV cache is full: 2 more blocks are needed, 1 of 2 are "
              "free");
  EXPECT_EQ(engine->kvCache().freeBlocks(), 1u);
  EXPECT_EQ(first.length(), 16u);
  // A fork has no room for its copy.
  first.truncate(15);
  Result<Sequence> fork = first.fork();
  ASSERT_TRUE(fork);
  ASSERT_TRUE(engine->feed(second, tokens, LogitRows::None));
  expectError(engine->feed(*fork, std::span(tokens).last(1), LogitRows::Last),
              "the KV cache is full: 1 more blocks are needed, 0 of 2 are "
              "free");
  second.clear();
  Recorder recorder;
  ASSERT_TRUE(engine->feed(*fork, std::span(tokens).last(1), LogitRows::Last,
                           recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
}

TEST_F(EngineTest, RefusesBatchesThatThePlanDoesNotHold) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 2});
  std::vector<Sequence> sequences;
  std::vector<DecodeToken> batch;
  for (int i = 0; i < 3; ++i)
    sequences.emplace_back(*engine);
  for (Sequence &sequence : sequences)
    batch.push_back({&sequence, 1});
  expectError(engine->decode(batch, {}),
              "a decode step of 3 sequences is larger than the plan's 2");
  batch.resize(2);
  batch[1].sequence = batch[0].sequence;
  expectError(engine->decode(batch, {}),
              "one sequence is in a decode step twice");
  expectError(engine->decode({}, {}),
              "there are no tokens to feed; give at least one");
}

TEST_F(EngineTest, AnErrorOfTheCallbackEndsTheFeed) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 4});
  Sequence sequence(*engine);
  int calls = 0;
  Status status =
      engine->feed(sequence, makeTokens(20), LogitRows::All,
                   [&](std::span<const float>, uint64_t, uint64_t) -> Status {
                     ++calls;
                     return makeError("the disk is full");
                   });
  expectError(status, "the disk is full");
  EXPECT_EQ(calls, 1);
}

TEST_F(EngineTest, NamesThreadsAndTheirLimit) {
  std::vector<std::string> messages;
  EngineOptions options;
  options.log = [&](LogLevel, const std::string &message) {
    messages.push_back(message);
  };
  std::unique_ptr<Engine> engine = load({.threads = 3}, options);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].find("3 threads"), std::string::npos);
  EXPECT_NE(messages[0].find("limited by "), std::string::npos);
  EXPECT_EQ(messages[1],
            "memory: weights 1.016 KiB mapped, 0 B of them in huge pages; KV "
            "cache 32 KiB for 4096 tokens, workspace 64 B, logits 8.125 KiB");
}

TEST_F(EngineTest, KVMemoryIsTheSizeOfTheCache) {
  std::vector<std::string> warnings;
  EngineOptions options;
  options.kvMemory = 3 * SANDWICH_KV_BLOCK_TOKENS * sizeof(uint64_t) + 5;
  options.log = [&](LogLevel level, const std::string &message) {
    if (level == LogLevel::Warning)
      warnings.push_back(message);
  };
  std::unique_ptr<Engine> engine = load({.threads = 1}, options);
  EXPECT_EQ(engine->kvCache().blockCount(), 3u);
  EXPECT_EQ(engine->memoryUse().kvCache.bytes, 3 * 128u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].ends_with(
      "model.sandwich: the KV cache holds 48 tokens instead of 4096, as "
      "--kv-memory asks; --kv-memory sets its size"))
      << warnings[0];
}

TEST_F(EngineTest, BindsToANodeThatIsThere) {
  // Node 0 is on every machine; on one with others, warnings are allowed.
  EXPECT_TRUE(load({}, {.numaNode = 0}));
  Result<Artifact> artifact = Artifact::open(folder.file("model.sandwich"));
  ASSERT_TRUE(artifact);
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(std::move(*artifact), {.numaNode = 1023});
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.starts_with(
      "there is no NUMA node 1023 on this machine, whose nodes are 0"))
      << engine.error().message;
}
