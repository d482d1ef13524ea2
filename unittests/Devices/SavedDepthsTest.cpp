//===- SavedDepthsTest.cpp - Depths that were found before ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/SavedDepths.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace sandwich;
using sandwich::test::TemporaryFolder;

static SavedDepths makeSaved() {
  return {.modelChecksum = "c0ffee",
          .sloSeconds = 0.1 + 0.2,
          .devices = {{"npu0", LatencyLine{1.0 / 3, 0.24}, 84},
                      {"cpu", std::nullopt, 0}}};
}

static DepthsSubject makeSubject() {
  return {.modelChecksum = "c0ffee",
          .sloSeconds = 0.1 + 0.2,
          .devices = {"npu0", "cpu"}};
}

TEST(SavedDepthsTest, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.file("depths.json");
  ASSERT_TRUE(makeSaved().write(path));
  const auto read = SavedDepths::read(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, makeSaved());
  EXPECT_EQ(read->reasonToIgnore(makeSubject()), std::nullopt);
  // Nothing is left beside it, and it can be written again.
  ASSERT_TRUE(makeSaved().write(path));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(SavedDepthsTest, AreMadeOfAnEstimate) {
  DepthEstimate estimate;
  estimate.sloSeconds = 2;
  estimate.devices.resize(2);
  estimate.devices[0].name = "gpu";
  estimate.devices[0].fit.emplace().line = {0.5, 0.25};
  estimate.devices[0].depth = 3;
  estimate.devices[1].name = "cpu";
  const SavedDepths saved = SavedDepths::from(estimate, "abc");
  EXPECT_EQ(saved.modelChecksum, "abc");
  EXPECT_EQ(saved.sloSeconds, 2);
  EXPECT_EQ(saved.devices,
            (std::vector<SavedDepth>{{"gpu", LatencyLine{0.5, 0.25}, 3},
                                     {"cpu", std::nullopt, 0}}));
}

TEST(SavedDepthsTest, AreIgnoredForSomethingElse) {
  const auto reason = [](auto change) {
    DepthsSubject subject = makeSubject();
    change(subject);
    return makeSaved().reasonToIgnore(subject).value_or("");
  };
  EXPECT_EQ(reason([](DepthsSubject &it) { it.modelChecksum = "dead"; }),
            "the depths are for the model c0ffee, and this one is dead");
  EXPECT_EQ(reason([](DepthsSubject &it) { it.sloSeconds = 2; }),
            "the depths are for an SLO of 0.3 s, and this one is 2 s");
  EXPECT_EQ(reason([](DepthsSubject &it) { it.devices.pop_back(); }),
            "the depths are for 2 devices, and 1 are there");
  EXPECT_EQ(reason([](DepthsSubject &it) { it.devices[0] = "npu1"; }),
            "device 0 was 'npu0', and is 'npu1'");
}

static std::string refusal(std::string_view json) {
  const auto saved = SavedDepths::parse(json);
  return saved ? "" : saved.error().message;
}

TEST(SavedDepthsTest, ErrorsNameTheFieldAndTheReason) {
  const auto with = [](const std::string &devices) {
    return refusal(R"({"version": 1, "model_checksum": "a", "slo_seconds": 1, )"
                   R"("devices": )" +
                   devices + "}");
  };
  const std::string good =
      R"({"name": "a", "alpha": 1, "beta": 0, "depth": 2})";
  EXPECT_EQ(with("[" + good + "]"), "");
  EXPECT_EQ(refusal("[]"), "the description is no object");
  EXPECT_EQ(refusal("{}"), "version is absent");
  EXPECT_EQ(refusal(R"({"version": 2, "model_checksum": "a", "slo_seconds": 1,
                        "devices": []})"),
            "version is no whole number from 1 to 1");
  EXPECT_EQ(refusal(R"({"version": 1, "model_checksum": "", "slo_seconds": 1,
                        "devices": []})"),
            "model_checksum is no text of 1 to 256 bytes");
  EXPECT_EQ(refusal(R"({"version": 1, "model_checksum": "a", "slo_seconds": 0,
                        "devices": []})"),
            "slo_seconds is no number from 1e-06 to 1e+06");
  EXPECT_EQ(with("[]"), "devices is no list of 1 to 64 devices");
  EXPECT_EQ(with("[1]"), "devices[0] is no object");
  EXPECT_EQ(with("[{}]"), "devices[0].name is absent");
  EXPECT_EQ(with("[" + good + "," + good + "]"),
            "devices[1].name is 'a', as another's");
  EXPECT_EQ(with(R"([{"name": "a", "depth": 1}])"),
            "devices[0].depth is 1, but there is no alpha and no beta");
  EXPECT_EQ(with(R"([{"name": "a", "depth": 1, "alpha": 1}])"),
            "devices[0].beta is absent");
  EXPECT_EQ(with(R"([{"name": "a", "depth": 1, "alpha": -1, "beta": 1}])"),
            "devices[0].alpha is no number from 0 to 1e+06");
  EXPECT_EQ(with(R"([{"name": "a", "depth": -1, "alpha": 1, "beta": 1}])"),
            "devices[0].depth is no whole number from 0 to 1048576");
  EXPECT_EQ(with(R"([{"name": "a", "depth": 0, "Depth": 1}])"),
            "devices[0].Depth is not known");
}

TEST(SavedDepthsTest, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("depths.json", "{}");
  const auto saved = SavedDepths::read(path);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message, path + ": version is absent");
  EXPECT_FALSE(SavedDepths::read(folder.file("absent")));
}

TEST(SavedDepthsTest, WhatCouldNotBeReadIsNotWritten) {
  const TemporaryFolder folder;
  SavedDepths saved = makeSaved();
  saved.devices[0].name = std::string(1000, 'x');
  EXPECT_FALSE(saved.write(folder.file("depths.json")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}
