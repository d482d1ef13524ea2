//===- SharedProcessTest.cpp - Several models in one process --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "GreedyTexts.h"
#include "HashModel.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <limits>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {
/// Models of one process, which share its cores and its memory.
class SharedProcessTest : public ::testing::Test {
protected:
  static Artifact open(const std::string &path) {
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    return std::move(*artifact);
  }
  /// Returns the path.
  std::string write(const std::string &name, const HashModelOptions &model) {
    std::string path = folder.file(name);
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    return path;
  }

  Result<std::unique_ptr<Engine>> load(const std::string &path,
                                       EngineOptions options = {}) {
    options.ranks.program = SANDWICH_TEST_RUN;
    options.coreArbiter = arbiter;
    options.memoryLedger = ledger;
    return Engine::create(open(path), options);
  }

  std::unique_ptr<Service> serve(std::unique_ptr<Engine> engine) {
    Result<std::unique_ptr<Service>> service =
        Service::create(std::move(engine), std::nullopt);
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }

  TemporaryFolder folder;
  std::shared_ptr<CoreArbiter> arbiter = *CoreArbiter::create();
  std::shared_ptr<MemoryLedger> ledger = std::make_shared<MemoryLedger>();
};

/// A request, and the end that it came to.
struct Asked {
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;
  std::promise<Status> ended;

  void submit(Service &service, uint64_t count) {
    GenerationRequest request;
    request.prompt = prompt;
    request.maxTokens = count;
    request.sampling.logitBias = {
        {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};
    Result<RequestId> id = service.submit(
        std::move(request),
        {[this](const GeneratedToken &token) {
           tokens.push_back(token.token.token);
         },
         [this](const RequestEnd &end) { ended.set_value(end.status); }});
    if (!id)
      ended.set_value(id.error());
  }
};
} // namespace

TEST_F(SharedProcessTest, ModelsOnTheSameCoresServeTheirTexts) {
  // Two of them on the same CPUs, one of which has ranks, and one anywhere.
  const std::vector<HashModelOptions> models = {
      {.threads = 2, .withTokenizer = false, .plan = true},
      {.threads = 1, .withTokenizer = false, .ranks = 2, .plan = true},
      {.threads = 2, .withTokenizer = false}};
  std::vector<std::unique_ptr<Service>> services;
  for (size_t i = 0; i < models.size(); ++i) {
    Result<std::unique_ptr<Engine>> engine =
        load(write(std::to_string(i) + ".sandwich", models[i]));
    ASSERT_TRUE(engine) << engine.error().message;
    services.push_back(serve(std::move(*engine)));
  }
  std::deque<Asked> asked;
  for (size_t i = 0; i < 24; ++i) {
    asked.push_back(
        {.prompt = makeTokens(20 + i, i), .tokens = {}, .ended = {}});
    asked.back().submit(*services[i % services.size()], 30);
  }
  for (Asked &each : asked) {
    Status status = each.ended.get_future().get();
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(each.tokens, greedy(each.prompt, 30));
  }
  const std::vector<CoreArbiter::MemberUse> uses = arbiter->uses();
  ASSERT_EQ(uses.size(), services.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    EXPECT_EQ(uses[i].name, services[i]->artifact().path());
    EXPECT_GT(uses[i].use.steps, 30u);
    EXPECT_GT(uses[i].use.coreSeconds, 0);
  }
  services.clear();
  EXPECT_TRUE(arbiter->uses().empty());
  EXPECT_TRUE(ledger->holdings().empty());
}

TEST_F(SharedProcessTest, CoresAreHeldUntilTheLeaseEnds) {
  Result<std::unique_ptr<Engine>> engine =
      load(write("a.sandwich", {.threads = 2, .withTokenizer = false}));
  ASSERT_TRUE(engine) << engine.error().message;
  Result<std::unique_ptr<CoreMember>> other =
      CoreMember::join(arbiter, "other", 1);
  ASSERT_TRUE(other);
  // As many threads as there may be at all.
  const CoreDemand all = {.floating = 1 << 20};
  Sequence sequence = (*engine)->newSequence();
  const std::vector<int32_t> tokens = {1, 2, 3};
  const Segment segment{&sequence, tokens};
  std::atomic<bool> ended = false;
  for (int round = 0; round < 50; ++round) {
    sequence.clear();
    ASSERT_TRUE((*engine)->begin({&segment, 1}, PhaseKind::Prefill));
    CoreLease lease;
    ended = false;
    (*engine)->compute(&lease);
    std::jthread waiting([&] {
      const CoreLease own = (*other)->acquire(all);
      EXPECT_TRUE(ended);
    });
    ASSERT_TRUE((*engine)->finish());
    (*engine)->team(PhaseKind::Decode).readPlacement();
    std::this_thread::yield();
    ended = true;
    lease.release();
  }
  // Without a lease a step gets one itself, and gives it back.
  sequence.clear();
  ASSERT_TRUE((*engine)->step({&segment, 1}, PhaseKind::Prefill));
  const CoreLease own = (*other)->acquire(all);
  EXPECT_TRUE((*other)->holds());
}

TEST_F(SharedProcessTest, TheLedgerKnowsWhatIsInUse) {
  constexpr uint64_t kvMemory = uint64_t{64} << 20;
  EngineOptions options;
  options.kvMemory = kvMemory;
  Result<std::unique_ptr<Engine>> engine =
      load(write("a.sandwich", {.maxTokens = 4096, .contextLength = 1 << 20}),
           options);
  ASSERT_TRUE(engine) << engine.error().message;
  const MemoryLedger::Holding before = ledger->holdings().at(0);
  EXPECT_EQ(before.model, folder.file("a.sandwich"));
  EXPECT_EQ(before.kvCache, kvMemory);
  EXPECT_LT(before.inUse, before.bytes - before.mapped - kvMemory / 2);
  // Half a million tokens of eight bytes.
  Sequence sequence = (*engine)->newSequence();
  Status fed = (*engine)->feed(sequence, makeTokens(4096, 1), LogitRows::None);
  ASSERT_TRUE(fed) << fed.error().message;
  EXPECT_GE(ledger->holdings().at(0).inUse, before.inUse + 4096 * 8);
}

TEST_F(SharedProcessTest, ModelsThatAreLoadedAtOnceFitTogether) {
  // Each wants 128 MiB, and all together get less.
  constexpr uint64_t total = uint64_t{400} << 20;
  ledger = std::make_shared<MemoryLedger>([](const std::vector<unsigned> &) {
    return std::vector<MemoryLimit>{{total, "on this machine"}};
  });
  std::vector<std::string> paths;
  std::vector<EngineOptions> options(3);
  for (size_t i = 0; i < options.size(); ++i) {
    paths.push_back(
        write(std::to_string(i) + ".sandwich", {.contextLength = 1 << 24}));
    Result<MemoryNeeds> needs = Engine::memoryNeeds(open(paths[i]), options[i]);
    ASSERT_TRUE(needs) << needs.error().message;
    ledger->expect(paths[i], *needs);
  }
  std::vector<std::unique_ptr<Engine>> engines(options.size());
  {
    std::vector<std::jthread> loading;
    for (size_t i = 0; i < options.size(); ++i)
      loading.emplace_back([&, i] {
        Result<std::unique_ptr<Engine>> engine = load(paths[i], options[i]);
        ASSERT_TRUE(engine) << engine.error().message;
        engines[i] = std::move(*engine);
      });
  }
  uint64_t least = UINT64_MAX, most = 0, sum = 0;
  for (const std::unique_ptr<Engine> &engine : engines) {
    ASSERT_TRUE(engine);
    const uint64_t bytes = engine->kvCache().bytes().size();
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    sum += bytes;
  }
  EXPECT_LT(sum, total);
  EXPECT_GT(sum, total / 2);
  EXPECT_LT(most, 2 * least);
  // One more has no room.
  EngineOptions large;
  large.kvMemory = total / 2;
  Result<std::unique_ptr<Engine>> refused = load(paths[0], large);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(" of " + paths[1]), std::string::npos)
      << refused.error().message;
}

TEST_F(SharedProcessTest, AWeightThatIsNoneIsRefused) {
  EngineOptions options;
  options.coreWeight = 0;
  Result<std::unique_ptr<Engine>> engine =
      load(write("a.sandwich", {.threads = 1}), options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::InvalidArgument);
}
