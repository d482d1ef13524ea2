//===- RestartTest.cpp - Requests whose ranks fail ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "ChildProcesses.h"
#include "GreedyTexts.h"
#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <deque>
#include <future>
#include <limits>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class RestartTest : public ::testing::Test {
protected:
  /// A service of two ranks that computes one request at a time.
  std::unique_ptr<Service> start(bool restartRanks, const std::string &program,
                                 std::optional<uint32_t> mostRestarts = {}) {
    const std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, {.threads = 1,
                                           .contextLength = 10000,
                                           .withTokenizer = false,
                                           .ranks = 2});
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    EngineOptions options;
    options.kvCacheTokens = 10000;
    options.ranks.program = program;
    options.ranks.hangSeconds = hangSeconds;
    options.coreArbiter = arbiter;
    options.memoryLedger = ledger;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), options);
    EXPECT_TRUE(engine) << engine.error().message;
    rank = (*engine)->rankProcesses().front();
    Result<std::unique_ptr<Service>> service = Service::create(
        std::move(*engine), std::nullopt,
        {.maxSequences = 1,
         .restartRanks = restartRanks,
         .mostRestarts = mostRestarts,
         .log = [this](LogLevel level, const std::string &message) {
           if (level == LogLevel::Warning)
             warnings.push_back(message);
         }});
    EXPECT_TRUE(service) << service.error().message;
    return std::move(*service);
  }

  /// A program that runs a rank `times` times, and fails then.
  std::string programFor(int times) {
    const std::string path = folder.write(
        "program", "#!/bin/sh\n"
                   "echo x >> " +
                       folder.file("runs") +
                       "\n"
                       "[ $(wc -l < " +
                       folder.file("runs") + ") -le " + std::to_string(times) +
                       " ] || exit 3\n"
                       "exec " SANDWICH_TEST_RUN " \"$@\"\n");
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path;
  }

  TemporaryFolder folder;
  double hangSeconds = RankGroupOptions().hangSeconds;
  std::shared_ptr<CoreArbiter> arbiter;
  std::shared_ptr<MemoryLedger> ledger;
  /// The process of rank 1, before any restart.
  pid_t rank = 0;
  /// To be read once the service has ended.
  std::vector<std::string> warnings;
};

/// A request under way, and what became of it.
struct Asked {
  std::vector<int32_t> tokens;
  std::promise<void> begun;
  std::promise<RequestEnd> promise;
  std::future<RequestEnd> end = promise.get_future();

  Result<RequestId> submit(Service &service, std::vector<int32_t> prompt,
                           uint64_t maxTokens) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.maxTokens = maxTokens;
    // After its last token the model computes no numbers.
    request.sampling.logitBias = {
        {HASH_MODEL_VOCABULARY - 1, -std::numeric_limits<float>::infinity()}};
    return service.submit(
        std::move(request),
        {[this](const GeneratedToken &token) {
           tokens.push_back(token.token.token);
           if (tokens.size() == 1)
             begun.set_value();
         },
         [this](const RequestEnd &ended) { promise.set_value(ended); }});
  }
  /// What kind of error it ended with, if it did.
  std::optional<ErrorKind> failure() {
    const RequestEnd ended = end.get();
    return ended.status ? std::nullopt
                        : std::optional(ended.status.error().kind);
  }
};
} // namespace

TEST_F(RestartTest, RequestsThatHadBegunEndAndOthersGoOn) {
  {
    std::unique_ptr<Service> service = start(true, programFor(2));
    Asked running, waiting, later;
    ASSERT_TRUE(running.submit(*service, {1, 2, 3}, 9000));
    running.begun.get_future().wait();
    ASSERT_TRUE(waiting.submit(*service, {4, 5, 6}, 2));
    ASSERT_EQ(::kill(rank, SIGKILL), 0);
    EXPECT_EQ(running.failure(), ErrorKind::Unavailable);
    EXPECT_EQ(waiting.failure(), std::nullopt);
    EXPECT_EQ(waiting.tokens.size(), 2u);
    // Nothing is left of what the first one computed before.
    ASSERT_TRUE(later.submit(*service, {1, 2, 3}, 20));
    EXPECT_EQ(later.failure(), std::nullopt);
    std::vector<int32_t> text = {1, 2, 3};
    text.insert(text.end(), later.tokens.begin(), later.tokens.end());
    for (size_t i = 3; i < text.size(); ++i)
      EXPECT_EQ(text[i], hashModelNext(std::span(text).first(i)));
    const ServiceStatistics statistics = service->statistics();
    EXPECT_EQ(statistics.scheduler.usedBlocks, 0u);
    EXPECT_EQ(statistics.requests, 3u);
    EXPECT_EQ(statistics.rankRestarts, 1u);
  }
  // Others are about what this machine is.
  ASSERT_GE(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("was killed by signal 9"), std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("starting the ranks anew"), std::string::npos)
      << warnings[0];
}

TEST_F(RestartTest, RanksThatCannotStartEndTheService) {
  std::unique_ptr<Service> service = start(true, programFor(1));
  Asked running, waiting, later;
  ASSERT_TRUE(running.submit(*service, {1, 2, 3}, 9000));
  running.begun.get_future().wait();
  ASSERT_TRUE(waiting.submit(*service, {4, 5, 6}, 2));
  ASSERT_EQ(::kill(rank, SIGKILL), 0);
  EXPECT_EQ(running.failure(), ErrorKind::Unavailable);
  EXPECT_EQ(waiting.failure(), ErrorKind::Unavailable);
  Result<RequestId> refused = later.submit(*service, {1}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
  EXPECT_TRUE(refused.error().message.starts_with("the ranks failed again: "))
      << refused.error().message;
}

TEST_F(RestartTest, WithoutRestartsAllRequestsEnd) {
  std::unique_ptr<Service> service = start(false, SANDWICH_TEST_RUN);
  Asked running, waiting, later;
  ASSERT_TRUE(running.submit(*service, {1, 2, 3}, 9000));
  running.begun.get_future().wait();
  ASSERT_TRUE(waiting.submit(*service, {4, 5, 6}, 2));
  ASSERT_EQ(::kill(rank, SIGKILL), 0);
  EXPECT_EQ(running.failure(), ErrorKind::Unavailable);
  EXPECT_EQ(waiting.failure(), ErrorKind::Unavailable);
  Result<RequestId> refused = later.submit(*service, {1}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
}

/// Whether there is no such process any more.
static bool isGone(pid_t process) {
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

TEST_F(RestartTest, AStoppedRankIsFoundKilledAndReplaced) {
  hangSeconds = 0.5;
  std::unique_ptr<Service> service = start(true, SANDWICH_TEST_RUN);
  Asked running, waiting, later;
  ASSERT_TRUE(running.submit(*service, {1, 2, 3}, 9000));
  running.begun.get_future().wait();
  ASSERT_TRUE(waiting.submit(*service, {4, 5, 6}, 5));
  ASSERT_EQ(::kill(rank, SIGSTOP), 0);
  const RequestEnd end = running.end.get();
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(end.status.error().message.find("rank 1 (process " +
                                            std::to_string(rank) + ") "),
            std::string::npos)
      << end.status.error().message;
  EXPECT_EQ(waiting.failure(), std::nullopt);
  EXPECT_EQ(waiting.tokens, greedy({4, 5, 6}, 5));
  EXPECT_TRUE(isGone(rank));
  ASSERT_TRUE(later.submit(*service, {1, 2, 3}, 20));
  EXPECT_EQ(later.failure(), std::nullopt);
  EXPECT_EQ(later.tokens, greedy({1, 2, 3}, 20));
  EXPECT_EQ(service->statistics().rankRestarts, 1u);
}

TEST_F(RestartTest, ARankThatComputesForEverIsReplaced) {
  hangSeconds = 0.5;
  std::unique_ptr<Service> service = start(true, SANDWICH_TEST_RUN);
  Asked first, hanging, later;
  ASSERT_TRUE(first.submit(*service, {1, 2, 3}, 5));
  EXPECT_EQ(first.failure(), std::nullopt);
  ASSERT_TRUE(hanging.submit(*service, {HASH_MODEL_LOOP, 1}, 5));
  ASSERT_TRUE(later.submit(*service, {4, 5, 6}, 5));
  EXPECT_EQ(hanging.failure(), ErrorKind::Unavailable);
  EXPECT_EQ(later.failure(), std::nullopt);
  EXPECT_EQ(later.tokens, greedy({4, 5, 6}, 5));
  EXPECT_TRUE(isGone(rank));
}

TEST_F(RestartTest, RanksFailAgainAndAgainUnderLoad) {
  hangSeconds = 0.5;
  arbiter = *CoreArbiter::create();
  ledger = std::make_shared<MemoryLedger>();
  std::unique_ptr<Service> service = start(true, SANDWICH_TEST_RUN, 10);
  const uint64_t held = ledger->holdings().at(0).bytes;
  for (int round = 0; round < 6; ++round) {
    std::deque<Asked> asked(5);
    for (Asked &each : asked)
      ASSERT_TRUE(each.submit(*service, {1, 2, round}, 300));
    asked.front().begun.get_future().wait();
    const std::vector<pid_t> ranks = childProcesses();
    ASSERT_EQ(ranks.size(), 1u);
    ASSERT_EQ(::kill(ranks.front(), round % 2 ? SIGKILL : SIGSTOP), 0);
    for (Asked &each : asked) {
      const std::vector<int32_t> text = greedy({1, 2, round}, 300);
      const std::optional<ErrorKind> failure = each.failure();
      if (failure)
        EXPECT_EQ(failure, ErrorKind::Unavailable);
      else
        EXPECT_EQ(each.tokens, text);
    }
    // A step was computed since, or the next failure were the last.
    Asked after;
    ASSERT_TRUE(after.submit(*service, {7, 8, round}, 3));
    EXPECT_EQ(after.failure(), std::nullopt);
    EXPECT_EQ(after.tokens, greedy({7, 8, round}, 3));
    EXPECT_TRUE(isGone(ranks.front()));
  }
  EXPECT_EQ(service->statistics().rankRestarts, 6u);
  EXPECT_EQ(ledger->holdings().at(0).bytes, held);
  EXPECT_GT(ledger->holdings().at(0).inUse, 0u);
  service.reset();
  EXPECT_TRUE(ledger->holdings().empty());
  EXPECT_TRUE(arbiter->uses().empty());
}

TEST_F(RestartTest, RestartsAreNotWithoutEnd) {
  std::unique_ptr<Service> service = start(true, SANDWICH_TEST_RUN, 1);
  for (int round = 0; round < 2; ++round) {
    Asked running;
    ASSERT_TRUE(running.submit(*service, {1, 2, 3}, 9000));
    running.begun.get_future().wait();
    const std::vector<pid_t> ranks = childProcesses();
    ASSERT_EQ(ranks.size(), 1u);
    ASSERT_EQ(::kill(ranks.front(), SIGKILL), 0);
    EXPECT_EQ(running.failure(), ErrorKind::Unavailable);
  }
  // It is known once the end of all requests was told.
  std::optional<Error> refused;
  while (!refused) {
    Asked later;
    Result<RequestId> id = later.submit(*service, {1}, 1);
    if (id)
      EXPECT_EQ(later.failure(), ErrorKind::Unavailable);
    else
      refused = id.error();
  }
  EXPECT_EQ(refused->kind, ErrorKind::Unavailable);
  EXPECT_NE(refused->message.find("no restart is left of the 1 in 600 seconds"),
            std::string::npos)
      << refused->message;
  EXPECT_EQ(service->statistics().rankRestarts, 1u);
}
