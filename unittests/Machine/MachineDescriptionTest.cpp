//===- MachineParametersTest.cpp - What a machine's parts can do ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineParameters.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace sandwich;

static std::string errorOf(std::string_view text) {
  Result<Json> json = parseJson(text);
  EXPECT_TRUE(json) << text;
  Result<MachineParameters> parameters = machineParametersFromJson(*json);
  return parameters ? "" : parameters.error().message;
}

TEST(MachineParameters, ComeBackAsTheyWere) {
  MachineParameters parameters = assumedParameters();
  parameters.coreFlopsPerSecond = 72e9;
  parameters.memories[1] = 60e9;
  parameters.latent = {{"cluster", "numa", 4, 2, {12e9, 30e-9}}};
  parameters.wakeupsPerCorePerSecond = 0;
  Result<MachineParameters> again =
      machineParametersFromJson(toJson(parameters));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toJson(*again), toJson(parameters));
  EXPECT_DOUBLE_EQ(again->coreFlopsPerSecond, 72e9);
  EXPECT_DOUBLE_EQ(again->latent[0].parameters.handoffSeconds, 30e-9);
}

TEST(MachineParameters, WhatIsAbsentIsAssumed) {
  Result<MachineParameters> parameters =
      machineParametersFromJson(*parseJson("{\"core_gflops\": 10}"));
  ASSERT_TRUE(parameters);
  EXPECT_DOUBLE_EQ(parameters->coreFlopsPerSecond, 10e9);
  EXPECT_DOUBLE_EQ(parameters->parts.at("numa").bytesPerSecond,
                   assumedParameters().parts.at("numa").bytesPerSecond);
}

TEST(MachineParameters, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("[]"), "the file is no object");
  EXPECT_EQ(errorOf("{\"cores\": 1}"), "cores is not known");
  EXPECT_EQ(errorOf("{\"core_gflops\": 0}"),
            "core_gflops is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"core_gflops\": 1e308}"),
            "core_gflops is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"remote_share\": 1.5}"), "remote_share is more than 1");
  EXPECT_EQ(errorOf("{\"wakeup_ms\": -1}"),
            "wakeup_ms is not a number of 0 to 1e+09");
  EXPECT_EQ(errorOf("{\"parts\": {\"l3\": {\"gbps\": 1}}}"),
            "parts.l3.gbps is not known");
  EXPECT_EQ(errorOf("{\"parts\": {\"l3\": 1}}"), "parts.l3 is no object");
  EXPECT_EQ(errorOf("{\"memory_gb_per_second\": {\"zero\": 1}}"),
            "memory_gb_per_second.zero names no NUMA node");
  EXPECT_EQ(errorOf("{\"memory_gb_per_second\": {\"0\": \"1\"}}"),
            "memory_gb_per_second.0 is not a number of 1e-06 to 1e+09");
  EXPECT_EQ(errorOf("{\"latent\": {}}"), "latent is no list");
  EXPECT_EQ(errorOf("{\"latent\": [{}]}"),
            "latent[0].name is absent or no text");
  EXPECT_EQ(errorOf("{\"latent\": [{\"name\": \"a\", \"inside\": \"numa\"}]}"),
            "latent[0].cores is absent");
  EXPECT_EQ(errorOf("{\"latent\": [{\"name\": \"a\", \"inside\": \"numa\", "
                    "\"cores\": 1}]}"),
            "latent[0].cores is not an integer of 2 to 1048576");
}

TEST(MachineParameters, ErrorsNameTheFile) {
  test::TemporaryFolder folder;
  auto refusal = [&](std::string_view contents) {
    Result<MachineParameters> parameters = readMachineParameters(
        folder.write("machine.json", contents),
        *readMachineTopology("synthetic:numa:2 core:2 pu:1"));
    return parameters ? "" : parameters.error().message;
  };
  std::string path = folder.file("machine.json");
  EXPECT_EQ(refusal("{\"core_gflops\": 0}"),
            path + ": core_gflops is not a number of 1e-06 to 1e+09");
  // Names that mean nothing on the machine, with those that would.
  EXPECT_EQ(refusal("{\"parts\": {\"L3\": {\"handoff_ns\": 1}}}"),
            path + ": parts.L3: the machine has no part 'L3', but machine, "
                   "numa, core, cpu");
  EXPECT_EQ(refusal("{\"memory_gb_per_second\": {\"1\": 5, \"2\": 5}}"),
            path + ": memory_gb_per_second.2: the machine has no NUMA node "
                   "'2', but 0, 1");
  EXPECT_EQ(refusal("{\"latent\": [{\"name\": \"a\", \"inside\": \"die\", "
                    "\"cores\": 2}]}"),
            path + ": latent[0].inside: the machine has no part 'die', but "
                   "machine, numa, core, cpu");
  EXPECT_EQ(refusal("{\"parts\": {\"numa\": {\"handoff_ns\": 1}}}"), "");
  EXPECT_EQ(refusal("{").substr(0, path.size() + 2), path + ": ");
}
