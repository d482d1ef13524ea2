//===- ServiceTest.cpp - Many requests on one engine ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "GreedyTexts.h"
#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Runtime/Text/ArtifactTokenizer.h"
#include "sandwich/Service/StepCostMeasurement.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <random>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class ServiceTest : public ::testing::Test {
protected:
  std::unique_ptr<Service> start(const HashModelOptions &model = {},
                                 const EngineOptions &engineOptions = {},
                                 const ServiceOptions &options = {}) {
    std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    if (artifactCosts) {
      Status told =
          ArtifactWriter::setStepTimes(path, toStepTimes(*artifactCosts));
      EXPECT_TRUE(told) << told.error().message;
    }
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    Result<std::optional<Tokenizer>> tokenizer = loadTokenizer(*artifact);
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), engineOptions);
    EXPECT_TRUE(engine) << engine.error().message;
    Result<std::unique_ptr<Service>> service =
        Service::create(std::move(*engine), std::move(*tokenizer), options);
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }

  TemporaryFolder folder;
  /// What the artifact says that steps take.
  std::optional<StepCosts> artifactCosts;
};

/// What a request got, and a way to wait for its end.
struct Outcome {
  std::map<uint32_t, std::vector<GeneratedToken>> texts;
  std::promise<RequestEnd> promise;
  std::future<RequestEnd> end = promise.get_future();
  std::function<void(const GeneratedToken &)> alsoOnToken = {};

  GenerationCallbacks callbacks() {
    return {[this](const GeneratedToken &token) {
              texts[token.text].push_back(token);
              if (alsoOnToken)
                alsoOnToken(token);
            },
            [this](const RequestEnd &ended) { promise.set_value(ended); }};
  }
  std::vector<int32_t> tokens(uint32_t text = 0) const {
    std::vector<int32_t> result;
    if (auto found = texts.find(text); found != texts.end())
      for (const GeneratedToken &token : found->second)
        result.push_back(token.token.token);
    return result;
  }
  std::string text(uint32_t text = 0) const {
    std::string result;
    for (const GeneratedToken &token : texts.at(text))
      result += token.piece;
    return result;
  }
};
} // namespace

/// Whether the model computes no numbers on the way.
static bool isFinite(std::span<const int32_t> tokens) {
  return std::ranges::find(tokens, HASH_MODEL_VOCABULARY - 1) == tokens.end();
}

TEST_F(ServiceTest, RequestsOfManyThreadsGetTheirOwnTexts) {
  // Three requests of the largest size fill the cache, so that others wait and
  // some give their blocks back.
  std::unique_ptr<Service> service =
      start({.threads = 2, .maxTokens = 16, .maxLogitRows = 16},
            {.kvMemory = 18 * SANDWICH_KV_BLOCK_TOKENS * sizeof(uint64_t)});
  constexpr unsigned clients = 4, each = 40;
  std::vector<std::thread> threads;
  for (unsigned client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      std::mt19937 random(client);
      for (unsigned i = 0; i < each; ++i) {
        GenerationRequest request;
        request.prompt = makeTokens(1 + random() % 60, client * each + i);
        request.maxTokens = 1 + random() % 30;
        request.priority = random() % 3;
        const std::vector<int32_t> expected =
            greedy(request.prompt, request.maxTokens);
        const bool cancels = random() % 4 == 0;
        auto outcome = std::make_unique<Outcome>();
        Result<RequestId> id = service->submit(request, outcome->callbacks());
        ASSERT_TRUE(id) << id.error().message;
        if (cancels)
          service->cancel(*id);
        const RequestEnd end = outcome->end.get();
        const std::vector<int32_t> made = outcome->tokens();
        if (end.status) {
          EXPECT_EQ(made, expected);
          EXPECT_EQ(outcome->texts[0].back().finish, FinishReason::MaxTokens);
          EXPECT_EQ(end.generatedTokens, expected.size());
          EXPECT_EQ(end.promptTokens, request.prompt.size());
        } else {
          EXPECT_TRUE(cancels || !isFinite(expected))
              << end.status.error().message;
          ASSERT_LE(made.size(), expected.size());
          EXPECT_TRUE(std::equal(made.begin(), made.end(), expected.begin()));
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  service->drain();
  const ServiceStatistics statistics = service->statistics();
  EXPECT_EQ(statistics.requests, clients * each);
  EXPECT_EQ(statistics.scheduler.usedBlocks, 0u);
  EXPECT_EQ(statistics.scheduler.runningRequests, 0u);
  EXPECT_EQ(statistics.blockCount, 18u);
}

TEST_F(ServiceTest, ContinuationsDrawByThemselves) {
  std::unique_ptr<Service> service =
      start({.maxTokens = 16, .maxLogitRows = 16}, {.kvCacheTokens = 2000});
  GenerationRequest request;
  request.prompt = makeTokens(37, 3);
  request.maxTokens = 12;
  request.sampling.temperature = 1;
  request.sampling.topK = 5;
  request.sampling.seed = 11;
  request.sampling.logProbabilities = 2;
  request.continuations = 4;
  Outcome together;
  ASSERT_TRUE(service->submit(request, together.callbacks()));
  const RequestEnd end = together.end.get();
  ASSERT_TRUE(end.status) << end.status.error().message;
  EXPECT_EQ(end.generatedTokens, 48u);
  request.continuations = 1;
  std::set<std::vector<int32_t>> different;
  for (uint32_t text = 0; text < 4; ++text) {
    request.sampling.seed = 11 + text;
    Outcome alone;
    ASSERT_TRUE(service->submit(request, alone.callbacks()));
    ASSERT_TRUE(alone.end.get().status);
    EXPECT_EQ(alone.tokens(), together.tokens(text));
    for (const GeneratedToken &token : together.texts[text]) {
      EXPECT_TRUE(token.token.logProbability);
      EXPECT_EQ(token.token.top.size(), 2u);
    }
    different.insert(together.tokens(text));
  }
  EXPECT_GT(different.size(), 1u);
}

TEST_F(ServiceTest, TextsEndAtStopTokensStringsAndTheModelsEnd) {
  const std::vector<int32_t> prompt = makeTokens(5, 7);
  const std::vector<int32_t> expected = greedy(prompt, 20);
  ASSERT_TRUE(isFinite(expected));
  std::unique_ptr<Service> service =
      start({.endOfTextTokens = {expected[10]}}, {.kvCacheTokens = 500});
  auto run = [&](GenerationRequest request, Outcome &outcome) {
    request.prompt = prompt;
    request.maxTokens = 20;
    Result<RequestId> id = service->submit(request, outcome.callbacks());
    EXPECT_TRUE(id) << id.error().message;
    EXPECT_TRUE(outcome.end.get().status);
  };
  const auto firstEnd = std::ranges::find(expected, expected[10]);
  const auto count = static_cast<size_t>(firstEnd - expected.begin()) + 1;
  Outcome byModel;
  run({}, byModel);
  EXPECT_EQ(byModel.tokens().size(), count);
  EXPECT_EQ(byModel.texts[0].back().finish, FinishReason::EndOfText);

  Outcome ignored;
  GenerationRequest ignoring;
  ignoring.sampling.ignoreEndOfText = true;
  run(ignoring, ignored);
  EXPECT_EQ(ignored.tokens(), expected);

  Outcome byToken;
  GenerationRequest stopping;
  stopping.sampling.ignoreEndOfText = true;
  stopping.stop.tokens = {expected[4]};
  run(stopping, byToken);
  EXPECT_EQ(byToken.texts[0].back().finish, FinishReason::Stopped);
  EXPECT_LE(byToken.tokens().size(), 5u);

  // A stop string that begins in one token and ends in another.
  const std::string whole = ignored.text();
  ASSERT_GE(whole.size(), 6u);
  size_t begin = 3;
  while ((static_cast<unsigned char>(whole[begin]) & 0xC0U) == 0x80U)
    ++begin;
  size_t end = begin + 2;
  while (end < whole.size() &&
         (static_cast<unsigned char>(whole[end]) & 0xC0U) == 0x80U)
    ++end;
  Outcome byString;
  GenerationRequest searching;
  searching.sampling.ignoreEndOfText = true;
  searching.stop.strings = {whole.substr(begin, end - begin)};
  run(searching, byString);
  EXPECT_EQ(byString.text(),
            whole.substr(0, whole.find(whole.substr(begin, end - begin))));
  EXPECT_EQ(byString.texts[0].back().finish, FinishReason::Stopped);
}

template <typename T>
static void expectError(const Result<T> &result, ErrorKind kind,
                        const std::string &part) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos)
      << result.error().message;
}

TEST_F(ServiceTest, RefusesWhatCannotBeServed) {
  std::unique_ptr<Service> service = start(
      {.contextLength = 64, .withTokenizer = false}, {.kvCacheTokens = 48});
  Outcome outcome;
  auto submit = [&](GenerationRequest request) {
    return service->submit(std::move(request), outcome.callbacks());
  };
  GenerationRequest good;
  good.prompt = {1, 2, 3};
  good.maxTokens = 4;
  GenerationRequest request = good;
  request.prompt = {};
  expectError(submit(request), ErrorKind::InvalidArgument, "prompt");
  request = good;
  request.prompt[1] = HASH_MODEL_VOCABULARY;
  expectError(submit(request), ErrorKind::InvalidArgument, "vocabulary");
  request = good;
  request.maxTokens = 0;
  expectError(submit(request), ErrorKind::InvalidArgument, "token");
  request.promptLogProbabilities = 21;
  expectError(submit(request), ErrorKind::InvalidArgument,
              "prompt-log-probabilities");
  request = good;
  request.continuations = 0;
  expectError(submit(request), ErrorKind::InvalidArgument, "texts");
  request = good;
  request.continuations = UINT32_MAX;
  expectError(submit(request), ErrorKind::InvalidArgument, "continuation");
  request = good;
  request.sampling.temperature = -1;
  expectError(submit(request), ErrorKind::InvalidArgument, "temperature");
  request = good;
  request.sampling.logitBias = {{HASH_MODEL_VOCABULARY, 1.0F}};
  expectError(submit(request), ErrorKind::InvalidArgument, "bias");
  request = good;
  request.stop.strings = {"x"};
  expectError(submit(request), ErrorKind::InvalidArgument, "tokenizer");
  request = good;
  request.prompt = makeTokens(65, 1);
  expectError(submit(request), ErrorKind::ContextExceeded, "65");
  request = good;
  request.prompt = makeTokens(60, 1);
  expectError(submit(request), ErrorKind::CacheFull, "");
  request = good;
  request.timeout = -1;
  expectError(submit(request), ErrorKind::DeadlineExceeded, "");
  request.timeout = std::numeric_limits<double>::quiet_NaN();
  expectError(submit(request), ErrorKind::InvalidArgument, "timeout");
  request = good;
  request.stop.tokens.assign(StopOptions::maxTokens + 1, 1);
  expectError(submit(request), ErrorKind::InvalidArgument, "stop tokens");
  request.stop.tokens = {HASH_MODEL_VOCABULARY};
  expectError(submit(request), ErrorKind::InvalidArgument, "vocabulary");
  EXPECT_FALSE(service->cancel(77));

  ASSERT_TRUE(submit(good));
  service->drain();
  EXPECT_TRUE(outcome.end.get().status);
  expectError(submit(good), ErrorKind::Unavailable, "ends");
  EXPECT_EQ(outcome.tokens(), greedy(good.prompt, 4));
  EXPECT_EQ(service->statistics().requests, 1u);
}

TEST_F(ServiceTest, WhatComputesNoNumbersEndsAlone) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  GenerationRequest bad;
  bad.prompt = {1, HASH_MODEL_VOCABULARY - 1};
  GenerationRequest good;
  good.prompt = makeTokens(20, 2);
  good.maxTokens = 25;
  const std::vector<int32_t> expected = greedy(good.prompt, 25);
  ASSERT_TRUE(isFinite(expected));
  Outcome ends, goesOn;
  ASSERT_TRUE(service->submit(good, goesOn.callbacks()));
  ASSERT_TRUE(service->submit(bad, ends.callbacks()));
  const RequestEnd end = ends.end.get();
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Internal);
  EXPECT_TRUE(ends.tokens().empty());
  EXPECT_TRUE(goesOn.end.get().status);
  EXPECT_EQ(goesOn.tokens(), expected);
}

TEST_F(ServiceTest, EndsRequestsWhenItEnds) {
  Outcome outcome;
  std::promise<void> first;
  bool told = false;
  outcome.alsoOnToken = [&](const GeneratedToken &) {
    if (!std::exchange(told, true))
      first.set_value();
  };
  {
    std::unique_ptr<Service> service =
        start({.contextLength = 100000}, {.kvCacheTokens = 100000});
    GenerationRequest request;
    // Whatever it generates, it computes numbers: nothing is the last token.
    request.prompt = {1, 2, 3};
    request.maxTokens = 90000;
    request.sampling.logitBias = {
        {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};
    ASSERT_TRUE(service->submit(request, outcome.callbacks()));
    first.get_future().wait();
  }
  const RequestEnd end = outcome.end.get();
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Cancelled);
  EXPECT_GE(outcome.tokens().size(), 1u);
}

TEST_F(ServiceTest, SharedPromptsAreComputedOnce) {
  std::unique_ptr<Service> service =
      start({.maxTokens = 16}, {.kvCacheTokens = 2000});
  const std::vector<int32_t> system = makeTokens(160, 1);
  for (unsigned i = 0; i < 5; ++i) {
    GenerationRequest request;
    request.prompt = system;
    const std::vector<int32_t> own = makeTokens(9, 10 + i);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.maxTokens = 3;
    Outcome outcome;
    ASSERT_TRUE(service->submit(request, outcome.callbacks()));
    const RequestEnd end = outcome.end.get();
    ASSERT_TRUE(end.status) << end.status.error().message;
    EXPECT_EQ(end.cachedTokens, i == 0 ? 0u : 160u);
    EXPECT_EQ(outcome.tokens(), greedy(request.prompt, 3));
  }
  EXPECT_EQ(service->statistics().blocks.promptTokensHit, 4u * 160);
}

TEST_F(ServiceTest, DrainingWaitsForCallbacks) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  std::atomic<bool> told = false;
  std::promise<void> telling;
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 1;
  ASSERT_TRUE(service->submit(request, {.onEnd = [&](const RequestEnd &) {
                                telling.set_value();
                                std::this_thread::sleep_for(
                                    std::chrono::milliseconds(100));
                                told = true;
                              }}));
  telling.get_future().wait();
  service->drain();
  EXPECT_TRUE(told);
}

TEST_F(ServiceTest, DrainingEndsWhatTakesTooLong) {
  std::unique_ptr<Service> service =
      start({.contextLength = 100000}, {.kvCacheTokens = 100000});
  EXPECT_EQ(service->statistics().stalledSeconds, 0);
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 90000;
  request.sampling.logitBias = {
      {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};
  Outcome running;
  std::promise<void> first;
  running.alsoOnToken = [&, told = false](const GeneratedToken &) mutable {
    if (!std::exchange(told, true))
      first.set_value();
  };
  ASSERT_TRUE(service->submit(request, running.callbacks()));
  first.get_future().wait();
  // Others may ask meanwhile.
  std::atomic<bool> drained = false;
  std::thread asking([&] {
    while (!drained) {
      (void)service->statistics();
      (void)service->retryAfterSeconds(1);
    }
  });
  EXPECT_FALSE(service->drainWithin(0.05));
  drained = true;
  asking.join();
  const RequestEnd end = running.end.get();
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(end.status.error().message, "the server is shutting down");
  expectError(service->submit(request, {}), ErrorKind::Unavailable, "ends");
  EXPECT_TRUE(service->statistics().draining);
  EXPECT_EQ(service->statistics().scheduler.usedBlocks, 0u);
  // There is nothing left to wait for.
  EXPECT_TRUE(service->drainWithin(0));
  EXPECT_TRUE(service->drainWithin(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(service->drainWithin(std::numeric_limits<double>::quiet_NaN()));
}

TEST_F(ServiceTest, StallsWhileNoStepEnds) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 3;
  std::promise<void> holds, release;
  Outcome outcome;
  outcome.alsoOnToken = [&, told = false](const GeneratedToken &) mutable {
    if (std::exchange(told, true))
      return;
    holds.set_value();
    release.get_future().wait();
  };
  ASSERT_TRUE(service->submit(request, outcome.callbacks()));
  holds.get_future().wait();
  const double before = service->statistics().stalledSeconds;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_GE(service->statistics().stalledSeconds, before + 0.03);
  release.set_value();
  service->drain();
  const ServiceStatistics statistics = service->statistics();
  EXPECT_EQ(statistics.stalledSeconds, 0);
  EXPECT_EQ(statistics.scheduler.decode.steps, 2u);
  EXPECT_EQ(statistics.scheduler.prefill.tokens, 3u);
  const RequestEnd end = outcome.end.get();
  EXPECT_LE(end.admittedAt, *end.startedAt);
  EXPECT_LT(*end.startedAt, *end.firstTokenAt);
  EXPECT_LT(*end.firstTokenAt, end.endedAt);
  EXPECT_LE(end.endedAt, statistics.seconds);
}

TEST_F(ServiceTest, CallbacksMaySubmitAndCancel) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  const std::vector<int32_t> prompt = makeTokens(5, 7);
  Outcome second;
  std::promise<bool> cancelled;
  GenerationRequest request;
  request.prompt = prompt;
  request.maxTokens = 2;
  ASSERT_TRUE(service->submit(
      request, {.onEnd = [&](const RequestEnd &) {
        EXPECT_TRUE(service->submit(request, second.callbacks()));
        Result<RequestId> third = service->submit(request, {});
        EXPECT_TRUE(third);
        cancelled.set_value(service->cancel(*third));
      }}));
  EXPECT_TRUE(cancelled.get_future().get());
  EXPECT_TRUE(second.end.get().status);
  EXPECT_EQ(second.tokens(), greedy(prompt, 2));
  service->drain();
}

namespace {
/// Allows tokens of one parity, the other one each time, and counts what it is
/// told. Shared counts tell of clones.
class Alternating : public TokenConstraint {
public:
  /// How it fails from its third token on, if it does.
  enum class Failure { None, AllowsNothing, Refuses, Throws };

  explicit Alternating(Failure failure = Failure::None) : failure(failure) {}

  std::span<const uint64_t> allowedTokens() override {
    if (accepted == 2 && failure == Failure::Throws)
      throw std::runtime_error("broken");
    const bool nothing = accepted == 2 && failure == Failure::AllowsNothing;
    const uint64_t even = 0x5555555555555555U;
    bits.assign((HASH_MODEL_VOCABULARY + 63) / 64, nothing        ? 0
                                                   : accepted % 2 ? ~even
                                                                  : even);
    return bits;
  }
  bool accept(int32_t token) override {
    if (accepted == 2 && failure == Failure::Refuses)
      return false;
    if (token % 2 != static_cast<int32_t>(accepted % 2))
      return false;
    ++accepted;
    return true;
  }
  std::unique_ptr<TokenConstraint> clone() const override {
    return std::make_unique<Alternating>(*this);
  }

private:
  Failure failure;
  uint64_t accepted = 0;
  std::vector<uint64_t> bits;
};
} // namespace

TEST_F(ServiceTest, ConstraintsHoldForEachText) {
  std::unique_ptr<Service> service =
      start({.maxTokens = 16, .maxLogitRows = 16}, {.kvCacheTokens = 2000});
  GenerationRequest request;
  request.prompt = makeTokens(20, 3);
  request.maxTokens = 15;
  request.continuations = 3;
  request.sampling.temperature = 1;
  request.sampling.minTokens = 15;
  request.constraint = std::make_unique<Alternating>();
  // Which tokens spoil the model is no matter here.
  request.sampling.logitBias = {
      {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};
  Outcome outcome;
  ASSERT_TRUE(service->submit(request, outcome.callbacks()));
  const RequestEnd end = outcome.end.get();
  ASSERT_TRUE(end.status) << end.status.error().message;
  for (uint32_t text = 0; text < 3; ++text) {
    const std::vector<int32_t> tokens = outcome.tokens(text);
    ASSERT_EQ(tokens.size(), 15u);
    for (size_t i = 0; i < tokens.size(); ++i)
      EXPECT_EQ(tokens[i] % 2, static_cast<int32_t>(i % 2));
  }
}

TEST_F(ServiceTest, ConstraintsThatFailEndTheirOwnRequest) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  GenerationRequest good;
  good.prompt = makeTokens(20, 2);
  good.maxTokens = 25;
  using Failure = Alternating::Failure;
  for (const auto &[failure, message] :
       {std::pair(Failure::AllowsNothing, "the constraint allows no token"),
        std::pair(Failure::Refuses, "which it had allowed"),
        std::pair(Failure::Throws, "the constraint failed: broken")}) {
    GenerationRequest bad = good;
    bad.constraint = std::make_unique<Alternating>(failure);
    Outcome ends, goesOn;
    ASSERT_TRUE(service->submit(good, goesOn.callbacks()));
    ASSERT_TRUE(service->submit(bad, ends.callbacks()));
    const RequestEnd end = ends.end.get();
    ASSERT_FALSE(end.status);
    EXPECT_EQ(end.status.error().kind, ErrorKind::Internal);
    EXPECT_NE(end.status.error().message.find(message), std::string::npos)
        << end.status.error().message;
    EXPECT_EQ(ends.tokens().size(), 2u);
    EXPECT_TRUE(goesOn.end.get().status);
    EXPECT_EQ(goesOn.tokens(), greedy(good.prompt, 25));
  }
}

/// The logarithms of the probabilities of all tokens after `tokens`.
static std::vector<double>
logProbabilitiesAfter(std::span<const int32_t> tokens) {
  const std::vector<float> logits = hashModelLogits(tokens);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double{logit});
  std::vector<double> result;
  for (float logit : logits)
    result.push_back(logit - std::log(sum));
  return result;
}

TEST_F(ServiceTest, PromptsAreScored) {
  std::unique_ptr<Service> service =
      start({.maxTokens = 16, .maxLogitRows = 8}, {.kvCacheTokens = 2000});
  GenerationRequest request;
  request.prompt = makeTokens(70, 4);
  for (uint64_t maxTokens : {3, 0, 3}) {
    request.maxTokens = maxTokens;
    request.continuations = 2;
    request.promptLogProbabilities = 2;
    Outcome outcome;
    std::vector<ScoredToken> scored;
    GenerationCallbacks callbacks = outcome.callbacks();
    callbacks.onPromptToken = [&](const ScoredToken &token) {
      EXPECT_TRUE(outcome.texts.empty());
      scored.push_back(token);
    };
    ASSERT_TRUE(service->submit(request, std::move(callbacks)));
    const RequestEnd end = outcome.end.get();
    ASSERT_TRUE(end.status) << end.status.error().message;
    EXPECT_EQ(end.generatedTokens, 2 * maxTokens);
    if (maxTokens > 0) {
      EXPECT_EQ(outcome.tokens(), greedy(request.prompt, maxTokens));
    }
    ASSERT_EQ(scored.size(), 69u);
    for (size_t i = 0; i < scored.size(); ++i) {
      EXPECT_EQ(scored[i].position, i + 1);
      const SampledToken &token = scored[i].token;
      ASSERT_EQ(token.token, request.prompt[i + 1]);
      const auto before = std::span(request.prompt).first(i + 1);
      const std::vector<double> expected = logProbabilitiesAfter(before);
      EXPECT_NEAR(*token.logProbability,
                  expected[static_cast<size_t>(token.token)], 1e-4);
      ASSERT_EQ(token.top.size(), 2u);
      EXPECT_EQ(token.top[0].token, hashModelNext(before));
    }
  }
}

TEST_F(ServiceTest, PromptsWithoutNumbersEndAlone) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  GenerationRequest request;
  request.prompt = makeTokens(30, 4);
  request.prompt[3] = HASH_MODEL_VOCABULARY - 1;
  request.promptLogProbabilities = 0;
  Outcome outcome;
  ASSERT_TRUE(service->submit(request, outcome.callbacks()));
  const RequestEnd end = outcome.end.get();
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Internal);
  EXPECT_TRUE(outcome.texts.empty());
}

TEST_F(ServiceTest, SpecialTokensAreSkippedOrTold) {
  std::unique_ptr<Service> service = start({}, {.kvCacheTokens = 500});
  // "<pad>", which no text has by chance.
  GenerationRequest request;
  request.prompt = makeTokens(20, 2);
  request.maxTokens = 1;
  request.sampling.logitBias = {{258, 100.0F}};
  for (bool skips : {true, false}) {
    request.skipSpecialTokens = skips;
    Outcome outcome;
    ASSERT_TRUE(service->submit(request, outcome.callbacks()));
    ASSERT_TRUE(outcome.end.get().status);
    EXPECT_EQ(outcome.text(), skips ? "" : "<pad>");
  }
}

/// Whether `service` takes a first request that has 20 ms.
static bool takesFirst(Service &service) {
  Outcome outcome;
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 2;
  request.timeout = 0.02;
  Result<RequestId> id = service.submit(request, outcome.callbacks());
  if (!id) {
    EXPECT_EQ(id.error().kind, ErrorKind::DeadlineExceeded);
    return false;
  }
  (void)outcome.end.get();
  return true;
}

TEST_F(ServiceTest, KnowsWhatStepsTakeBeforeTheFirst) {
  const StepCosts slow = {.prefill = {{1, 60}}, .decode = {{1, 60}}};
  const StepCosts fast = {.prefill = {{1, 1e-5}}, .decode = {{1, 1e-5}}};
  // Steps of this model take much less, and those that are assumed more; the
  // latency model knows nothing of its target.
  ServiceOptions options;
  const EngineOptions engine = {.kvCacheTokens = 500};
  auto takes = [&] { return takesFirst(*start({}, engine, options)); };
  // Measured, if that is allowed.
  EXPECT_TRUE(takes());
  options.measuringSeconds = 0;
  EXPECT_FALSE(takes());
  // The artifact says,
  artifactCosts = fast;
  EXPECT_TRUE(takes());
  options.measuringSeconds = 1;
  artifactCosts = slow;
  EXPECT_FALSE(takes());
  // but who begins the service knows best.
  options.costs = fast;
  EXPECT_TRUE(takes());
}

TEST_F(ServiceTest, MeasuresStepsOfBothPhases) {
  const std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path, {.maxTokens = 80}));
  Result<Artifact> artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(std::move(*artifact), {.kvCacheTokens = 500});
  ASSERT_TRUE(engine) << engine.error().message;
  BlockPool &pool = (*engine)->blockPool();
  const uint64_t blocks = pool.freeBlocks();
  Result<StepCosts> costs = measureStepCosts(**engine, {.samples = 3});
  ASSERT_TRUE(costs) << costs.error().message;
  std::vector<uint64_t> prefill;
  for (const StepCosts::Point &point : costs->prefill)
    prefill.push_back(point.tokens);
  EXPECT_EQ(prefill, (std::vector<uint64_t>{16, 64, 80}));
  std::vector<uint64_t> decode;
  for (const StepCosts::Point &point : costs->decode)
    decode.push_back(point.tokens);
  // As many as have rows of logits.
  EXPECT_EQ(decode, (std::vector<uint64_t>{1, 8}));
  EXPECT_TRUE(StepCostModel::create(*costs));
  // Nothing is left, and a manifest keeps it all.
  EXPECT_EQ(pool.freeBlocks(), blocks);
  EXPECT_EQ(pool.cachedBlocks(), 0u);
  proto::Manifest manifest;
  *manifest.mutable_step_times() = toStepTimes(*costs);
  std::optional<StepCosts> again = stepCostsOf(manifest);
  ASSERT_TRUE(again);
  EXPECT_EQ(toStepTimes(*again).SerializeAsString(),
            manifest.step_times().SerializeAsString());
  EXPECT_FALSE(stepCostsOf({}));
  // With no time at all, the two smallest steps of each phase are measured.
  costs = measureStepCosts(**engine, {.seconds = 1e-9});
  ASSERT_TRUE(costs);
  EXPECT_EQ(costs->prefill.size(), 2u);
  EXPECT_EQ(costs->decode.size(), 2u);
  costs = measureStepCosts(**engine, {.progress = [](double) -> Status {
    return makeError("enough");
  }});
  ASSERT_FALSE(costs);
  EXPECT_EQ(costs.error().message, "enough");
}

TEST_F(ServiceTest, ForksOfTheProcessHaveNoService) {
  for (unsigned threads : {1U, 2U}) {
    std::unique_ptr<Service> service =
        start({.threads = threads}, {.kvCacheTokens = 500});
    GenerationRequest request;
    request.prompt = {1, 2, 3};
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Only what ends the child quietly: its copy of the tests goes no
      // further.
      Result<RequestId> id = service->submit(request, {});
      const bool refused = !id && id.error().kind == ErrorKind::Unavailable;
      service->drain();
      (void)service->drainWithin(1);
      (void)service->retryAfterSeconds(1);
      const bool nothing = !service->cancel(1);
      (void)service->statistics();
      service.reset();
      ::_exit(refused && nothing ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    Outcome outcome;
    ASSERT_TRUE(service->submit(request, outcome.callbacks()));
    EXPECT_TRUE(outcome.end.get().status);
  }
}
