//===- DeviceConfigurationTest.cpp - Which queues are set up --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceConfiguration.h"

#include <gtest/gtest.h>

using namespace sandwich;

static const DeviceCandidate npu = {"npu0", DeviceKind::Accelerator, true,
                                    true};
static const DeviceCandidate cpu = {"cpu", DeviceKind::Cpu, true, true};

static DeviceConfiguration configured(std::vector<DeviceCandidate> candidates,
                                      DetectorSettings settings) {
  Result<DeviceConfiguration> found = configureDevices(candidates, settings);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : DeviceConfiguration{};
}

TEST(DeviceConfigurationTest, OneKindHasOneQueueAndNoOverflow) {
  for (const DeviceCandidate &only : {npu, cpu})
    for (bool heterogeneous : {false, true}) {
      const auto found = configured({only}, {.heterogeneous = heterogeneous});
      ASSERT_EQ(found.queues.size(), 1u);
      EXPECT_EQ(found.queues[0].kind, only.kind);
      EXPECT_FALSE(found.heterogeneous);
      EXPECT_EQ(
          found.reasons.back(),
          std::string("there is one kind of device, so there is one "
                      "queue") +
              (heterogeneous ? " and heterogeneous mode is forced off" : ""));
    }
}

TEST(DeviceConfigurationTest, BothKindsWithoutTheOptionUseAccelerators) {
  const auto found = configured({cpu, npu}, {});
  ASSERT_EQ(found.queues.size(), 1u);
  EXPECT_EQ(found.queues[0].kind, DeviceKind::Accelerator);
  EXPECT_FALSE(found.heterogeneous);
}

TEST(DeviceConfigurationTest, BothKindsWithTheOptionHaveTwoQueues) {
  DeviceCandidate second = npu;
  second.name = "npu1";
  const auto found = configured({cpu, npu, second}, {.heterogeneous = true});
  EXPECT_TRUE(found.heterogeneous);
  EXPECT_EQ(found.describe(),
            "queue    accelerator: npu0 npu1, 2 instances\n"
            "queue    cpu: cpu, 1 instance\n"
            "overflow on\n"
            "because  there are both kinds of devices and heterogeneous mode "
            "is on, so what is too much for the accelerator goes to the CPU\n");
}

TEST(DeviceConfigurationTest, WhatIsNotThereOrNotConfiguredIsLeftOut) {
  DeviceCandidate gone = npu;
  gone.present = false;
  DeviceCandidate unused = npu;
  unused.name = "gpu0";
  unused.configured = false;
  const auto found = configured({gone, unused, cpu}, {.heterogeneous = true});
  ASSERT_EQ(found.queues.size(), 1u);
  EXPECT_EQ(found.queues[0].kind, DeviceKind::Cpu);
  EXPECT_EQ(found.reasons[0], "npu0 is configured but not there");
  EXPECT_EQ(found.reasons[1], "gpu0 is there but not configured");
}

TEST(DeviceConfigurationTest, WorkersAreTheSettings) {
  const auto found = configured(
      {npu, cpu},
      {.heterogeneous = true, .acceleratorWorkers = 3, .cpuWorkers = 2});
  EXPECT_EQ(found.queues[0].workers, 3u);
  EXPECT_EQ(found.queues[1].workers, 2u);
  EXPECT_EQ(found.reasons.back(), "the CPU has 2 instances; one for each "
                                  "machine has the lower latency");
}

TEST(DeviceConfigurationTest, ErrorsSayWhatIsWrong) {
  auto messageOf = [](std::vector<DeviceCandidate> candidates,
                      DetectorSettings settings) {
    Result<DeviceConfiguration> found = configureDevices(candidates, settings);
    return found ? "" : found.error().message;
  };
  EXPECT_EQ(messageOf({}, {}), "no device is both there and configured");
  EXPECT_EQ(messageOf({npu, npu}, {}), "two devices are named 'npu0'");
  EXPECT_EQ(messageOf({{}}, {}), "a device has no name");
  EXPECT_EQ(messageOf({cpu}, {.cpuWorkers = 0}),
            "workers of kind cpu are 0; they must be 1 to 64");
  EXPECT_EQ(messageOf(std::vector<DeviceCandidate>(65, cpu), {}),
            "there are 65 devices; at most 64 can be used");
}
