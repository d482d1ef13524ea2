//===- SpeculationServiceTest.cpp - Texts are the same with proposals -----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random requests of all kinds on a model that computes the same whatever is
/// in its steps, once without proposals and then with those of the text itself,
/// of a model that is always right, and of one that hardly ever is.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "Emulation.h"

#include "GreedyTexts.h"
#include "HashModel.h"
#include "TemporaryFolder.h"

#include "sandwich/Runtime/Text/ArtifactTokenizer.h"

#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <random>

using namespace sandwich;
using namespace sandwich::test;

namespace {
/// What came of a text.
struct TextOutcome {
  std::vector<int32_t> tokens;
  std::vector<std::optional<float>> logProbabilities;
  std::string text;
  std::optional<FinishReason> finish;

  bool operator==(const TextOutcome &) const = default;
};
using RequestOutcome = std::map<uint32_t, TextOutcome>;

/// Tokens that are no multiples of three may follow each other.
class NoThrees : public TokenConstraint {
public:
  std::span<const uint64_t> allowedTokens() override {
    bits.assign((HASH_MODEL_VOCABULARY + 63) / 64, 0);
    for (size_t token = 0; token < HASH_MODEL_VOCABULARY; ++token)
      if (token % 3 != 0 || lastWas(0))
        bits[token / 64] |= uint64_t{1} << (token % 64);
    return bits;
  }
  bool accept(int32_t token) override {
    last = token;
    return true;
  }
  std::unique_ptr<TokenConstraint> clone() const override {
    return std::make_unique<NoThrees>(*this);
  }

private:
  bool lastWas(int32_t rest) const { return last % 7 == rest; }

  int32_t last = 1;
  std::vector<uint64_t> bits;
};

class SpeculationServiceTest : public ::testing::Test {
protected:
  /// How proposals are made.
  enum class Kind { None, PromptLookup, RightDraft, WrongDraft, SmallDraft };

  std::unique_ptr<Engine> makeEngine(const HashModelOptions &model,
                                     uint64_t blocks) {
    const std::string path =
        folder.file("model" + std::to_string(++models) + ".sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    Result<std::unique_ptr<Engine>> engine = Engine::create(
        std::move(*artifact),
        {.kvMemory = blocks * SANDWICH_KV_BLOCK_TOKENS * sizeof(uint64_t)});
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }

  /// A service that takes all proposals.
  std::unique_ptr<Service> start(Kind kind, uint64_t blocks) {
    const HashModelOptions model = {.threads = 1,
                                    .maxTokens = 48,
                                    .maxLogitRows = 48,
                                    .contextLength = 200,
                                    .endOfTextTokens = {17, 93}};
    std::unique_ptr<Engine> engine = makeEngine(model, blocks);
    Result<std::optional<Tokenizer>> tokenizer =
        loadTokenizer(engine->artifact());
    EXPECT_TRUE(tokenizer) << tokenizer.error().message;
    ServiceOptions options;
    options.alwaysProposes = true;
    options.proposedTokens = 5;
    std::unique_ptr<Engine> draft;
    if (kind == Kind::PromptLookup)
      options.proposals = ProposalSource::PromptLookup;
    if (kind >= Kind::RightDraft) {
      options.proposals = ProposalSource::Draft;
      HashModelOptions small = model;
      small.maxTokens = small.maxLogitRows = 20;
      // It knows no text for long.
      small.contextLength = kind == Kind::SmallDraft ? 70 : 200;
      small.otherWeights = kind == Kind::WrongDraft;
      draft = makeEngine(small, kind == Kind::SmallDraft ? 12 : blocks);
    }
    Result<std::unique_ptr<Service>> service = Service::create(
        std::move(engine), *std::move(tokenizer), options, std::move(draft));
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }

  static GenerationRequest makeRequest(uint64_t seed);
  std::vector<RequestOutcome> run(Kind kind, uint64_t blocks, unsigned requests,
                                  SpeculationStatistics *statistics);

  TemporaryFolder folder;
  int models = 0;
};
} // namespace

GenerationRequest SpeculationServiceTest::makeRequest(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto oneOf = [&](uint64_t count) { return random() % count == 0; };
  GenerationRequest request;
  // Some begin alike.
  request.prompt = makeTokens(1 + random() % 100, 1 + random() % 5);
  request.maxTokens = 1 + random() % 60;
  if (oneOf(4))
    request.continuations = static_cast<uint32_t>(2 + random() % 2);
  SamplingOptions &sampling = request.sampling;
  sampling.seed = seed;
  if (oneOf(2))
    sampling.temperature = 0.7F;
  if (oneOf(4))
    sampling.topK = 3;
  // Few tokens, which repeat themselves.
  if (!oneOf(3))
    for (int32_t token : {40, 41, 42})
      sampling.logitBias[token] = 20;
  sampling.logitBias[HASH_MODEL_VOCABULARY - 1] =
      -std::numeric_limits<float>::infinity();
  if (oneOf(3))
    sampling.logitBias[17] = 8;
  if (oneOf(4)) {
    sampling.frequencyPenalty = 0.3F;
    sampling.repetitionPenalty = 1.2F;
  }
  if (oneOf(3))
    sampling.minTokens = random() % 20;
  if (oneOf(3))
    sampling.logProbabilities = 2;
  if (oneOf(4))
    request.stop.strings = {"()(", "*)"};
  if (oneOf(5))
    request.constraint = std::make_unique<NoThrees>();
  if (oneOf(6))
    request.promptLogProbabilities = 0;
  return request;
}

std::vector<RequestOutcome>
SpeculationServiceTest::run(Kind kind, uint64_t blocks, unsigned requests,
                            SpeculationStatistics *statistics) {
  std::unique_ptr<Service> service = start(kind, blocks);
  std::vector<RequestOutcome> outcomes(requests);
  std::vector<std::promise<RequestEnd>> ends(requests);
  for (unsigned i = 0; i < requests; ++i) {
    Result<RequestId> id = service->submit(
        makeRequest(i),
        {.onToken =
             [&, i](const GeneratedToken &token) {
               TextOutcome &text = outcomes[i][token.text];
               EXPECT_FALSE(text.finish);
               text.tokens.push_back(token.token.token);
               text.logProbabilities.push_back(token.token.logProbability);
               text.text += token.piece;
               text.finish = token.finish;
             },
         .onEnd = [&, i](const RequestEnd &end) { ends[i].set_value(end); }});
    EXPECT_TRUE(id) << id.error().message;
    // Some are taken back.
    if (i % 11 == 7)
      service->cancel(*id);
  }
  for (unsigned i = 0; i < requests; ++i) {
    const RequestEnd end = ends[i].get_future().get();
    if (!end.status) {
      EXPECT_EQ(end.status.error().kind, ErrorKind::Cancelled)
          << end.status.error().message;
      // How far it came is chance.
      EXPECT_EQ(i % 11, 7u);
      outcomes[i].clear();
    } else if (i % 11 == 7) {
      outcomes[i].clear();
    }
  }
  service->drain();
  const ServiceStatistics all = service->statistics();
  EXPECT_EQ(all.scheduler.usedBlocks, 0u);
  if (statistics)
    *statistics = all.scheduler.speculation;
  return outcomes;
}

TEST_F(SpeculationServiceTest, TextsAreTheSameWithProposals) {
  // Of half as many, an emulated service accepted 9 to 45 tokens of the small
  // draft; of these 76 and more.
  constexpr unsigned requests = 240;
  // Of a few requests, so that others wait and some lose their blocks.
  constexpr uint64_t blocks = 60;
  const std::vector<RequestOutcome> expected =
      run(Kind::None, blocks, requests, nullptr);
  for (Kind kind : {Kind::PromptLookup, Kind::RightDraft, Kind::WrongDraft,
                    Kind::SmallDraft}) {
    SCOPED_TRACE(static_cast<int>(kind));
    SpeculationStatistics statistics;
    const std::vector<RequestOutcome> outcomes =
        run(kind, blocks, requests, &statistics);
    for (unsigned i = 0; i < requests; ++i)
      EXPECT_EQ(outcomes[i], expected[i]) << "request " << i;
    EXPECT_GT(statistics.steps, 5u);
    EXPECT_GT(statistics.proposedTokens, statistics.acceptedTokens);
    if (kind == Kind::PromptLookup || kind == Kind::RightDraft) {
      // How many find blocks is a matter of time.
      EXPECT_GT(statistics.acceptedTokens, test::isEmulated() ? 30u : 100u);
    }
    if (kind == Kind::SmallDraft) {
      EXPECT_GT(statistics.acceptedTokens, 10u);
    }
  }
}

TEST_F(SpeculationServiceTest, AModelThatIsRightSavesSteps) {
  GenerationRequest request;
  request.prompt = makeTokens(30, 3);
  request.maxTokens = 60;
  request.sampling.ignoreEndOfText = true;
  request.sampling.logitBias[HASH_MODEL_VOCABULARY - 1] =
      -std::numeric_limits<float>::infinity();
  std::vector<uint64_t> steps;
  for (Kind kind : {Kind::None, Kind::RightDraft}) {
    std::unique_ptr<Service> service = start(kind, 60);
    std::vector<int32_t> tokens;
    std::promise<void> end;
    ASSERT_TRUE(service->submit(
        request, {[&](const GeneratedToken &token) {
                    tokens.push_back(token.token.token);
                  },
                  [&](const RequestEnd &) { end.set_value(); }}));
    end.get_future().wait();
    service->drain();
    EXPECT_EQ(tokens, greedy(request.prompt, 60));
    steps.push_back(service->statistics().scheduler.steps);
  }
  EXPECT_LT(2 * steps[1], steps[0]);
}

TEST_F(SpeculationServiceTest, RefusesModelsThatDoNotFit) {
  const HashModelOptions model = {.threads = 1};
  ServiceOptions options;
  options.proposals = ProposalSource::Draft;
  Result<std::unique_ptr<Service>> none =
      Service::create(makeEngine(model, 10), std::nullopt, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "there is no smaller model to propose tokens");
  options.proposedTokens = 65;
  Result<std::unique_ptr<Service>> many = Service::create(
      makeEngine(model, 10), std::nullopt, options, makeEngine(model, 10));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().kind, ErrorKind::InvalidArgument);
}
