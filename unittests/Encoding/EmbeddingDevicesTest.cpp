//===- EmbeddingDevicesTest.cpp - The CPU beside other devices ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/EmbeddingDevices.h"
#include "TemporaryFolder.h"
#include "WriteSumModel.h"

#include <gtest/gtest.h>

#include <future>

using namespace sandwich;
using namespace sandwich::test;

namespace {

class EmbeddingDevicesTest : public testing::Test {
protected:
  void SetUp() override {
    const std::string path = folder.path() + "/sum.sandwich";
    ASSERT_TRUE(writeSumModel(path));
    Result<Artifact> artifact = Artifact::open(path, {.use = ModelUse::Encode});
    ASSERT_TRUE(artifact);
    auto engine = EncoderEngine::create(*std::move(artifact), {});
    ASSERT_TRUE(engine) << engine.error().message;
    service = *EncodingService::create(*std::move(engine));
  }

  Result<std::unique_ptr<EmbeddingDevices>>
  create(const std::string &json, EmbeddingDevicesOptions options = {}) {
    SANDWICH_ASSIGN_OR_RETURN(options.description,
                              DevicesDescription::parse(json));
    options.modelChecksum = "sum";
    return EmbeddingDevices::create(*service, options);
  }

  static QueryOutcome ask(EmbeddingDevices &devices, std::vector<int32_t> ids) {
    auto promise = std::make_shared<std::promise<QueryOutcome>>();
    devices.dispatcher().submit({.tokens = std::move(ids)},
                                [promise](QueryOutcome outcome) {
                                  promise->set_value(std::move(outcome));
                                });
    return promise->get_future().get();
  }

  TemporaryFolder folder;
  std::unique_ptr<EncodingService> service;
};

constexpr char cpuAlone[] =
    R"({"devices": [{"name": "cpu", "type": "cpu", "depth": 4}]})";

TEST_F(EmbeddingDevicesTest, ComputesOnTheCpu) {
  auto devices = create(cpuAlone);
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_FALSE((*devices)->configuration().heterogeneous);
  QueryOutcome outcome = ask(**devices, {4, 5});
  ASSERT_FALSE(outcome.refusal) << outcome.refusal->message;
  EXPECT_EQ(outcome.embedding, (Embedding{9, 2, 0, 1}));
}

TEST_F(EmbeddingDevicesTest, TellsWhatTheCpuRefuses) {
  auto devices = create(cpuAlone);
  ASSERT_TRUE(devices);
  EXPECT_EQ(ask(**devices, {100}).refusal->kind, ErrorKind::InvalidArgument);
  EXPECT_TRUE(ask(**devices, std::vector<int32_t>(33, 1)).refusal.has_value());
  // It goes on.
  EXPECT_FALSE(ask(**devices, {4}).refusal);
}

TEST_F(EmbeddingDevicesTest, OverflowsToTheCpu) {
  auto devices = create(R"({"heterogeneous": true, "devices": [
      {"name": "cpu", "type": "cpu", "depth": 4},
      {"name": "npu", "type": "simulated", "alpha": 0.2, "beta": 0.2,
       "depth": 1}]})");
  ASSERT_TRUE(devices) << devices.error().message;
  std::vector<std::future<QueryOutcome>> outcomes;
  for (int i = 0; i < 4; ++i) {
    auto promise = std::make_shared<std::promise<QueryOutcome>>();
    outcomes.push_back(promise->get_future());
    (*devices)->dispatcher().submit({.tokens = {4, 5}},
                                    [promise](QueryOutcome outcome) {
                                      promise->set_value(std::move(outcome));
                                    });
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const QueryOutcome outcome = outcomes[i].get();
    ASSERT_FALSE(outcome.refusal) << outcome.refusal->message;
    EXPECT_EQ(outcome.device, i == 0 ? 0U : 1U);
  }
  const DispatcherCounters counters = (*devices)->dispatcher().counters();
  ASSERT_EQ(counters.devices.size(), 2U);
  EXPECT_EQ(counters.devices[0].name, "npu");
  EXPECT_EQ(counters.devices[0].overflowed, 3U);
}

TEST_F(EmbeddingDevicesTest, MeasuresDepthsOnce) {
  const std::string file = folder.path() + "/depths.json";
  std::vector<std::string> lines;
  EmbeddingDevicesOptions options;
  options.depthsFile = file;
  options.log = [&](LogLevel, const std::string &line) {
    lines.push_back(line);
  };
  const std::string json = R"({"slo_seconds": 0.5, "devices": [
      {"name": "npu", "type": "simulated", "alpha": 0.04, "beta": 0.1}]})";
  auto countMeasured = [&] {
    return std::ranges::count_if(lines, [](const std::string &line) {
      return line.starts_with("measuring");
    });
  };
  ASSERT_TRUE(create(json, options));
  EXPECT_EQ(countMeasured(), 1);
  Result<SavedDepths> saved = SavedDepths::read(file);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_GE(saved->devices.at(0).depth, 1U);
  EXPECT_LE(saved->devices.at(0).depth, 10U);
  ASSERT_TRUE(create(json, options));
  EXPECT_EQ(countMeasured(), 1);
}

TEST_F(EmbeddingDevicesTest, SaysWhatIsWrong) {
  EXPECT_EQ(create(R"({"devices": [{"name": "r", "type": "remote",
                      "url": "http://localhost/api"}]})")
                .error()
                .message,
            "device 'r': url is http://localhost/api; it must end with "
            "/v1/embeddings or /embed");
  EXPECT_EQ(create(R"({"devices": [{"name": "r", "type": "remote",
                      "url": "http://localhost/embed",
                      "key_variable": "SANDWICH_TEST_NO_KEY"}]})")
                .error()
                .message,
            "device 'r': key_variable is SANDWICH_TEST_NO_KEY, and there is no "
            "such environment variable");
  // A single query takes too long (equation 11).
  EXPECT_NE(create(R"({"slo_seconds": 0.05, "devices": [
      {"name": "npu", "type": "simulated", "alpha": 0.1, "beta": 0.1}]})")
                .error()
                .message.find("no device answers a query within 0.05 s"),
            std::string::npos);
}

} // namespace
