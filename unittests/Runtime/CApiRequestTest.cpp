//===- CApiRequestTest.cpp - Requests from C ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CApiFixture.h"
#include "ChildProcesses.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <poll.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sandwich::test;

namespace {
struct Text {
  std::vector<int32_t> tokens;
  std::string text;
  sandwich_finish_reason finish = SANDWICH_FINISH_NONE;
};

/// What came of a request.
struct Outcome {
  std::map<uint32_t, Text> texts;
  sandwich_status status = SANDWICH_OK;
  std::string error;
  sandwich_request_end end = {};
  bool ended = false;

  void add(const sandwich_event *event) {
    if (const sandwich_token *token = event->token) {
      Text &text = texts[token->text_index];
      text.tokens.push_back(token->token);
      text.text.append(token->piece, token->piece_bytes);
      text.finish = token->finish_reason;
      return;
    }
    ended = true;
    end = *event->end;
    status = end.status;
    error = end.error ? end.error : "";
  }
};

class CApiRequestTest : public CApiTest {
protected:
  sandwich_request *
  submit(const std::vector<int32_t> &prompt,
         const sandwich_generation_options *options = nullptr) {
    sandwich_request *request = nullptr;
    EXPECT_EQ(sandwich_request_submit(model, prompt.data(), prompt.size(),
                                      options, &request, &error),
              SANDWICH_OK)
        << message();
    return request;
  }

  const std::vector<int32_t> hello = {72, 101, 108, 108, 111};

  /// All that is still to come of it.
  static Outcome finish(sandwich_request *request) {
    Outcome outcome;
    while (!outcome.ended) {
      const sandwich_event *event = nullptr;
      if (sandwich_request_next(request, -1, &event, nullptr) != SANDWICH_OK)
        break;
      outcome.add(event);
    }
    return outcome;
  }

  Outcome run(const std::vector<int32_t> &prompt,
              const sandwich_generation_options *options = nullptr) {
    sandwich_request *request = submit(prompt, options);
    Outcome outcome = finish(request);
    sandwich_request_free(request);
    return outcome;
  }

  void expectRefused(const std::vector<int32_t> &prompt,
                     const sandwich_generation_options &options,
                     sandwich_status status, const std::string &part) {
    sandwich_request *request = nullptr;
    EXPECT_EQ(sandwich_request_submit(model, prompt.data(), prompt.size(),
                                      &options, &request, &error),
              status);
    EXPECT_EQ(request, nullptr);
    const std::string told = message();
    EXPECT_NE(told.find(part), std::string::npos) << told;
  }
};
} // namespace

/// Never the token after which the model computes no numbers.
static const sandwich_logit_bias noSpoiling[] = {
    {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};

TEST_F(CApiRequestTest, ContinuesAPrompt) {
  load();
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 30;
  const Outcome outcome = run(hello, &options);
  EXPECT_EQ(outcome.status, SANDWICH_OK) << outcome.error;
  const Text &text = outcome.texts.at(0);
  EXPECT_EQ(text.tokens, greedy(hello, 30));
  EXPECT_EQ(text.finish, SANDWICH_FINISH_MAX_TOKENS);
  EXPECT_EQ(outcome.end.prompt_tokens, 5u);
  EXPECT_EQ(outcome.end.generated_tokens, 30u);
  EXPECT_GT(outcome.end.prefill_seconds, 0);
  char *all = nullptr;
  ASSERT_EQ(sandwich_detokenize(description, text.tokens.data(),
                                text.tokens.size(), 1, &all, nullptr, &error),
            SANDWICH_OK);
  EXPECT_EQ(text.text, all);
  sandwich_free(all);
}

TEST_F(CApiRequestTest, TheEndStays) {
  load();
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 1;
  sandwich_request *request = submit(hello, &options);
  EXPECT_EQ(finish(request).texts.at(0).tokens.size(), 1u);
  const Outcome again = finish(request);
  EXPECT_TRUE(again.ended);
  EXPECT_TRUE(again.texts.empty());
  sandwich_request_free(request);
}

TEST_F(CApiRequestTest, RequestsOfManyThreadsGetTheirOwnTexts) {
  auto loading = defaults<sandwich_load_options>();
  // Room for some of the texts.
  loading.kv_memory = uint64_t{40} * 128;
  load({.maxTokens = 16, .maxLogitRows = 16}, &loading);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 30; ++i) {
        std::vector<int32_t> prompt(1 + random() % 40);
        for (int32_t &token : prompt)
          token = static_cast<int32_t>(random() % 250);
        auto options = defaults<sandwich_generation_options>();
        options.max_tokens = 1 + random() % 20;
        sandwich_request *request = nullptr;
        ASSERT_EQ(sandwich_request_submit(model, prompt.data(), prompt.size(),
                                          &options, &request, nullptr),
                  SANDWICH_OK);
        const unsigned fate = random() % 4;
        if (fate == 0) {
          sandwich_request_free(request);
          continue;
        }
        if (fate == 1) {
          std::this_thread::sleep_for(
              std::chrono::microseconds(random() % 300));
          sandwich_request_cancel(request);
        }
        const Outcome outcome = finish(request);
        sandwich_request_free(request);
        const auto expected = greedy(prompt, options.max_tokens);
        if (outcome.status == SANDWICH_OK) {
          EXPECT_EQ(outcome.texts.at(0).tokens, expected);
        } else if (fate == 1) {
          EXPECT_EQ(outcome.status, SANDWICH_CANCELLED);
        } else {
          EXPECT_EQ(outcome.status, SANDWICH_INTERNAL) << outcome.error;
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  auto statistics = defaults<sandwich_statistics>();
  ASSERT_EQ(sandwich_model_statistics(model, &statistics, &error), SANDWICH_OK);
  EXPECT_EQ(statistics.requests, 120u);
  EXPECT_EQ(statistics.blocks, 40u);
  EXPECT_EQ(statistics.waiting_requests, 0u);
}

TEST_F(CApiRequestTest, OptionsReachTheService) {
  load();
  const std::vector<int32_t> expected = greedy(hello, 20);
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  auto stop = defaults<sandwich_stop_options>();
  options.max_tokens = 20;
  options.sampling = &sampling;
  options.stop = &stop;

  const sandwich_logit_bias bars[] = {
      {expected[0], -std::numeric_limits<float>::infinity()}};
  sampling.logit_bias = bars;
  sampling.logit_bias_count = 1;
  EXPECT_NE(run(hello, &options).texts.at(0).tokens[0], expected[0]);
  sampling.logit_bias_count = 0;

  stop.tokens = &expected[5];
  stop.token_count = 1;
  Outcome outcome = run(hello, &options);
  EXPECT_EQ(outcome.texts.at(0).finish, SANDWICH_FINISH_STOPPED);
  EXPECT_LE(outcome.texts.at(0).tokens.size(), 6u);
  sampling.min_tokens = 20;
  EXPECT_EQ(run(hello, &options).texts.at(0).tokens.size(), 20u);
  sampling.min_tokens = 0;
  stop.token_count = 0;

  const std::string whole = run(hello, &options).texts.at(0).text;
  const std::string last = whole.substr(whole.size() - 1);
  const char *strings[] = {last.c_str()};
  if ((last[0] & 0x80) == 0) {
    stop.strings = strings;
    stop.string_count = 1;
    EXPECT_EQ(run(hello, &options).texts.at(0).text,
              whole.substr(0, whole.find(last)));
    stop.string_count = 0;
  }

  sampling.temperature = 1;
  sampling.top_k = 5;
  sampling.seed = 9;
  sampling.log_probabilities = 1;
  sampling.top_log_probabilities = 3;
  options.continuations = 3;
  sandwich_request *request = submit(hello, &options);
  std::map<uint32_t, std::vector<int32_t>> texts;
  for (bool ended = false; !ended;) {
    const sandwich_event *event = nullptr;
    ASSERT_EQ(sandwich_request_next(request, -1, &event, &error), SANDWICH_OK);
    ended = event->end != nullptr;
    if (ended)
      break;
    const sandwich_token &token = *event->token;
    EXPECT_LT(token.log_probability, 0);
    ASSERT_EQ(token.top_count, 3u);
    EXPECT_GE(token.top[0].value, token.top[2].value);
    EXPECT_GE(token.top[0].value, token.log_probability);
    texts[token.text_index].push_back(token.token);
  }
  sandwich_request_free(request);
  ASSERT_EQ(texts.size(), 3u);
  // The second text has the next seed.
  options.continuations = 1;
  sampling.seed = 10;
  EXPECT_EQ(run(hello, &options).texts.at(0).tokens, texts[1]);
}

TEST_F(CApiRequestTest, WhatCannotBeServedIsRefused) {
  auto loading = defaults<sandwich_load_options>();
  loading.kv_memory = uint64_t{2} * 128;
  load({.contextLength = 64, .withTokenizer = false}, &loading);
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  auto stop = defaults<sandwich_stop_options>();
  options.sampling = &sampling;
  options.stop = &stop;
  options.max_tokens = 4;
  const std::vector<int32_t> two(2, 1);
  expectRefused({}, options, SANDWICH_INVALID_ARGUMENT, "no tokens");
  expectRefused({HASH_MODEL_VOCABULARY}, options, SANDWICH_INVALID_ARGUMENT,
                "token id 260");
  expectRefused(std::vector<int32_t>(65, 1), options, SANDWICH_CONTEXT_EXCEEDED,
                "context of 64");
  expectRefused(std::vector<int32_t>(40, 1), options, SANDWICH_CACHE_FULL,
                "blocks");
  options.priority = 8;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "priority 8");
  options.priority = 0;
  options.timeout_seconds = NAN;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "timeout");
  options.timeout_seconds = -1;
  expectRefused(two, options, SANDWICH_DEADLINE_EXCEEDED, "");
  options.timeout_seconds = 0;
  options.continuations = UINT32_MAX;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "continuations");
  options.continuations = 1;
  sampling.temperature = -1;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "temperature is -1");
  sampling.temperature = 0;
  const sandwich_logit_bias twice[] = {{1, 1}, {1, 2}};
  sampling.logit_bias = twice;
  sampling.logit_bias_count = 2;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "token 1 twice");
  sampling.logit_bias = nullptr;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "logit_bias is NULL");
  sampling.logit_bias_count = 0;
  const char *strings[] = {"x", nullptr};
  stop.strings = strings;
  stop.string_count = 1;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "tokenizer");
  stop.string_count = 2;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "stop string is NULL");
  stop.string_count = SIZE_MAX;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "stop strings");
  stop.string_count = 0;
  stop.token_count = 1;
  expectRefused(two, options, SANDWICH_INVALID_ARGUMENT, "tokens is NULL");
  // The end of a request has a kind as well.
  stop.token_count = 0;
  const Outcome outcome = run({HASH_MODEL_VOCABULARY - 1}, &options);
  EXPECT_EQ(outcome.status, SANDWICH_INTERNAL);
  EXPECT_NE(outcome.error.find("is nan"), std::string::npos);
}

TEST_F(CApiRequestTest, AFullQueueIsOverloaded) {
  auto serving = defaults<sandwich_serving_options>();
  serving.max_sequences = 1;
  serving.max_waiting_requests = 1;
  load({.contextLength = 1 << 20}, nullptr, &serving);
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  sampling.logit_bias = noSpoiling;
  sampling.logit_bias_count = 1;
  options.sampling = &sampling;
  options.max_tokens = 1000000;
  sandwich_request *running = submit(hello, &options);
  const sandwich_event *event = nullptr;
  ASSERT_EQ(sandwich_request_next(running, -1, &event, &error), SANDWICH_OK);
  sandwich_request *waiting = submit(hello, &options);
  expectRefused(hello, options, SANDWICH_OVERLOADED, "waiting");
  // Neither comes while the first one runs.
  ASSERT_EQ(sandwich_request_next(waiting, 0.01, &event, &error), SANDWICH_OK);
  EXPECT_EQ(event, nullptr);
  sandwich_request_free(running);
  ASSERT_EQ(sandwich_request_next(waiting, -1, &event, &error), SANDWICH_OK);
  EXPECT_NE(event->token, nullptr);
  sandwich_request_free(waiting);
}

TEST_F(CApiRequestTest, FreeingTheModelCancels) {
  for (unsigned delay : {0U, 20U, 500U, 5000U}) {
    load({.contextLength = 1 << 20});
    auto options = defaults<sandwich_generation_options>();
    auto sampling = defaults<sandwich_sampling_options>();
    sampling.logit_bias = noSpoiling;
    sampling.logit_bias_count = 1;
    options.sampling = &sampling;
    options.max_tokens = 1000000;
    std::vector<sandwich_request *> requests;
    requests.reserve(5);
    for (int i = 0; i < 5; ++i)
      requests.push_back(submit(hello, &options));
    std::vector<std::thread> readers;
    readers.reserve(requests.size());
    std::atomic<int> cancelled = 0;
    for (sandwich_request *request : requests)
      readers.emplace_back([request, &cancelled] {
        cancelled += finish(request).status == SANDWICH_CANCELLED;
      });
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    sandwich_model_free(model);
    model = nullptr;
    for (std::thread &reader : readers)
      reader.join();
    EXPECT_EQ(cancelled, 5);
    for (sandwich_request *request : requests) {
      sandwich_request_cancel(request);
      sandwich_request_free(request);
    }
  }
}

TEST_F(CApiRequestTest, ADescriptorTellsOfEvents) {
  load();
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 5;
  sandwich_request *request = submit(hello, &options);
  int descriptor = -1;
  ASSERT_EQ(sandwich_request_descriptor(request, &descriptor, &error),
            SANDWICH_OK);
  Outcome outcome;
  auto ready = [&](int milliseconds) {
    pollfd polled{descriptor, POLLIN, 0};
    return ::poll(&polled, 1, milliseconds) == 1;
  };
  while (!outcome.ended) {
    ASSERT_TRUE(ready(10000));
    const sandwich_event *event = nullptr;
    ASSERT_EQ(sandwich_request_next(request, 0, &event, &error), SANDWICH_OK);
    ASSERT_NE(event, nullptr);
    outcome.add(event);
  }
  EXPECT_EQ(outcome.texts.at(0).tokens, greedy(hello, 5));
  EXPECT_TRUE(ready(0));
  sandwich_request_free(request);

  options.max_tokens = 4000;
  request = submit(hello, &options);
  ASSERT_EQ(sandwich_request_descriptor(request, &descriptor, &error),
            SANDWICH_OK);
  const sandwich_event *event = nullptr;
  // As often as not there is nothing yet, and then it says so.
  for (int i = 0; i < 300; ++i) {
    const bool was = ready(0);
    ASSERT_EQ(sandwich_request_next(request, 0, &event, &error), SANDWICH_OK);
    if (was) {
      EXPECT_NE(event, nullptr);
    }
  }
  sandwich_request_free(request);
}

TEST_F(CApiRequestTest, CallbacksGetTheEvents) {
  load();
  struct Told {
    Outcome outcome;
    std::atomic<bool> ended = false;
  } told;
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 12;
  options.on_event = [](void *data, const sandwich_event *event) {
    auto &told = *static_cast<Told *>(data);
    told.outcome.add(event);
    told.ended = told.outcome.ended;
  };
  options.user_data = &told;
  sandwich_request *request = submit(hello, &options);
  const sandwich_event *event = nullptr;
  EXPECT_EQ(sandwich_request_next(request, 0, &event, &error),
            SANDWICH_INVALID_ARGUMENT);
  EXPECT_NE(message().find("on_event"), std::string::npos);
  while (!told.ended)
    std::this_thread::yield();
  EXPECT_EQ(told.outcome.texts.at(0).tokens, greedy(hello, 12));
  sandwich_request_free(request);
}

TEST_F(CApiRequestTest, NothingIsToldAfterFreeing) {
  load({.contextLength = 1 << 20});
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  sampling.logit_bias = noSpoiling;
  sampling.logit_bias_count = 1;
  options.sampling = &sampling;
  options.max_tokens = 1000000;
  options.on_event = [](void *data, const sandwich_event *) {
    auto &alive = *static_cast<std::atomic<int> *>(data);
    EXPECT_GE(alive.load(), 1);
    ++alive;
  };
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> alive = 1;
    options.user_data = &alive;
    sandwich_request *request = submit(hello, &options);
    while (i % 2 && alive < 3)
      std::this_thread::yield();
    sandwich_request_free(request);
    alive = -1000000;
  }
}

TEST_F(CApiRequestTest, CallbacksMaySubmitCancelAndFree) {
  load({.contextLength = 1 << 20});
  struct Told {
    sandwich_model *model;
    const std::vector<int32_t> &prompt;
    std::atomic<sandwich_request *> own = nullptr;
    sandwich_request *second = nullptr;
    std::atomic<bool> freed = false;
  } told{.model = model, .prompt = hello};
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 1000000;
  options.on_event = [](void *data, const sandwich_event *) {
    auto &told = *static_cast<Told *>(data);
    if (!told.own || told.freed)
      return;
    EXPECT_EQ(sandwich_request_submit(told.model, told.prompt.data(),
                                      told.prompt.size(), nullptr, &told.second,
                                      nullptr),
              SANDWICH_OK);
    sandwich_request_cancel(told.second);
    sandwich_request_free(told.own);
    told.freed = true;
  };
  options.user_data = &told;
  told.own = submit(hello, &options);
  while (!told.freed)
    std::this_thread::yield();
  EXPECT_EQ(finish(told.second).status, SANDWICH_CANCELLED);
  sandwich_request_free(told.second);
}

class RanksOfCApiTest : public CApiRequestTest,
                        public ::testing::WithParamInterface<bool> {};

TEST_P(RanksOfCApiTest, WithoutARankItIsUnavailable) {
  auto serving = defaults<sandwich_serving_options>();
  serving.restart_ranks = GetParam();
  auto loading = defaults<sandwich_load_options>();
  loading.rank_program = SANDWICH_TEST_RUN;
  load({.contextLength = 1 << 20, .ranks = 2}, &loading, &serving);
  auto options = defaults<sandwich_generation_options>();
  auto sampling = defaults<sandwich_sampling_options>();
  sampling.logit_bias = noSpoiling;
  sampling.logit_bias_count = 1;
  options.sampling = &sampling;
  options.max_tokens = 1000000;
  sandwich_request *request = submit(hello, &options);
  const sandwich_event *event = nullptr;
  ASSERT_EQ(sandwich_request_next(request, -1, &event, &error), SANDWICH_OK);
  const std::vector<pid_t> ranks = childProcesses();
  ASSERT_EQ(ranks.size(), 1u);
  ::kill(ranks[0], SIGKILL);
  const Outcome outcome = finish(request);
  EXPECT_EQ(outcome.status, SANDWICH_UNAVAILABLE) << outcome.error;
  EXPECT_NE(outcome.error.find("rank 1"), std::string::npos) << outcome.error;
  sandwich_request_free(request);
  if (!GetParam())
    return expectRefused(hello, options, SANDWICH_UNAVAILABLE, "rank 1");
  // For requests that come afterwards there are others.
  options.max_tokens = 5;
  request = submit(hello, &options);
  const Outcome later = finish(request);
  EXPECT_EQ(later.status, SANDWICH_OK) << later.error;
  sandwich_request_free(request);
  EXPECT_NE(childProcesses(), ranks);
}
INSTANTIATE_TEST_SUITE_P(Restart, RanksOfCApiTest, ::testing::Bool());

TEST_F(CApiRequestTest, AForkIsToldToLoadItself) {
  load({.contextLength = 1 << 20});
  auto options = defaults<sandwich_generation_options>();
  options.max_tokens = 1000000;
  sandwich_request *request = submit(hello, &options);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    sandwich_request *second = nullptr;
    const sandwich_event *event = nullptr;
    int descriptor = -1;
    auto statistics = defaults<sandwich_statistics>();
    const bool refused =
        sandwich_request_submit(model, hello.data(), 5, nullptr, &second,
                                &error) == SANDWICH_UNAVAILABLE &&
        message().find("fork") != std::string::npos &&
        sandwich_request_next(request, -1, &event, nullptr) ==
            SANDWICH_UNAVAILABLE &&
        sandwich_request_descriptor(request, &descriptor, nullptr) ==
            SANDWICH_UNAVAILABLE &&
        sandwich_model_statistics(model, &statistics, nullptr) ==
            SANDWICH_UNAVAILABLE;
    sandwich_request_cancel(request);
    sandwich_model_free(model);
    sandwich_request_free(request);
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  sandwich_request_free(request);
  options.max_tokens = 3;
  EXPECT_EQ(run(hello, &options).texts.at(0).tokens, greedy(hello, 3));
}

TEST_F(CApiRequestTest, ArbitraryOptionsNeverEndTheProcess) {
  load({.contextLength = 64});
  std::mt19937_64 random(1);
  const char *strings[] = {"", "x", "\xff", "yz"};
  for (int i = 0; i < 3000; ++i) {
    auto options = defaults<sandwich_generation_options>();
    auto sampling = defaults<sandwich_sampling_options>();
    auto stop = defaults<sandwich_stop_options>();
    auto integer = [&] {
      return random() % 4 ? random() % 5 : random() >> random() % 64;
    };
    auto number = [&]() -> float {
      const float choices[] = {0, 1, 0.5F, -1, 1e30F, NAN, INFINITY, -INFINITY};
      return choices[random() % 4 ? random() % 3 : random() % 8];
    };
    options.max_tokens = integer();
    options.continuations = static_cast<uint32_t>(integer());
    options.priority = static_cast<uint32_t>(integer());
    options.timeout_seconds = random() % 3 ? 0 : number();
    options.prefix_salt = integer();
    sampling.min_tokens = integer();
    const sandwich_logit_bias bias[] = {
        {static_cast<int32_t>(integer()), number()}};
    sampling.logit_bias = random() % 8 ? bias : nullptr;
    sampling.logit_bias_count = random() % 2;
    sampling.repetition_penalty = number();
    sampling.frequency_penalty = number();
    sampling.presence_penalty = number();
    sampling.temperature = number();
    sampling.min_p = number();
    sampling.top_k = static_cast<uint32_t>(integer());
    sampling.top_p = number();
    sampling.log_probabilities = random() % 2;
    sampling.top_log_probabilities = static_cast<uint32_t>(integer());
    stop.strings = strings + random() % 4;
    stop.string_count = random() % 4 ? 0 : 1;
    options.sampling = random() % 8 ? &sampling : nullptr;
    options.stop = random() % 2 ? &stop : nullptr;
    sandwich_request *request = nullptr;
    const sandwich_status status = sandwich_request_submit(
        model, hello.data(), 5, &options, &request, &error);
    EXPECT_EQ(status == SANDWICH_OK, request != nullptr);
    EXPECT_EQ(message().empty(), status == SANDWICH_OK);
    if (request && random() % 2)
      finish(request);
    sandwich_request_free(request);
  }
}
