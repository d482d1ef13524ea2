//===- EncodingServiceTest.cpp - Texts of many callers --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/EncodingService.h"
#include "TemporaryFolder.h"
#include "WriteSumModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

using namespace sandwich;
using namespace sandwich::test;

namespace {

using Rows = Result<std::vector<float>>;

class EncodingServiceTest : public testing::Test {
protected:
  void start(const EncodingServiceOptions &options = {}) {
    const std::string path = folder.path() + "/sum.sandwich";
    ASSERT_TRUE(writeSumModel(path));
    Result<Artifact> artifact = Artifact::open(path, {.use = ModelUse::Encode});
    ASSERT_TRUE(artifact);
    auto engine = EncoderEngine::create(*std::move(artifact), {});
    ASSERT_TRUE(engine) << engine.error().message;
    service = *EncodingService::create(*std::move(engine), options);
  }

  static std::pair<EncodingRequest, std::future<Rows>>
  makeRequest(std::vector<int32_t> ids,
              EncoderOutput output = EncoderOutput::Texts) {
    auto promise = std::make_shared<std::promise<Rows>>();
    EncodingRequest request;
    request.ids = std::move(ids);
    request.output = output;
    request.completion = [promise](Rows rows) {
      promise->set_value(std::move(rows));
    };
    return {std::move(request), promise->get_future()};
  }

  Status submit(EncodingRequest request) {
    std::vector<EncodingRequest> requests;
    requests.push_back(std::move(request));
    return service->submit(std::move(requests));
  }

  /// Keeps the service's thread until it is released.
  struct Gate {
    std::promise<void> entered, open;
  };
  std::shared_ptr<Gate> block() {
    auto gate = std::make_shared<Gate>();
    EncodingRequest request;
    request.ids = {1};
    request.completion = [gate](const Rows &) {
      gate->entered.set_value();
      gate->open.get_future().wait();
    };
    EXPECT_TRUE(submit(std::move(request)));
    gate->entered.get_future().wait();
    return gate;
  }

  TemporaryFolder folder;
  std::unique_ptr<EncodingService> service;
};

TEST_F(EncodingServiceTest, AnswersATextAtOnce) {
  start();
  auto [request, rows] = makeRequest({4, 5});
  ASSERT_TRUE(submit(std::move(request)));
  Rows result = rows.get();
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, (std::vector<float>{9, 2, 0, 1}));
}

TEST_F(EncodingServiceTest, FormsABatchWhileAnotherIsComputed) {
  start();
  auto gate = block();
  std::vector<std::future<Rows>> all;
  for (int32_t i = 0; i < 40; ++i) {
    auto [request, rows] = makeRequest({i == 13 ? 14 : i, 1});
    ASSERT_TRUE(submit(std::move(request)));
    all.push_back(std::move(rows));
  }
  EXPECT_EQ(service->counts().waitingTexts, 40U);
  EXPECT_EQ(service->counts().waitingTokens, 80U);
  gate->open.set_value();
  for (int32_t i = 0; i < 40; ++i) {
    Rows rows = all[i].get();
    ASSERT_TRUE(rows);
    EXPECT_EQ((*rows)[0], (i == 13 ? 14 : i) + 1);
  }
  // 64 tokens, and what was left of 80.
  const EncodingCounts counts = service->counts();
  EXPECT_EQ(counts.batches, 3U);
  EXPECT_EQ(counts.texts, 41U);
  EXPECT_EQ(counts.tokens, 81U);
  EXPECT_EQ(counts.waitingTexts, 0U);
  EXPECT_EQ(counts.waitingTokens, 0U);
}

TEST_F(EncodingServiceTest, KeepsTheTokensOfABatch) {
  start({.batchTokens = 8});
  auto gate = block();
  std::vector<std::future<Rows>> all;
  // A text that is longer than a batch is one of its own.
  for (const std::vector<int32_t> &ids :
       {std::vector<int32_t>(20, 1), std::vector<int32_t>(5, 1),
        std::vector<int32_t>(3, 1), std::vector<int32_t>(1, 1)}) {
    auto [request, rows] = makeRequest(ids);
    ASSERT_TRUE(submit(std::move(request)));
    all.push_back(std::move(rows));
  }
  gate->open.set_value();
  for (auto &rows : all)
    EXPECT_TRUE(rows.get());
  EXPECT_EQ(service->counts().batches, 4U);
}

TEST_F(EncodingServiceTest, ComputesRowsOfTokensApart) {
  start();
  auto gate = block();
  auto [first, firstRows] = makeRequest({4, 5}, EncoderOutput::Tokens);
  auto [second, secondRows] = makeRequest({6});
  auto [third, thirdRows] = makeRequest({7}, EncoderOutput::Tokens);
  std::vector<EncodingRequest> requests;
  for (EncodingRequest *request : {&first, &second, &third})
    requests.push_back(std::move(*request));
  ASSERT_TRUE(service->submit(std::move(requests)));
  gate->open.set_value();
  EXPECT_EQ(*firstRows.get(), (std::vector<float>{4, 1, 0, 0, 5, 1, 0, 1}));
  EXPECT_EQ(*secondRows.get(), (std::vector<float>{6, 1, 0, 0}));
  EXPECT_EQ(*thirdRows.get(), (std::vector<float>{7, 1, 0, 0}));
  EXPECT_EQ(service->counts().batches, 3U);
}

TEST_F(EncodingServiceTest, TellsOfNumbersThatAreNone) {
  start();
  auto gate = block();
  auto [bad, badRows] = makeRequest({SUM_MODEL_SPOILING_ID});
  auto [good, goodRows] = makeRequest({6});
  ASSERT_TRUE(submit(std::move(bad)));
  ASSERT_TRUE(submit(std::move(good)));
  gate->open.set_value();
  Rows result = badRows.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Internal);
  EXPECT_TRUE(goodRows.get());
}

TEST_F(EncodingServiceTest, TakesAllRequestsOrNone) {
  start({.waitingTokens = 10});
  auto gate = block();
  std::vector<EncodingRequest> requests;
  std::vector<std::future<Rows>> all;
  for (int i = 0; i < 2; ++i) {
    auto [request, rows] = makeRequest({1, 2, 3, 4, 5, 6});
    requests.push_back(std::move(request));
    all.push_back(std::move(rows));
  }
  Status status = service->submit(std::move(requests));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(status.error().message,
            "there are 12 tokens, and the queue holds 10");
  auto [first, firstRows] = makeRequest({1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(submit(std::move(first)));
  auto [second, secondRows] = makeRequest({1, 2, 3, 4, 5, 6});
  status = submit(std::move(second));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Overloaded);
  EXPECT_EQ(status.error().message, "there are 6 tokens, and 6 are waiting "
                                    "already; at most 10 may");
  auto [wrong, wrongRows] = makeRequest({200});
  EXPECT_EQ(submit(std::move(wrong)).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(service->counts().waitingTexts, 1U);
  gate->open.set_value();
}

TEST_F(EncodingServiceTest, OutlivesWhoThrows) {
  start();
  EncodingRequest bad;
  bad.ids = {1};
  bad.completion = [](const Rows &) { throw std::bad_alloc(); };
  ASSERT_TRUE(submit(std::move(bad)));
  auto [request, rows] = makeRequest({4});
  ASSERT_TRUE(submit(std::move(request)));
  EXPECT_TRUE(rows.get());
}

TEST_F(EncodingServiceTest, LeavesWhatNobodyWants) {
  start();
  auto gate = block();
  auto [request, rows] = makeRequest({4});
  request.cancelled = std::make_shared<std::atomic<bool>>(true);
  ASSERT_TRUE(submit(std::move(request)));
  gate->open.set_value();
  EXPECT_EQ(rows.get().error().kind, ErrorKind::Cancelled);
}

TEST_F(EncodingServiceTest, DrainsWhatItHas) {
  start();
  auto gate = block();
  auto [request, rows] = makeRequest({4});
  ASSERT_TRUE(submit(std::move(request)));
  EXPECT_FALSE(service->drainWithin(0.01));
  auto [late, lateRows] = makeRequest({4});
  EXPECT_EQ(submit(std::move(late)).error().kind, ErrorKind::Unavailable);
  gate->open.set_value();
  EXPECT_TRUE(service->drainWithin(60));
  EXPECT_TRUE(rows.get());
}

TEST_F(EncodingServiceTest, LeavesWhatHasWaitedTooLong) {
  start();
  auto gate = block();
  auto [request, rows] = makeRequest({4});
  request.deadline = std::chrono::steady_clock::now();
  ASSERT_TRUE(submit(std::move(request)));
  gate->open.set_value();
  Rows result = rows.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::DeadlineExceeded);
}

TEST_F(EncodingServiceTest, AnswersWhatWaitsWhenItEnds) {
  start();
  auto gate = block();
  auto [request, rows] = makeRequest({4});
  ASSERT_TRUE(submit(std::move(request)));
  std::thread ending([&] { service.reset(); });
  // Nobody can tell when it has begun to end; either answer is one.
  gate->open.set_value();
  ending.join();
  Rows result = rows.get();
  if (!result) {
    EXPECT_EQ(result.error().kind, ErrorKind::Unavailable);
  }
}

TEST_F(EncodingServiceTest, AnswersEachOfManyCallersOnce) {
  start();
  constexpr int callers = 8, textsEach = 200;
  std::atomic<int> answers{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      for (int i = 0; i < textsEach; ++i) {
        const int32_t id = 20 + (caller * 7 + i) % 70;
        const auto count = static_cast<size_t>(1 + i % 9);
        auto [request, rows] = makeRequest(std::vector<int32_t>(count, id));
        request.completion = [&, id, count,
                              inner = std::move(request.completion)](Rows r) {
          ++answers;
          if (!r ||
              (*r)[0] != static_cast<float>(id) * static_cast<float>(count))
            ++wrong;
          inner(std::move(r));
        };
        if (!submit(std::move(request)))
          ++wrong;
        rows.wait();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(answers, callers * textsEach);
  EXPECT_EQ(wrong, 0);
}

} // namespace
