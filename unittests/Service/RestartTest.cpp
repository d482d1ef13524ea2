//===- RestartTest.cpp - Requests whose ranks fail ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>

#include <future>
#include <limits>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {
class RestartTest : public ::testing::Test {
protected:
  /// A service of two ranks that computes one request at a time.
  std::unique_ptr<Service> start(bool restartRanks,
                                 const std::string &program) {
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
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact), options);
    EXPECT_TRUE(engine) << engine.error().message;
    rank = (*engine)->rankProcesses().front();
    Result<std::unique_ptr<Service>> service = Service::create(
        std::move(*engine), std::nullopt,
        {.maxSequences = 1,
         .restartRanks = restartRanks,
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
