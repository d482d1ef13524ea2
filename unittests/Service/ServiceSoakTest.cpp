//===- ServiceSoakTest.cpp - Many requests for a long time ----------------===//
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
#include <fstream>
#include <future>
#include <random>
#include <thread>

#ifdef SANDWICH_MEASURE_MEMORY
#include <malloc.h>
#endif

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr uint64_t longestPrompt = 60;
constexpr uint64_t mostTokens = 30;
/// Of three of the largest requests, so that others wait, and some give their
/// blocks back.
constexpr uint64_t blocksOfRequest =
    (longestPrompt + mostTokens + SANDWICH_KV_BLOCK_TOKENS - 1) /
    SANDWICH_KV_BLOCK_TOKENS;
constexpr uint64_t cacheBlocks = 3 * blocksOfRequest;

/// When a request is cancelled.
enum class Cancels { Never, AtOnce, AfterTokens, AnyTime, AfterEnd };

/// A request and what it got.
struct Tracked {
  std::vector<int32_t> expected;
  uint64_t promptTokens = 0;
  Cancels cancels = Cancels::Never;
  /// With `AfterTokens`: how many.
  size_t cancelAfter = 0;
  /// 0 until the service has told it.
  std::atomic<RequestId> id = 0;
  std::atomic<bool> cancelled = false;
  std::vector<int32_t> made;
  unsigned ends = 0;
  /// Tokens that came after the end.
  unsigned lateTokens = 0;
  std::promise<RequestEnd> promise;
  std::future<RequestEnd> end = promise.get_future();
};

/// What all requests together got.
struct Totals {
  std::atomic<uint64_t> tokens = 0;
  std::atomic<uint64_t> finished = 0;
  /// Cancelled before their first token, and with some.
  std::atomic<uint64_t> cancelledBefore = 0;
  std::atomic<uint64_t> cancelledBetween = 0;
  /// Cancelled after their end, in vain.
  std::atomic<uint64_t> cancelledAfter = 0;
};

class ServiceSoakTest : public ::testing::Test {
protected:
  void start(const SchedulerOptions &scheduling = {}) {
    std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, {.threads = 1,
                                           .maxTokens = 16,
                                           .maxLogitRows = 16,
                                           .contextLength = 128,
                                           .withTokenizer = false});
    ASSERT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    ASSERT_TRUE(artifact) << artifact.error().message;
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(std::move(*artifact),
                       {.kvMemory = cacheBlocks * SANDWICH_KV_BLOCK_TOKENS *
                                    sizeof(uint64_t)});
    ASSERT_TRUE(engine) << engine.error().message;
    Result<std::unique_ptr<Service>> created = Service::create(
        std::move(*engine), std::nullopt, {.scheduling = scheduling});
    ASSERT_TRUE(created) << created.error().message;
    service = *std::move(created);
    ASSERT_EQ(service->statistics().blockCount, cacheBlocks);
  }

  Result<RequestId> submit(const std::shared_ptr<Tracked> &tracked,
                           GenerationRequest request);
  /// Submits `count` requests, several of which are there at a time, and checks
  /// what each got.
  void serve(unsigned count, uint64_t seed, Totals &totals);
  void check(Tracked &tracked, Totals &totals);

  TemporaryFolder folder;
  std::unique_ptr<Service> service;
};

} // namespace

Result<RequestId>
ServiceSoakTest::submit(const std::shared_ptr<Tracked> &tracked,
                        GenerationRequest request) {
  tracked->promptTokens = request.prompt.size();
  tracked->expected = greedy(request.prompt, request.maxTokens);
  return service->submit(std::move(request),
                         {.onToken =
                              [this, tracked](const GeneratedToken &token) {
                                tracked->lateTokens += tracked->ends;
                                tracked->made.push_back(token.token.token);
                                if (tracked->cancels != Cancels::AfterTokens ||
                                    tracked->made.size() !=
                                        tracked->cancelAfter)
                                  return;
                                if (const RequestId id = tracked->id)
                                  tracked->cancelled = service->cancel(id);
                              },
                          .onEnd =
                              [tracked](const RequestEnd &end) {
                                if (++tracked->ends == 1)
                                  tracked->promise.set_value(end);
                              }});
}

void ServiceSoakTest::check(Tracked &tracked, Totals &totals) {
  const RequestEnd end = tracked.end.get();
  if (tracked.cancels == Cancels::AfterEnd) {
    EXPECT_FALSE(service->cancel(tracked.id));
    ++totals.cancelledAfter;
  }
  EXPECT_EQ(end.request, tracked.id);
  EXPECT_EQ(end.promptTokens, tracked.promptTokens);
  EXPECT_EQ(end.generatedTokens, tracked.made.size());
  totals.tokens += tracked.made.size();
  if (!tracked.cancelled) {
    EXPECT_TRUE(end.status) << end.status.error().message;
    EXPECT_EQ(tracked.made, tracked.expected);
    ++totals.finished;
    return;
  }
  ASSERT_FALSE(end.status);
  EXPECT_EQ(end.status.error().kind, ErrorKind::Cancelled);
  ASSERT_LT(tracked.made.size(), tracked.expected.size());
  EXPECT_TRUE(std::equal(tracked.made.begin(), tracked.made.end(),
                         tracked.expected.begin()));
  ++(tracked.made.empty() ? totals.cancelledBefore : totals.cancelledBetween);
}

void ServiceSoakTest::serve(unsigned count, uint64_t seed, Totals &totals) {
  constexpr unsigned clients = 4;
  constexpr size_t atATime = 8;
  std::vector<std::thread> threads;
  for (unsigned client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      std::mt19937_64 random(seed * clients + client);
      std::deque<std::shared_ptr<Tracked>> window;
      std::vector<std::shared_ptr<Tracked>> ended;
      auto endOldest = [&] {
        check(*window.front(), totals);
        ended.push_back(std::move(window.front()));
        window.pop_front();
      };
      for (unsigned i = 0; i < count / clients; ++i) {
        GenerationRequest request;
        // Some begin as others did.
        request.prompt =
            makeTokens(1 + random() % longestPrompt, 1 + random() % 500);
        request.maxTokens = 1 + random() % mostTokens;
        request.priority = static_cast<uint32_t>(random() % 3);
        auto tracked = std::make_shared<Tracked>();
        constexpr Cancels kinds[] = {Cancels::Never,       Cancels::Never,
                                     Cancels::Never,       Cancels::AtOnce,
                                     Cancels::AfterTokens, Cancels::AnyTime,
                                     Cancels::AnyTime,     Cancels::AfterEnd};
        tracked->cancels = kinds[random() % std::size(kinds)];
        tracked->cancelAfter = 1 + random() % request.maxTokens;
        Result<RequestId> id = submit(tracked, std::move(request));
        ASSERT_TRUE(id) << id.error().message;
        tracked->id = *id;
        if (tracked->cancels == Cancels::AtOnce)
          tracked->cancelled = service->cancel(*id);
        window.push_back(std::move(tracked));
        Tracked &any = *window[random() % window.size()];
        if (any.cancels == Cancels::AnyTime && !any.cancelled)
          any.cancelled = service->cancel(any.id);
        if (window.size() == atATime)
          endOldest();
        // Whatever would come after the end has had time to.
        if (ended.size() > 2 * atATime) {
          EXPECT_EQ(ended.front()->ends, 1u);
          EXPECT_EQ(ended.front()->lateTokens, 0u);
          ended.erase(ended.begin());
        }
      }
      while (!window.empty())
        endOldest();
    });
  for (std::thread &thread : threads)
    thread.join();
}

#ifdef SANDWICH_MEASURE_MEMORY
namespace {
/// Memory of this process in bytes.
struct ProcessMemory {
  int64_t resident;
  int64_t allocated;
};
} // namespace

static ProcessMemory measureMemory() {
  // What is free must not look like what is lost.
  (void)::malloc_trim(0);
  std::ifstream status("/proc/self/status");
  int64_t resident = -1;
  for (std::string word; status >> word;)
    if (word == "VmRSS:")
      status >> resident;
  return {resident * 1024, static_cast<int64_t>(::mallinfo2().uordblks)};
}
#endif

TEST_F(ServiceSoakTest, TenThousandRequestsLoseNothing) {
  start();
  constexpr unsigned first = 2000, all = 10000;
  Totals totals;
  serve(first, 1, totals);
#ifdef SANDWICH_MEASURE_MEMORY
  const ProcessMemory before = measureMemory();
#endif
  serve(all - first, 2, totals);
#ifdef SANDWICH_MEASURE_MEMORY
  const ProcessMemory after = measureMemory();
  // 16 bytes lost of each request would be seen; pages that the threads'
  // allocators keep are not.
  EXPECT_LT(after.allocated - before.allocated, int64_t{64} << 10);
  EXPECT_LT(after.resident - before.resident, int64_t{2} << 20);
  RecordProperty("allocated",
                 std::to_string(after.allocated - before.allocated));
  RecordProperty("resident", std::to_string(after.resident - before.resident));
#endif
  service->drain();
  EXPECT_EQ(totals.finished + totals.cancelledBefore + totals.cancelledBetween,
            all);
  // Requests that proved nothing.
  EXPECT_GT(totals.cancelledBefore, 0u);
  EXPECT_GT(totals.cancelledBetween, 0u);
  EXPECT_GT(totals.cancelledAfter, 0u);
  const ServiceStatistics statistics = service->statistics();
  EXPECT_EQ(statistics.requests, all);
  EXPECT_EQ(statistics.refusedRequests, 0u);
  EXPECT_EQ(statistics.generatedTokens, totals.tokens);
  EXPECT_GT(statistics.scheduler.preemptions, 0u);
  EXPECT_GT(statistics.scheduler.promptTokensHit, 0u);
  EXPECT_EQ(statistics.scheduler.usedBlocks, 0u);
  EXPECT_EQ(statistics.scheduler.waitingRequests, 0u);
  EXPECT_EQ(statistics.scheduler.waitingTokens, 0u);
  EXPECT_EQ(statistics.scheduler.runningRequests, 0u);
  EXPECT_EQ(statistics.scheduler.runningTexts, 0u);
}

TEST_F(ServiceSoakTest, TenTimesTheLoadIsRefusedOrServed) {
  constexpr uint64_t waiting = 32;
  SchedulerOptions scheduling;
  scheduling.maxWaitingRequests = waiting;
  start(scheduling);
  // The service's thread is held by its first request, so that the number of
  // requests that find room does not depend on how fast it is.
  std::promise<void> holds, release;
  GenerationRequest holding;
  holding.prompt = {1, 2, 3};
  holding.maxTokens = 1;
  ASSERT_TRUE(service->submit(holding, {.onEnd = [&](const RequestEnd &) {
                                holds.set_value();
                                release.get_future().wait();
                              }}));
  holds.get_future().wait();
  constexpr unsigned clients = 4;
  constexpr uint64_t offered = 10 * waiting;
  std::vector<std::shared_ptr<Tracked>> admitted[clients];
  std::atomic<uint64_t> refused = 0;
  std::vector<std::thread> threads;
  for (unsigned client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      std::mt19937_64 random(client);
      for (uint64_t i = 0; i < offered / clients; ++i) {
        GenerationRequest request;
        request.prompt = makeTokens(1 + random() % longestPrompt, random());
        request.maxTokens = 1 + random() % mostTokens;
        auto tracked = std::make_shared<Tracked>();
        Result<RequestId> id = submit(tracked, std::move(request));
        if (id) {
          tracked->id = *id;
          admitted[client].push_back(std::move(tracked));
          continue;
        }
        EXPECT_EQ(id.error().kind, ErrorKind::Overloaded) << id.error().message;
        ++refused;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  release.set_value();
  Totals totals;
  for (const auto &ofClient : admitted)
    for (const std::shared_ptr<Tracked> &tracked : ofClient)
      check(*tracked, totals);
  service->drain();
  EXPECT_EQ(totals.finished, waiting);
  EXPECT_EQ(refused, offered - waiting);
  const ServiceStatistics statistics = service->statistics();
  EXPECT_EQ(statistics.requests, waiting + 1);
  EXPECT_EQ(statistics.refusedRequests, refused);
  EXPECT_EQ(statistics.generatedTokens, totals.tokens + 1);
  EXPECT_EQ(statistics.scheduler.usedBlocks, 0u);
}
