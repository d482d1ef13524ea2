//===- CApiTest.cpp - Loading and describing models from C ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CApiFixture.h"

#include "Emulation.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandwich::test;

namespace {
class CApiEvaluatorTest : public CApiTest {
protected:
  void TearDown() override {
    sandwich_evaluator_free(evaluator);
    CApiTest::TearDown();
  }

  sandwich_evaluator *evaluator = nullptr;
};
} // namespace

static const int32_t prompt[] = {72, 101, 108, 108, 111};

TEST_F(CApiTest, VersionIsTheHeaders) {
  EXPECT_EQ(sandwich_api_version(), uint32_t{SANDWICH_API_VERSION});
}

TEST_F(CApiTest, TellsAboutTheModel) {
  load({.contextLength = 64, .endOfTextTokens = {9}});
  EXPECT_EQ(sandwich_vocab_size(description), uint64_t{HASH_MODEL_VOCABULARY});
  EXPECT_EQ(sandwich_context_length(description), 64u);
  EXPECT_STREQ(sandwich_name(description), "hash-model");
  EXPECT_TRUE(sandwich_has_tokenizer(description));
  EXPECT_TRUE(sandwich_is_end_token(description, 9));
  EXPECT_FALSE(sandwich_is_end_token(description, 8));
}

TEST_F(CApiTest, FindsTheProgramOfRanksBesideTheLibrary) {
  if (!canStart(SANDWICH_TEST_PROGRAM))
    GTEST_SKIP() << "this system does not start programs of this machine";
  // No variable has a say in what is executed.
  ::setenv("SANDWICH_RUN", "/bin/true", 1);
  load({.ranks = 2});
  ::unsetenv("SANDWICH_RUN");
}

TEST_F(CApiTest, RunsRanksWithTheProgramThatIsNamed) {
  auto options = defaults<sandwich_load_options>();
  options.rank_program = "/bin/true";
  EXPECT_EQ(sandwich_model_load(write({.ranks = 2}).c_str(), &options, nullptr,
                                &model, &error),
            SANDWICH_FAILED);
  EXPECT_TRUE(message().ends_with("ended before it was told to"));
}

TEST_F(CApiTest, VerifiesWeightsIfAsked) {
  const std::string path = write();
  std::fstream weights(path + "/weights.bin", std::ios::in | std::ios::out);
  weights.seekp(100).put('x');
  weights.close();
  auto options = defaults<sandwich_load_options>();
  options.verify_weights = 1;
  EXPECT_EQ(
      sandwich_model_load(path.c_str(), &options, nullptr, &model, &error),
      SANDWICH_FAILED);
  EXPECT_NE(message().find("weights.bin: has a wrong checksum"),
            std::string::npos);
}

TEST_F(CApiTest, LoadOptionsReachTheEngine) {
  std::string log;
  auto options = defaults<sandwich_load_options>();
  options.weights = SANDWICH_WEIGHTS_MAPPED;
  options.log = [](void *data, int, const char *text) {
    *static_cast<std::string *>(data) += text;
  };
  options.user_data = &log;
  load({}, &options);
  EXPECT_NE(log.find("threads"), std::string::npos);
  sandwich_model *other = nullptr;
  options.kv_memory = UINT64_MAX;
  const std::string path = folder.file("model.sandwich");
  EXPECT_EQ(
      sandwich_model_load(path.c_str(), &options, nullptr, &other, &error),
      SANDWICH_FAILED);
  EXPECT_NE(message().find("kv-memory"), std::string::npos);
  options.kv_memory = 0;
  options.weights = 7;
  EXPECT_EQ(
      sandwich_model_load(path.c_str(), &options, nullptr, &other, &error),
      SANDWICH_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "weights is 7, which is not one of sandwich_weights");
  EXPECT_EQ(other, nullptr);
}

TEST_F(CApiTest, ServingOptionsAreChecked) {
  auto options = defaults<sandwich_serving_options>();
  options.first_token_objective = -1;
  EXPECT_EQ(
      sandwich_model_load(write().c_str(), nullptr, &options, &model, &error),
      SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message(), "");
}

TEST_F(CApiTest, TextBecomesTokensAndTextAgain) {
  load();
  int32_t *tokens = nullptr;
  size_t count = 0;
  ASSERT_EQ(
      sandwich_tokenize(description, "a\0b", 3, 0, &tokens, &count, &error),
      SANDWICH_OK);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(tokens[0], 97);
  EXPECT_EQ(tokens[1], 0);
  char *text = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(
      sandwich_detokenize(description, tokens, count, 0, &text, &bytes, &error),
      SANDWICH_OK);
  EXPECT_EQ(std::string(text, bytes), std::string("a\0b", 3));
  EXPECT_EQ(text[bytes], '\0');
  sandwich_free(text);
  sandwich_free(tokens);
  EXPECT_EQ(
      sandwich_tokenize(description, "\xff", 1, 0, &tokens, &count, &error),
      SANDWICH_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "the text is not valid UTF-8 at byte 0");
}

TEST_F(CApiTest, SpecialTokensInTextAreTextUnlessAsked) {
  load();
  auto tokenize = [&](int flags) {
    int32_t *tokens = nullptr;
    size_t count = 0;
    EXPECT_EQ(sandwich_tokenize(description, "a</s>", 5, flags, &tokens, &count,
                                &error),
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
  EXPECT_EQ(sandwich_tokenize(description, "a", 1, 4, &tokens, &count, &error),
            SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message().find("flags"), std::string::npos);
}

TEST_F(CApiTest, StructuresMayBeOlderAndShorter) {
  load();
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  options.sampling = &sampling;
  sampling.top_p = 77;
  sandwich_request *request = nullptr;
  EXPECT_EQ(
      sandwich_request_submit(model, prompt, 5, &options, &request, &error),
      SANDWICH_INVALID_ARGUMENT);
  EXPECT_EQ(message(), "top-p is 77; it must be above 0 and at most 1");
  // As a program passes it that knows what comes before top_p only.
  sampling.struct_size = offsetof(sandwich_sampling_options, top_p);
  EXPECT_EQ(
      sandwich_request_submit(model, prompt, 5, &options, &request, &error),
      SANDWICH_OK);
  sandwich_request_free(request);
  request = nullptr;
  for (size_t size : {size_t{0}, sizeof(sampling) + 1, SIZE_MAX}) {
    sampling.struct_size = size;
    EXPECT_EQ(
        sandwich_request_submit(model, prompt, 5, &options, &request, &error),
        SANDWICH_INVALID_ARGUMENT);
    EXPECT_NE(message().find("struct_size of sampling options"),
              std::string::npos);
  }
  EXPECT_EQ(request, nullptr);
  // A statistic that an older program does not know stays as it is.
  auto statistics = defaults<sandwich_statistics>();
  statistics.struct_size = offsetof(sandwich_statistics, steps);
  statistics.steps = 12345;
  EXPECT_EQ(sandwich_model_statistics(model, &statistics, &error), SANDWICH_OK);
  EXPECT_EQ(statistics.steps, 12345u);
  EXPECT_EQ(statistics.requests, 1u);
}

TEST_F(CApiTest, NullIsAnInvalidArgument) {
  load();
  sandwich_model *other = nullptr;
  sandwich_request *request = nullptr;
  sandwich_evaluator *evaluator = nullptr;
  int32_t *tokens = nullptr;
  size_t count = 0;
  char *text = nullptr;
  float logits = 0;
  const sandwich_event *event = nullptr;
  int descriptor = 0;
  ASSERT_EQ(
      sandwich_request_submit(model, prompt, 5, nullptr, &request, &error),
      SANDWICH_OK);
  const std::vector<std::function<sandwich_status(char **)>> calls = {
      [&](char **told) {
        return sandwich_model_load(nullptr, nullptr, nullptr, &other, told);
      },
      [&](char **told) {
        return sandwich_model_load("x", nullptr, nullptr, nullptr, told);
      },
      [&](char **told) {
        return sandwich_model_statistics(nullptr, nullptr, told);
      },
      [&](char **told) {
        return sandwich_model_statistics(model, nullptr, told);
      },
      [&](char **told) {
        return sandwich_tokenize(nullptr, "x", 1, 0, &tokens, &count, told);
      },
      [&](char **told) {
        return sandwich_tokenize(description, nullptr, 1, 0, &tokens, &count,
                                 told);
      },
      [&](char **told) {
        return sandwich_tokenize(description, "x", 1, 0, nullptr, &count, told);
      },
      [&](char **told) {
        return sandwich_tokenize(description, "x", 1, 0, &tokens, nullptr,
                                 told);
      },
      [&](char **told) {
        return sandwich_detokenize(nullptr, prompt, 1, 0, &text, nullptr, told);
      },
      [&](char **told) {
        return sandwich_detokenize(description, nullptr, 1, 0, &text, nullptr,
                                   told);
      },
      [&](char **told) {
        return sandwich_detokenize(description, prompt, 1, 0, nullptr, nullptr,
                                   told);
      },
      [&](char **told) {
        return sandwich_request_submit(nullptr, prompt, 1, nullptr, &request,
                                       told);
      },
      [&](char **told) {
        return sandwich_request_submit(model, nullptr, 1, nullptr, &request,
                                       told);
      },
      [&](char **told) {
        return sandwich_request_submit(model, nullptr, 0, nullptr, &request,
                                       told);
      },
      [&](char **told) {
        return sandwich_request_submit(model, prompt, 1, nullptr, nullptr,
                                       told);
      },
      [&](char **told) {
        return sandwich_request_next(nullptr, 0, &event, told);
      },
      [&](char **told) {
        return sandwich_request_next(request, 0, nullptr, told);
      },
      [&](char **told) {
        return sandwich_request_next(request, NAN, &event, told);
      },
      [&](char **told) {
        return sandwich_request_descriptor(nullptr, &descriptor, told);
      },
      [&](char **told) {
        return sandwich_request_descriptor(request, nullptr, told);
      },
      [&](char **told) {
        return sandwich_evaluator_load(nullptr, nullptr, &evaluator, told);
      },
      [&](char **told) {
        return sandwich_evaluator_load("x", nullptr, nullptr, told);
      },
      [&](char **told) {
        return sandwich_evaluator_logits(nullptr, prompt, 1, &logits, told);
      }};
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i](&error), SANDWICH_INVALID_ARGUMENT) << "call " << i;
    EXPECT_NE(message(), "") << "call " << i;
    EXPECT_EQ(calls[i](nullptr), SANDWICH_INVALID_ARGUMENT) << "call " << i;
  }
  sandwich_request_free(request);
}

TEST_F(CApiTest, NullTellsNothing) {
  EXPECT_EQ(sandwich_model_describe(nullptr), nullptr);
  EXPECT_EQ(sandwich_evaluator_describe(nullptr), nullptr);
  EXPECT_EQ(sandwich_vocab_size(nullptr), 0u);
  EXPECT_EQ(sandwich_context_length(nullptr), 0u);
  EXPECT_EQ(sandwich_name(nullptr), nullptr);
  EXPECT_EQ(sandwich_has_tokenizer(nullptr), 0);
  EXPECT_EQ(sandwich_is_end_token(nullptr, 0), 0);
  sandwich_request_cancel(nullptr);
  sandwich_model_free(nullptr);
  sandwich_request_free(nullptr);
  sandwich_evaluator_free(nullptr);
  sandwich_free(nullptr);
}

TEST_F(CApiTest, BadInputFailsWithAMessage) {
  EXPECT_EQ(sandwich_model_load("/absent", nullptr, nullptr, &model, &error),
            SANDWICH_FAILED);
  EXPECT_NE(message().find("/absent"), std::string::npos);
  EXPECT_EQ(sandwich_model_load("/absent", nullptr, nullptr, &model, nullptr),
            SANDWICH_FAILED);
  EXPECT_EQ(model, nullptr);
  load({.withTokenizer = false});
  EXPECT_FALSE(sandwich_has_tokenizer(description));
  int32_t *tokens = nullptr;
  size_t count = 0;
  EXPECT_EQ(sandwich_tokenize(description, "x", 1, 1, &tokens, &count, &error),
            SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message().find("has no tokenizer.json"), std::string::npos);
}

TEST_F(CApiEvaluatorTest, LogitsAreThoseOfTheModel) {
  ASSERT_EQ(
      sandwich_evaluator_load(write().c_str(), nullptr, &evaluator, &error),
      SANDWICH_OK)
      << error;
  const sandwich_description *told = sandwich_evaluator_describe(evaluator);
  EXPECT_EQ(sandwich_vocab_size(told), uint64_t{HASH_MODEL_VOCABULARY});
  std::vector<int32_t> tokens(50);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>(i * 7 % 250);
  std::vector<float> all(tokens.size() * HASH_MODEL_VOCABULARY);
  // Texts have nothing to do with each other.
  for (int repetition = 0; repetition < 2; ++repetition) {
    std::fill(all.begin(), all.end(), 0.0F);
    ASSERT_EQ(sandwich_evaluator_logits(evaluator, tokens.data(), tokens.size(),
                                        all.data(), &error),
              SANDWICH_OK)
        << message();
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto row = all.begin() + static_cast<long>(i * HASH_MODEL_VOCABULARY);
      EXPECT_EQ(std::vector<float>(row, row + HASH_MODEL_VOCABULARY),
                hashModelLogits(std::span(tokens).first(i + 1)));
    }
  }
}

TEST_F(CApiEvaluatorTest, ErrorsHaveTheirKinds) {
  auto options = defaults<sandwich_load_options>();
  // One block of the model, and room that is no block.
  options.kv_memory = 130;
  ASSERT_EQ(sandwich_evaluator_load(write({.contextLength = 32}).c_str(),
                                    &options, &evaluator, &error),
            SANDWICH_OK)
      << message();
  std::vector<float> logits(size_t{40} * HASH_MODEL_VOCABULARY);
  auto compute = [&](const std::vector<int32_t> &tokens) {
    return sandwich_evaluator_logits(evaluator, tokens.data(), tokens.size(),
                                     logits.data(), &error);
  };
  EXPECT_EQ(compute(std::vector<int32_t>(17, 1)), SANDWICH_CACHE_FULL);
  EXPECT_NE(message().find("the KV cache is full"), std::string::npos);
  EXPECT_EQ(compute(std::vector<int32_t>(33, 1)), SANDWICH_CONTEXT_EXCEEDED);
  EXPECT_NE(message().find("context of 32"), std::string::npos);
  EXPECT_EQ(compute({HASH_MODEL_VOCABULARY}), SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message().find("token id 260"), std::string::npos);
  EXPECT_EQ(compute({}), SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message().find("no tokens"), std::string::npos);
  EXPECT_EQ(compute(std::vector<int32_t>(16, 1)), SANDWICH_OK) << message();
}

TEST_F(CApiEvaluatorTest, AForkIsToldToLoadItself) {
  ASSERT_EQ(
      sandwich_evaluator_load(write().c_str(), nullptr, &evaluator, &error),
      SANDWICH_OK);
  std::vector<float> logits(size_t{5} * HASH_MODEL_VOCABULARY);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool refused =
        sandwich_evaluator_logits(evaluator, prompt, 5, logits.data(),
                                  &error) == SANDWICH_UNAVAILABLE &&
        message().find("fork") != std::string::npos;
    sandwich_evaluator_free(evaluator);
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(
      sandwich_evaluator_logits(evaluator, prompt, 5, logits.data(), &error),
      SANDWICH_OK);
}
