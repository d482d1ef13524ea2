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

/// Appends one token to each of the sequences and gives the logits of all.
struct Decoding {
  std::vector<Sequence *> sequences;
  std::vector<int32_t> tokens;

  void add(Sequence &sequence, int32_t token) {
    sequences.push_back(&sequence);
    tokens.push_back(token);
  }
  Result<StepResult> run(Engine &engine) const {
    std::vector<Segment> segments;
    for (size_t i = 0; i < tokens.size(); ++i)
      segments.push_back({sequences[i], std::span(&tokens[i], 1)});
    return engine.step(segments, PhaseKind::Decode);
  }
};

static std::vector<float> rowOf(const StepResult &result, size_t segment,
                                size_t row = 0) {
  const auto logits = result.logits.subspan((result.firstRows[segment] + row) *
                                                HASH_MODEL_VOCABULARY,
                                            HASH_MODEL_VOCABULARY);
  return {logits.begin(), logits.end()};
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
        Sequence sequence = engine->newSequence();
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
  Sequence sequence = engine->newSequence();
  Recorder recorder;
  ASSERT_TRUE(
      engine->feed(sequence, tokens, LogitRows::All, recorder.callback()));
  expectAllLogits(recorder, tokens);
}

TEST_F(EngineTest, LastGivesOneRow) {
  std::unique_ptr<Engine> engine = load();
  std::vector<int32_t> tokens = makeTokens(19);
  Sequence sequence = engine->newSequence();
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
    sequences.emplace_back(engine->newSequence());
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
    sequences.emplace_back(engine->newSequence());
    ASSERT_TRUE(engine->feed(sequences[i], texts[i], LogitRows::None));
  }
  for (int step = 0; step < 20; ++step) {
    Decoding batch;
    for (size_t i : {2, 0, 1}) {
      texts[i].push_back(static_cast<int32_t>(step * 3 + i));
      batch.add(sequences[i], texts[i].back());
    }
    Result<StepResult> result = batch.run(*engine);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->firstRows.size(), 3u);
    EXPECT_EQ(rowOf(*result, 0), hashModelLogits(texts[2]));
    EXPECT_EQ(rowOf(*result, 1), hashModelLogits(texts[0]));
    EXPECT_EQ(rowOf(*result, 2), hashModelLogits(texts[1]));
  }
}

TEST_F(EngineTest, EndedSequencesReturnTheirBlocks) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 32});
  std::vector<int32_t> tokens = makeTokens(32);
  for (int i = 0; i < 3; ++i) {
    Sequence sequence = engine->newSequence();
    ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None));
    EXPECT_EQ(engine->blockPool().freeBlocks(), 0u);
    Sequence moved(std::move(sequence));
    EXPECT_EQ(moved.length(), 32u);
  }
  EXPECT_EQ(engine->blockPool().freeBlocks(), 2u);
  Sequence sequence = engine->newSequence();
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
  Sequence sequence = engine->newSequence();
  ASSERT_TRUE(engine->feed(sequence, tokens, LogitRows::None));
  // More than there is changes nothing.
  sequence.truncate(41);
  EXPECT_EQ(sequence.length(), 40u);
  sequence.truncate(17);
  EXPECT_EQ(sequence.length(), 17u);
  EXPECT_EQ(engine->blockPool().freeBlocks(), 1u);
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
      Sequence original = engine->newSequence();
      if (shared > 0) {
        ASSERT_TRUE(engine->feed(original, prefix, LogitRows::None));
      }
      uint64_t freeBefore = engine->blockPool().freeBlocks();
      std::vector<Sequence> sequences;
      for (int i = 0; i < 2; ++i) {
        sequences.push_back(original.fork());
        EXPECT_EQ(sequences.back().length(), shared);
      }
      sequences.push_back(std::move(original));
      EXPECT_EQ(engine->blockPool().freeBlocks(), freeBefore);

      // Every sequence gets its own text, by prefill and by decode steps, and
      // both together.
      std::vector<std::vector<int32_t>> texts(3, prefix);
      for (int step = 0; step < 20; ++step) {
        Decoding batch;
        for (size_t i = 0; i < 3; ++i) {
          texts[i].push_back(static_cast<int32_t>(step * 3 + i));
          batch.add(sequences[i], texts[i].back());
        }
        Result<StepResult> result = batch.run(*engine);
        ASSERT_TRUE(result) << result.error().message;
        for (size_t i = 0; i < 3; ++i)
          EXPECT_EQ(rowOf(*result, i), hashModelLogits(texts[i]));
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
      EXPECT_EQ(engine->blockPool().freeBlocks(),
                engine->kvCache().blockCount());
    }
}

TEST_F(EngineTest, ForksOutliveTheOriginalAndItsTruncation) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 96});
  std::vector<int32_t> tokens = makeTokens(40);
  auto original = std::make_unique<Sequence>(engine->newSequence());
  ASSERT_TRUE(engine->feed(*original, tokens, LogitRows::None));
  Sequence fork = original->fork();
  // Into the middle of a block that both have, which is then written over.
  original->truncate(20);
  EXPECT_EQ(engine->blockPool().freeBlocks(), 3u);
  std::vector<int32_t> other = makeTokens(10, 5);
  ASSERT_TRUE(engine->feed(*original, other, LogitRows::None));
  EXPECT_EQ(engine->blockPool().freeBlocks(), 2u);
  original.reset();
  EXPECT_EQ(engine->blockPool().freeBlocks(), 3u);
  tokens.push_back(7);
  Recorder recorder;
  ASSERT_TRUE(engine->feed(fork, std::span(tokens).last(1), LogitRows::Last,
                           recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
}

template <typename T>
static void expectError(const Result<T> &result, ErrorKind kind,
                        const std::string &message) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, message);
  EXPECT_EQ(result.error().kind, kind);
}
template <typename T>
static void expectError(const Result<T> &result, const std::string &message) {
  expectError(result, ErrorKind::InvalidArgument, message);
}

TEST_F(EngineTest, RefusesBadTokensBeforeComputing) {
  std::unique_ptr<Engine> engine = load();
  Sequence sequence = engine->newSequence();
  expectError(engine->feed(sequence, {}, LogitRows::Last),
              "there are no tokens to feed; give at least one");
  std::vector<int32_t> tokens = {1, 2, HASH_MODEL_VOCABULARY};
  expectError(
      engine->feed(sequence, tokens, LogitRows::Last),
      "token id 260 (number 2) is outside the vocabulary of 260 tokens");
  tokens[2] = -1;
  expectError(engine->feed(sequence, tokens, LogitRows::Last),
              "token id -1 (number 2) is outside the vocabulary of 260 tokens");
  Decoding batch;
  batch.add(sequence, 300);
  expectError(batch.run(*engine),
              "token id 300 (number 0) is outside the vocabulary of 260 "
              "tokens");
  EXPECT_EQ(sequence.length(), 0u);
}

TEST_F(EngineTest, RefusesMoreThanTheContext) {
  std::unique_ptr<Engine> engine = load({.contextLength = 20});
  Sequence sequence = engine->newSequence();
  expectError(engine->feed(sequence, makeTokens(21), LogitRows::Last),
              ErrorKind::ContextExceeded,
              "21 tokens after 0 are more than the model's context of 20 "
              "tokens");
  ASSERT_TRUE(engine->feed(sequence, makeTokens(20), LogitRows::Last));
  Decoding batch;
  batch.add(sequence, 1);
  expectError(batch.run(*engine), ErrorKind::ContextExceeded,
              "1 tokens after 20 are more than the model's context of 20 "
              "tokens");
}

TEST_F(EngineTest, RefusesMoreThanTheKVCache) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 16});
  Sequence sequence = engine->newSequence();
  expectError(engine->feed(sequence, makeTokens(17), LogitRows::Last),
              ErrorKind::CacheFull,
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
  Sequence first = engine->newSequence();
  ASSERT_TRUE(engine->feed(first, tokens, LogitRows::None));
  Sequence second = engine->newSequence();
  // Both need another block, and there is one.
  Decoding batch;
  batch.add(first, 1);
  batch.add(second, 2);
  expectError(batch.run(*engine), ErrorKind::CacheFull,
              "the KV cache is full: 2 more blocks are needed, 1 of 2 are "
              "free");
  EXPECT_EQ(engine->blockPool().freeBlocks(), 1u);
  EXPECT_EQ(first.length(), 16u);
  // A fork has no room for its copy.
  first.truncate(15);
  Sequence fork = first.fork();
  ASSERT_TRUE(engine->feed(second, makeTokens(16, 2), LogitRows::None));
  expectError(engine->feed(fork, std::span(tokens).last(1), LogitRows::Last),
              ErrorKind::CacheFull,
              "the KV cache is full: 1 more blocks are needed, 0 of 2 are "
              "free");
  second.clear();
  Recorder recorder;
  ASSERT_TRUE(engine->feed(fork, std::span(tokens).last(1), LogitRows::Last,
                           recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
}

TEST_F(EngineTest, RefusesBatchesThatThePlanDoesNotHold) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 2});
  std::vector<Sequence> sequences;
  Decoding batch;
  for (int i = 0; i < 3; ++i)
    sequences.emplace_back(engine->newSequence());
  for (Sequence &sequence : sequences)
    batch.add(sequence, 1);
  expectError(batch.run(*engine),
              "a step of 3 tokens is larger than the plan's 2");
  batch.sequences.pop_back();
  batch.tokens.pop_back();
  batch.sequences[1] = batch.sequences[0];
  expectError(batch.run(*engine), "one sequence is in a step twice");
  expectError(Decoding().run(*engine),
              "there are no tokens to feed; give at least one");
  const std::vector<int32_t> tokens = {1, 2};
  const Segment all[] = {{&sequences[0], tokens, LogitRows::All}};
  std::unique_ptr<Engine> narrow = load({.maxTokens = 2, .maxLogitRows = 1});
  Sequence own = narrow->newSequence();
  const Segment rows[] = {{&own, tokens, LogitRows::All}};
  expectError(narrow->step(rows, PhaseKind::Prefill),
              "a step of 2 rows of logits is larger than the plan's 1");
  expectError(narrow->step(all, PhaseKind::Prefill),
              "a sequence in a step is not one of this engine's");
}

TEST_F(EngineTest, StepsMixPiecesOfPromptsAndSingleTokens) {
  for (unsigned threads = 1; threads <= 3; ++threads)
    for (PhaseKind phase : {PhaseKind::Prefill, PhaseKind::Decode}) {
      std::unique_ptr<Engine> engine =
          load({.threads = threads, .maxTokens = 64, .maxLogitRows = 64},
               {.kvCacheTokens = 4000, .maxSequences = 5});
      std::vector<Sequence> sequences;
      std::vector<std::vector<int32_t>> texts(5);
      for (unsigned i = 0; i < 5; ++i)
        sequences.push_back(engine->newSequence());
      for (unsigned step = 0; step < 30; ++step) {
        std::vector<std::vector<int32_t>> pieces;
        std::vector<Segment> segments;
        std::vector<size_t> order;
        for (unsigned i = 0; i < 5; ++i) {
          const uint64_t choice = hashModelMix(step * 5 + i);
          if (choice % 4 == 0)
            continue;
          pieces.push_back(
              makeTokens(choice % 4 == 1 ? 1 + choice / 4 % 12 : 1, step + i));
          order.push_back(i);
        }
        for (size_t n = 0; n < order.size(); ++n) {
          std::vector<int32_t> &text = texts[order[n]];
          text.insert(text.end(), pieces[n].begin(), pieces[n].end());
          segments.push_back({&sequences[order[n]], pieces[n],
                              n % 3 == 0   ? LogitRows::All
                              : n % 3 == 1 ? LogitRows::None
                                           : LogitRows::Last});
        }
        if (segments.empty())
          continue;
        Result<StepResult> result = engine->step(segments, phase);
        ASSERT_TRUE(result) << result.error().message;
        for (size_t n = 0; n < order.size(); ++n) {
          const std::span<const int32_t> text = texts[order[n]];
          EXPECT_EQ(sequences[order[n]].length(), text.size());
          const size_t rows = n % 3 == 0   ? pieces[n].size()
                              : n % 3 == 1 ? 0
                                           : 1;
          for (size_t row = 0; row < rows; ++row)
            EXPECT_EQ(
                rowOf(*result, n, row),
                hashModelLogits(text.first(text.size() - rows + row + 1)));
        }
      }
    }
}

TEST_F(EngineTest, CopiesThatFallDueWhileAStepComputesAreMadeLater) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 200});
  std::vector<int32_t> tokens = makeTokens(20);
  Sequence first = engine->newSequence();
  ASSERT_TRUE(engine->feed(first, tokens, LogitRows::None));
  Sequence fork = first.fork();
  Sequence other = engine->newSequence();
  const int32_t token = 9;
  const Segment segment{&other, std::span(&token, 1)};
  ASSERT_TRUE(engine->begin(std::span(&segment, 1), PhaseKind::Decode));
  const BlockPool::Append append{&fork, 1};
  ASSERT_TRUE(engine->blockPool().reserve(std::span(&append, 1)));
  engine->compute();
  ASSERT_TRUE(engine->finish());
  other.append(segment.tokens);
  EXPECT_EQ(engine->blockPool().pendingCopies().size(), 1u);
  tokens.push_back(token);
  Recorder recorder;
  ASSERT_TRUE(engine->feed(fork, std::span(&token, 1), LogitRows::Last,
                           recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
}

TEST_F(EngineTest, SequencesBeginWithWhatOthersHaveComputed) {
  std::unique_ptr<Engine> engine = load({}, {.kvCacheTokens = 96});
  std::vector<int32_t> tokens = makeTokens(40);
  {
    Sequence first = engine->newSequence();
    ASSERT_TRUE(engine->feed(first, tokens, LogitRows::None));
  }
  Sequence second = engine->newSequence();
  EXPECT_EQ(second.claimPrefix(tokens), 32u);
  Recorder recorder;
  ASSERT_TRUE(engine->feed(second, std::span(tokens).subspan(32),
                           LogitRows::Last, recorder.callback()));
  EXPECT_EQ(recorder.rows.at(0), hashModelLogits(tokens));
  std::unique_ptr<Engine> without =
      load({}, {.kvCacheTokens = 96, .prefixCache = false});
  {
    Sequence first = without->newSequence();
    ASSERT_TRUE(without->feed(first, tokens, LogitRows::None));
  }
  EXPECT_EQ(without->newSequence().claimPrefix(tokens), 0u);
}

TEST_F(EngineTest, AnErrorOfTheCallbackEndsTheFeed) {
  std::unique_ptr<Engine> engine = load({.maxTokens = 4});
  Sequence sequence = engine->newSequence();
  int calls = 0;
  Status status =
      engine->feed(sequence, makeTokens(20), LogitRows::All,
                   [&](std::span<const float>, uint64_t, uint64_t) -> Status {
                     ++calls;
                     return makeError("the disk is full");
                   });
  expectError(status, ErrorKind::Unclassified, "the disk is full");
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
