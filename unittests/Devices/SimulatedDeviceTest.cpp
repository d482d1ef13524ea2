//===- SimulatedDeviceTest.cpp - Devices made of numbers ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/SimulatedDevice.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;

TEST(SimulatedDeviceTest, TakesItsLineWithoutNoise) {
  SimulatedDeviceModel model;
  model.line = {0.01, 0.2};
  SimulatedDevice device(model, 1);
  const SimulatedBatch batch = device.run(10);
  EXPECT_EQ(batch.end, BatchEnd::Done);
  EXPECT_DOUBLE_EQ(batch.seconds, 0.3);
}

TEST(SimulatedDeviceTest, FaultsHaveTheirShares) {
  SimulatedDeviceModel model;
  model.line = {0.01, 0.2};
  model.slowProbability = 0.1;
  model.slowFactor = 10;
  model.failureProbability = 0.2;
  model.hangProbability = 0.05;
  SimulatedDevice device(model, 1), again(model, 1);
  int slow = 0, failed = 0, hung = 0;
  constexpr int batches = 20000;
  for (int i = 0; i < batches; ++i) {
    const SimulatedBatch batch = device.run(10), same = again.run(10);
    EXPECT_EQ(batch.end, same.end);
    EXPECT_EQ(batch.seconds, same.seconds);
    slow += batch.seconds > 1;
    failed += batch.end == BatchEnd::Failed;
    hung += batch.end == BatchEnd::Hung;
  }
  EXPECT_NEAR(slow, 0.1 * batches, 200);
  EXPECT_NEAR(failed, 0.2 * batches, 250);
  EXPECT_NEAR(hung, 0.05 * batches, 150);
}

TEST(SimulatedDeviceTest, NoiseIsAShare) {
  SimulatedDeviceModel model;
  model.line = {0.01, 0.2};
  model.noise = 0.05;
  SimulatedDevice device(model, 1);
  double sum = 0, squares = 0;
  constexpr int batches = 20000;
  for (int i = 0; i < batches; ++i) {
    const double logarithm = std::log(device.run(10).seconds / 0.3);
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  EXPECT_NEAR(sum / batches, 0, 0.002);
  EXPECT_NEAR(std::sqrt(squares / batches), 0.05, 0.002);
}

TEST(SimulatedDeviceTest, AreReadFromJson) {
  const auto devices = parseSimulatedDevices(R"({"devices": [
      {"name": "npu", "kind": "accelerator", "alpha": 0.009, "beta": 0.24,
       "noise": 0.01, "slow_probability": 0.1, "slow_factor": 3,
       "failure_probability": 0.2, "hang_probability": 0.3},
      {"name": "cpu", "kind": "cpu", "alpha": 0.07, "beta": 0.85}]})");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].line, (LatencyLine{0.009, 0.24}));
  EXPECT_EQ((*devices)[0].slowFactor, 3);
  EXPECT_EQ((*devices)[0].hangProbability, 0.3);
  EXPECT_EQ((*devices)[1].kind, DeviceKind::Cpu);
  EXPECT_EQ((*devices)[1].noise, 0);
}

TEST(SimulatedDeviceTest, ErrorsNameTheField) {
  auto messageOf = [](const std::string &device) {
    const auto found = parseSimulatedDevices("{\"devices\": [" + device + "]}");
    return found ? "" : found.error().message;
  };
  const std::string good =
      R"("name": "a", "kind": "cpu", "alpha": 0.1, "beta": 0.2)";
  EXPECT_EQ(messageOf("{" + good + "}"), "");
  EXPECT_EQ(messageOf("3"), "devices[0] is no object");
  EXPECT_EQ(messageOf("{}"), "devices[0].name is absent");
  EXPECT_EQ(messageOf(R"({"name": "a", "kind": "tpu"})"),
            "devices[0].kind is 'tpu'; it must be accelerator or cpu");
  EXPECT_EQ(messageOf(R"({"name": "a", "kind": "cpu", "alpha": 1})"),
            "devices[0].beta is absent");
  EXPECT_EQ(
      messageOf(R"({"name": "a", "kind": "cpu", "alpha": -1, "beta": 0})"),
      "devices[0].alpha is no number from 0 to 1e+06");
  EXPECT_EQ(messageOf(R"({"name": "a", "kind": "cpu", "alpha": 0, "beta": 0})"),
            "devices[0].alpha and devices[0].beta are both 0: no query takes "
            "no time");
  EXPECT_EQ(messageOf("{" + good + R"(, "gamma": 1})"),
            "devices[0].gamma is not known");
  EXPECT_EQ(messageOf("{" + good + R"(, "noise": "1"})"),
            "devices[0].noise is no number from 0 to 1");
  EXPECT_EQ(messageOf("{" + good +
                      R"(, "slow_probability": 0.6, "hang_probability": 0.6})"),
            "devices[0] has probabilities of more than 1 together");
  EXPECT_EQ(messageOf("{" + good + "}, {" + good + "}"),
            "devices[1].name is 'a', as another's");
  for (const char *wrong :
       {"", "[]", "{}", R"({"devices": []})", R"({"devices": {}})",
        R"({"devices": [{}], "x": 1})"})
    EXPECT_FALSE(parseSimulatedDevices(wrong)) << wrong;
  const auto missing = readSimulatedDevices("/nonexistent.json");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent.json"),
            std::string::npos);
}
