//===- CApiTest.cpp - Running compiled models from C ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/sandwich.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandwich::test;

namespace {
class CApiTest : public ::testing::Test {
protected:
  void TearDown() override {
    sandwich_sequence_free(sequence);
    sandwich_model_free(model);
    sandwich_free(error);
  }

  void load(const HashModelOptions &options = {}) {
    std::string path = folder.file("model.sandwich");
    sandwich::Status written = writeHashModel(path, options);
    ASSERT_TRUE(written) << written.error().message;
    ASSERT_EQ(sandwich_model_load(path.c_str(), nullptr, &model, &error),
              SANDWICH_OK)
        << error;
    ASSERT_EQ(sandwich_sequence_create(model, &sequence, &error), SANDWICH_OK)
        << error;
  }

  /// The error message, which is then forgotten.
  std::string message() {
    std::string text = error ? error : "";
    sandwich_free(error);
    error = nullptr;
    return text;
  }

  TemporaryFolder folder;
  sandwich_model *model = nullptr;
  sandwich_sequence *sequence = nullptr;
  char *error = nullptr;
};
} // namespace

static const int32_t prompt[] = {72, 101, 108, 108, 111};

TEST_F(CApiTest, VersionIsTheHeaders) {
  EXPECT_EQ(sandwich_api_version(), uint32_t{SANDWICH_API_VERSION});
}

TEST_F(CApiTest, TellsAboutTheModel) {
  load({.contextLength = 64, .endOfTextTokens = {9}});
  EXPECT_EQ(sandwich_model_vocab_size(model), uint64_t{HASH_MODEL_VOCABULARY});
  EXPECT_EQ(sandwich_model_context_length(model), 64u);
  EXPECT_STREQ(sandwich_model_name(model), "hash-model");
  EXPECT_TRUE(sandwich_model_has_tokenizer(model));
  EXPECT_TRUE(sandwich_model_is_end_token(model, 9));
  EXPECT_FALSE(sandwich_model_is_end_token(model, 8));
}

TEST_F(CApiTest, FindsTheProgramOfRanksBesideTheLibrary) {
  // No variable has a say in what is executed.
  ::setenv("SANDWICH_RUN", "/bin/true", 1);
  load({.ranks = 2});
  ::unsetenv("SANDWICH_RUN");
  EXPECT_EQ(sandwich_sequence_feed(sequence, prompt, 5, /*all_logits=*/nullptr,
                                   &error),
            SANDWICH_OK)
      << message();
}

TEST_F(CApiTest, RunsRanksWithTheProgramThatIsNamed) {
  const std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path, {.ranks = 2}));
  sandwich_load_options options = {};
  options.struct_size = sizeof(options);
  options.rank_program = "/bin/true";
  EXPECT_EQ(sandwich_model_load(path.c_str(), &options, &model, &error),
            SANDWICH_FAILED);
  EXPECT_TRUE(message().ends_with("ended before it was told to"));
}

TEST_F(CApiTest, VerifiesWeightsIfAsked) {
  const std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path));
  std::fstream weights(path + "/weights.bin", std::ios::in | std::ios::out);
  weights.seekp(100).put('x');
  weights.close();
  sandwich_load_options options = {};
  options.struct_size = sizeof(options);
  options.verify_weights = 1;
  EXPECT_EQ(sandwich_model_load(path.c_str(), &options, &model, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("weights.bin: has a wrong checksum"),
            std::string::npos);
}

TEST_F(CApiTest, TextBecomesTokensAndTextAgain) {
  load();
  int32_t *tokens = nullptr;
  size_t count = 0;
  ASSERT_EQ(sandwich_tokenize(model, "a\0b", 3, 0, &tokens, &count, &error),
            SANDWICH_OK);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(tokens[0], 97);
  EXPECT_EQ(tokens[1], 0);
  char *text = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(sandwich_detokenize(model, tokens, count, 0, &text, &bytes, &error),
            SANDWICH_OK);
  EXPECT_EQ(std::string(text, bytes), std::string("a\0b", 3));
  EXPECT_EQ(text[bytes], '\0');
  sandwich_free(text);
  sandwich_free(tokens);
  ASSERT_EQ(sandwich_tokenize(model, nullptr, 0, 0, &tokens, &count, &error),
            SANDWICH_OK);
  EXPECT_EQ(count, 0u);
  sandwich_free(tokens);
  EXPECT_EQ(sandwich_tokenize(model, "\xff", 1, 0, &tokens, &count, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message(), "");
}

TEST_F(CApiTest, DecodesTokenByToken) {
  load();
  sandwich_decoder *decoder = nullptr;
  ASSERT_EQ(sandwich_decoder_create(model, 1, &decoder, &error), SANDWICH_OK);
  const char *text = nullptr;
  size_t bytes = 1;
  ASSERT_EQ(sandwich_decoder_add(decoder, 0xc3, &text, &bytes, &error),
            SANDWICH_OK);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(bytes, 0u);
  ASSERT_EQ(sandwich_decoder_add(decoder, 0xa9, &text, nullptr, &error),
            SANDWICH_OK);
  EXPECT_STREQ(text, "\xc3\xa9");
  ASSERT_EQ(sandwich_decoder_add(decoder, 0xc3, &text, &bytes, &error),
            SANDWICH_OK);
  ASSERT_EQ(sandwich_decoder_finish(decoder, &text, &bytes, &error),
            SANDWICH_OK);
  EXPECT_STREQ(text, "\xef\xbf\xbd");
  // The decoder outlives the model.
  sandwich_sequence_free(sequence);
  sequence = nullptr;
  sandwich_model_free(model);
  model = nullptr;
  ASSERT_EQ(sandwich_decoder_add(decoder, 65, &text, &bytes, &error),
            SANDWICH_OK);
  EXPECT_STREQ(text, "A");
  sandwich_decoder_free(decoder);
}

TEST_F(CApiTest, FeedsAndGivesLogits) {
  load();
  EXPECT_EQ(sandwich_sequence_logits(sequence), nullptr);
  ASSERT_EQ(sandwich_sequence_feed(sequence, prompt, 5, nullptr, &error),
            SANDWICH_OK);
  EXPECT_EQ(sandwich_sequence_length(sequence), 5u);
  const float *logits = sandwich_sequence_logits(sequence);
  EXPECT_EQ(std::vector<float>(logits, logits + HASH_MODEL_VOCABULARY),
            hashModelLogits(prompt));

  // Longer than one step, so that rows arrive in pieces.
  std::vector<int32_t> tokens(50);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>(i * 5);
  std::vector<float> all(tokens.size() * HASH_MODEL_VOCABULARY);
  sandwich_sequence_clear(sequence);
  EXPECT_EQ(sandwich_sequence_length(sequence), 0u);
  EXPECT_EQ(sandwich_sequence_logits(sequence), nullptr);
  ASSERT_EQ(sandwich_sequence_feed(sequence, tokens.data(), tokens.size(),
                                   all.data(), &error),
            SANDWICH_OK);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto row = all.begin() + static_cast<long>(i * HASH_MODEL_VOCABULARY);
    EXPECT_EQ(std::vector<float>(row, row + HASH_MODEL_VOCABULARY),
              hashModelLogits(std::span(tokens).first(i + 1)));
  }
  logits = sandwich_sequence_logits(sequence);
  EXPECT_EQ(std::memcmp(logits,
                        &all[(tokens.size() - 1) * HASH_MODEL_VOCABULARY],
                        HASH_MODEL_VOCABULARY * sizeof(float)),
            0);
}

TEST_F(CApiTest, ForksGoOnByThemselves) {
  load();
  ASSERT_EQ(sandwich_sequence_feed(sequence, prompt, 5, nullptr, &error),
            SANDWICH_OK);
  sandwich_sequence *fork = nullptr;
  ASSERT_EQ(sandwich_sequence_fork(sequence, &fork, &error), SANDWICH_OK);
  EXPECT_EQ(sandwich_sequence_length(fork), 5u);
  EXPECT_EQ(std::memcmp(sandwich_sequence_logits(fork),
                        sandwich_sequence_logits(sequence),
                        HASH_MODEL_VOCABULARY * sizeof(float)),
            0);
  for (auto [which, token] : {std::pair(fork, 1), std::pair(sequence, 2)}) {
    std::vector<int32_t> tokens(std::begin(prompt), std::end(prompt));
    tokens.push_back(token);
    ASSERT_EQ(sandwich_sequence_feed(which, &tokens.back(), 1, nullptr, &error),
              SANDWICH_OK);
    const float *logits = sandwich_sequence_logits(which);
    EXPECT_EQ(std::vector<float>(logits, logits + HASH_MODEL_VOCABULARY),
              hashModelLogits(tokens));
  }
  sandwich_sequence_free(fork);
  fork = nullptr;
  EXPECT_EQ(sandwich_sequence_fork(nullptr, &fork, &error),
            SANDWICH_WRONG_USAGE);
  EXPECT_NE(message(), "");
  EXPECT_EQ(fork, nullptr);
}

TEST_F(CApiTest, KVMemoryIsTheSizeOfTheCache) {
  load();
  std::string path = folder.file("model.sandwich");
  sandwich_load_options options = {};
  options.struct_size = sizeof(options);
  // One block of the model, and room that is no block.
  options.kv_memory = 130;
  sandwich_model *small = nullptr;
  ASSERT_EQ(sandwich_model_load(path.c_str(), &options, &small, &error),
            SANDWICH_OK)
      << message();
  sandwich_sequence *other = nullptr;
  ASSERT_EQ(sandwich_sequence_create(small, &other, &error), SANDWICH_OK);
  std::vector<int32_t> tokens(17, 1);
  EXPECT_EQ(sandwich_sequence_feed(other, tokens.data(), 17, nullptr, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("the KV cache is full"), std::string::npos);
  EXPECT_EQ(sandwich_sequence_feed(other, tokens.data(), 16, nullptr, &error),
            SANDWICH_OK);
  sandwich_sequence_free(other);
  sandwich_model_free(small);
  options.kv_memory = UINT64_MAX;
  EXPECT_EQ(sandwich_model_load(path.c_str(), &options, &small, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("kv-memory"), std::string::npos);
}

TEST_F(CApiTest, SamplesWhatFollows) {
  load();
  sandwich_sampler *sampler = nullptr;
  ASSERT_EQ(sandwich_sampler_create(nullptr, &sampler, &error), SANDWICH_OK);
  int32_t token = -1;
  EXPECT_EQ(sandwich_sampler_sample(sampler, sequence, &token, &error),
            SANDWICH_WRONG_USAGE);
  EXPECT_NE(message(), "");
  ASSERT_EQ(sandwich_sequence_feed(sequence, prompt, 5, nullptr, &error),
            SANDWICH_OK);
  ASSERT_EQ(sandwich_sampler_sample(sampler, sequence, &token, &error),
            SANDWICH_OK);
  EXPECT_EQ(token, hashModelNext(prompt));
  sandwich_sampler_free(sampler);
}

TEST_F(CApiTest, Generates) {
  load();
  struct Seen {
    std::vector<int32_t> tokens;
    std::string text;
    size_t stopAfter = 1000;
  } seen;
  auto callback = [](void *data, int32_t token, const char *text,
                     size_t bytes) {
    auto &seen = *static_cast<Seen *>(data);
    if (token >= 0)
      seen.tokens.push_back(token);
    seen.text.append(text, bytes);
    return seen.tokens.size() < seen.stopAfter ? 1 : 0;
  };
  sandwich_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = 30;
  sandwich_generate_statistics statistics = {};
  statistics.struct_size = sizeof(statistics);
  ASSERT_EQ(sandwich_generate(sequence, prompt, 5, &options, callback, &seen,
                              &statistics, &error),
            SANDWICH_OK)
      << error;
  EXPECT_EQ(statistics.struct_size, sizeof(statistics));
  EXPECT_EQ(statistics.prompt_tokens, 5u);
  EXPECT_EQ(statistics.generated_tokens, 30u);
  EXPECT_EQ(statistics.stop_reason, SANDWICH_STOP_MAX_TOKENS);
  EXPECT_GT(statistics.time_to_first_token_ms, 0);
  ASSERT_EQ(seen.tokens.size(), 30u);
  std::vector<int32_t> text(prompt, prompt + 5);
  for (int32_t token : seen.tokens) {
    EXPECT_EQ(token, hashModelNext(text));
    text.push_back(token);
  }
  char *all = nullptr;
  ASSERT_EQ(sandwich_detokenize(model, seen.tokens.data(), seen.tokens.size(),
                                1, &all, nullptr, &error),
            SANDWICH_OK);
  EXPECT_EQ(seen.text, all);
  sandwich_free(all);

  Seen stopped;
  stopped.stopAfter = 2;
  sandwich_sequence_clear(sequence);
  ASSERT_EQ(sandwich_generate(sequence, prompt, 5, nullptr, callback, &stopped,
                              &statistics, &error),
            SANDWICH_OK);
  EXPECT_EQ(stopped.tokens.size(), 2u);
  EXPECT_EQ(statistics.stop_reason, SANDWICH_STOP_CALLBACK);
}

TEST_F(CApiTest, SpecialTokensInTextAreTextUnlessAsked) {
  load();
  auto tokenize = [&](int flags) {
    int32_t *tokens = nullptr;
    size_t count = 0;
    EXPECT_EQ(
        sandwich_tokenize(model, "a</s>", 5, flags, &tokens, &count, &error),
        SANDWICH_OK);
    std::vector<int32_t> ids(tokens, tokens + count);
    sandwich_free(tokens);
    return ids;
  };
  EXPECT_EQ(tokenize(0), (std::vector<int32_t>{97, 60, 47, 115, 62}));
  EXPECT_EQ(tokenize(SANDWICH_TOKENIZE_ADD_SPECIAL).size(), 5u);
  EXPECT_EQ(tokenize(SANDWICH_TOKENIZE_PARSE_SPECIAL),
            (std::vector<int32_t>{97, 257}));
  int32_t *tokens = nullptr;
  size_t count = 0;
  EXPECT_EQ(sandwich_tokenize(model, "a", 1, 4, &tokens, &count, &error),
            SANDWICH_WRONG_USAGE);
  EXPECT_NE(message().find("flags"), std::string::npos);
}

TEST_F(CApiTest, TextContinuesThatOfTheTokensBefore) {
  load();
  sandwich_decoder *decoder = nullptr;
  ASSERT_EQ(sandwich_decoder_create(model, 1, &decoder, &error), SANDWICH_OK);
  const int32_t before[] = {'x', 0xE2, 0x82};
  ASSERT_EQ(sandwich_decoder_skip(decoder, before, 3, &error), SANDWICH_OK);
  const char *piece = nullptr;
  ASSERT_EQ(sandwich_decoder_add(decoder, 0xAC, &piece, nullptr, &error),
            SANDWICH_OK);
  EXPECT_STREQ(piece, "\u20AC");
  EXPECT_EQ(sandwich_decoder_skip(decoder, nullptr, 1, &error),
            SANDWICH_WRONG_USAGE);
  EXPECT_NE(message(), "");

  // One part of a character is fed and the next is the prompt.
  ASSERT_EQ(sandwich_sequence_feed(sequence, before, 2, nullptr, &error),
            SANDWICH_OK);
  struct Seen {
    std::vector<int32_t> tokens;
    std::string text;
  } seen;
  auto callback = [](void *data, int32_t token, const char *text,
                     size_t bytes) {
    auto &all = *static_cast<Seen *>(data);
    if (token >= 0)
      all.tokens.push_back(token);
    all.text.append(text, bytes);
    return 1;
  };
  sandwich_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = 20;
  ASSERT_EQ(sandwich_generate(sequence, before + 2, 1, &options, callback,
                              &seen, nullptr, &error),
            SANDWICH_OK);
  // A new decoder for the same tokens; the other has ended its text.
  ASSERT_EQ(sandwich_decoder_finish(decoder, &piece, nullptr, &error),
            SANDWICH_OK);
  ASSERT_EQ(sandwich_decoder_skip(decoder, before, 3, &error), SANDWICH_OK);
  std::string expected;
  for (int32_t token : seen.tokens) {
    ASSERT_EQ(sandwich_decoder_add(decoder, token, &piece, nullptr, &error),
              SANDWICH_OK);
    expected += piece;
  }
  ASSERT_EQ(sandwich_decoder_finish(decoder, &piece, nullptr, &error),
            SANDWICH_OK);
  EXPECT_EQ(seen.text, expected + piece);
  sandwich_decoder_free(decoder);
}

TEST_F(CApiTest, LogitsFollowGenerating) {
  load();
  sandwich_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = 1;
  ASSERT_EQ(sandwich_generate(sequence, prompt, 5, &options, nullptr, nullptr,
                              nullptr, &error),
            SANDWICH_OK);
  auto logits = [&] {
    const float *row = sandwich_sequence_logits(sequence);
    return row ? std::vector<float>(row, row + HASH_MODEL_VOCABULARY)
               : std::vector<float>();
  };
  EXPECT_EQ(logits(), hashModelLogits(prompt));
  // What is refused leaves them.
  options.sampling.struct_size = sizeof(options.sampling);
  options.sampling.temperature = -1;
  EXPECT_EQ(sandwich_generate(sequence, prompt, 5, &options, nullptr, nullptr,
                              nullptr, nullptr),
            SANDWICH_FAILED);
  int32_t outside = HASH_MODEL_VOCABULARY;
  EXPECT_EQ(sandwich_generate(sequence, &outside, 1, nullptr, nullptr, nullptr,
                              nullptr, nullptr),
            SANDWICH_FAILED);
  EXPECT_EQ(logits(), hashModelLogits(prompt));
}

TEST_F(CApiTest, AForkIsToldToLoadItself) {
  load();
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bool refused = sandwich_sequence_feed(sequence, prompt, 5, nullptr,
                                          &error) == SANDWICH_FAILED &&
                   message().find("fork") != std::string::npos;
    sandwich_sequence_free(sequence);
    sandwich_model_free(model);
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(sandwich_sequence_feed(sequence, prompt, 5, nullptr, &error),
            SANDWICH_OK);
}

TEST_F(CApiTest, HandlesMayBeFreedInAnyOrder) {
  load();
  sandwich_model_free(model);
  model = nullptr;
  EXPECT_EQ(sandwich_sequence_feed(sequence, prompt, 5, nullptr, &error),
            SANDWICH_OK);
  sandwich_model_free(nullptr);
  sandwich_sequence_free(nullptr);
  sandwich_sampler_free(nullptr);
  sandwich_decoder_free(nullptr);
  sandwich_free(nullptr);
}

TEST_F(CApiTest, LoadOptionsReachTheEngine) {
  load();
  std::string path = folder.file("model.sandwich");
  std::string log;
  sandwich_load_options options = {};
  options.struct_size = sizeof(options);
  options.kv_cache_tokens = 16;
  options.weights = SANDWICH_WEIGHTS_MAPPED;
  options.log = [](void *data, int, const char *text) {
    *static_cast<std::string *>(data) += text;
  };
  options.user_data = &log;
  sandwich_model *small = nullptr;
  ASSERT_EQ(sandwich_model_load(path.c_str(), &options, &small, &error),
            SANDWICH_OK);
  EXPECT_NE(log.find("threads"), std::string::npos);
  sandwich_sequence *other = nullptr;
  ASSERT_EQ(sandwich_sequence_create(small, &other, &error), SANDWICH_OK);
  std::vector<int32_t> tokens(17, 1);
  EXPECT_EQ(sandwich_sequence_feed(other, tokens.data(), 17, nullptr, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("the KV cache is full"), std::string::npos);
  EXPECT_EQ(sandwich_sequence_feed(other, tokens.data(), 16, nullptr, &error),
            SANDWICH_OK);
  sandwich_sequence_free(other);
  sandwich_model_free(small);
}

TEST_F(CApiTest, OlderAndShorterOptionsAreAccepted) {
  // As a program would pass it that knows the first two options only.
  sandwich_sampling_options options = {};
  options.struct_size = offsetof(sandwich_sampling_options, top_p);
  options.top_p = 77;
  sandwich_sampler *sampler = nullptr;
  EXPECT_EQ(sandwich_sampler_create(&options, &sampler, &error), SANDWICH_OK);
  sandwich_sampler_free(sampler);
  sampler = nullptr;
  options.struct_size = sizeof(options);
  EXPECT_EQ(sandwich_sampler_create(&options, &sampler, &error),
            SANDWICH_FAILED);
  EXPECT_EQ(message(), "top-p is 77; it must be above 0 and at most 1");
  for (size_t size : {size_t{0}, sizeof(options) + 1}) {
    options.struct_size = size;
    EXPECT_EQ(sandwich_sampler_create(&options, &sampler, &error),
              SANDWICH_WRONG_USAGE);
    EXPECT_NE(message(), "");
  }
  EXPECT_EQ(sampler, nullptr);
}

TEST_F(CApiTest, BadInputFailsWithAMessage) {
  EXPECT_EQ(sandwich_model_load("/absent", nullptr, &model, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("/absent"), std::string::npos);
  EXPECT_EQ(sandwich_model_load("/absent", nullptr, &model, nullptr),
            SANDWICH_FAILED);
  EXPECT_EQ(model, nullptr);
  load({.withTokenizer = false});
  EXPECT_FALSE(sandwich_model_has_tokenizer(model));
  int32_t *tokens = nullptr;
  size_t count = 0;
  EXPECT_EQ(sandwich_tokenize(model, "x", 1, 1, &tokens, &count, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("has no tokenizer.json"), std::string::npos);
  int32_t outside = HASH_MODEL_VOCABULARY;
  EXPECT_EQ(sandwich_sequence_feed(sequence, &outside, 1, nullptr, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("token id 260"), std::string::npos);
  int32_t spoiling = HASH_MODEL_VOCABULARY - 1;
  EXPECT_EQ(sandwich_generate(sequence, &spoiling, 1, nullptr, nullptr, nullptr,
                              nullptr, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("is nan"), std::string::npos);
}

TEST_F(CApiTest, NullIsWrongUsage) {
  load();
  sandwich_model *other = nullptr;
  EXPECT_EQ(sandwich_model_load(nullptr, nullptr, &other, nullptr),
            SANDWICH_WRONG_USAGE);
  EXPECT_EQ(sandwich_model_load("x", nullptr, nullptr, &error),
            SANDWICH_WRONG_USAGE);
  EXPECT_EQ(message(), "out is NULL");
  EXPECT_EQ(sandwich_sequence_create(nullptr, &sequence, nullptr),
            SANDWICH_WRONG_USAGE);
  EXPECT_EQ(sandwich_sequence_feed(nullptr, prompt, 1, nullptr, nullptr),
            SANDWICH_WRONG_USAGE);
  EXPECT_EQ(sandwich_sequence_feed(sequence, nullptr, 1, nullptr, nullptr),
            SANDWICH_WRONG_USAGE);
  EXPECT_EQ(sandwich_generate(sequence, nullptr, 0, nullptr, nullptr, nullptr,
                              nullptr, nullptr),
            SANDWICH_WRONG_USAGE);
}

TEST_F(CApiTest, NullTellsNothing) {
  EXPECT_EQ(sandwich_model_vocab_size(nullptr), 0u);
  EXPECT_EQ(sandwich_model_context_length(nullptr), 0u);
  EXPECT_EQ(sandwich_model_name(nullptr), nullptr);
  EXPECT_EQ(sandwich_model_has_tokenizer(nullptr), 0);
  EXPECT_EQ(sandwich_model_is_end_token(nullptr, 0), 0);
  EXPECT_EQ(sandwich_sequence_length(nullptr), 0u);
  EXPECT_EQ(sandwich_sequence_logits(nullptr), nullptr);
  sandwich_sequence_clear(nullptr);
}
