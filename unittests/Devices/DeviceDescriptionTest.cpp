//===- DeviceDescriptionTest.cpp - Files of devices -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DeviceDescription.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

std::string errorOf(std::string_view json) {
  const Result<DevicesDescription> description =
      DevicesDescription::parse(json);
  return description ? "" : description.error().message;
}

TEST(DeviceDescription, ReadsAllTypes) {
  const Result<DevicesDescription> description = DevicesDescription::parse(R"({
    "heterogeneous": true, "slo_seconds": 2, "query_tokens": 128, "devices": [
      {"name": "gpu", "type": "remote", "url": "http://a/v1/embeddings",
       "model": "bge", "key_variable": "KEY", "depth": 44},
      {"name": "sim", "type": "simulated", "kind": "cpu", "alpha": 0.01,
       "beta": 0.2, "noise": 0.05},
      {"name": "cpu", "type": "cpu"}]})");
  ASSERT_TRUE(description) << description.error().message;
  EXPECT_TRUE(description->heterogeneous);
  EXPECT_EQ(description->sloSeconds, 2);
  EXPECT_EQ(description->queryTokens, 128U);
  ASSERT_EQ(description->devices.size(), 3U);
  const DeviceDescription &gpu = description->devices[0];
  EXPECT_EQ(gpu.type, DeviceType::Remote);
  EXPECT_EQ(gpu.kind, DeviceKind::Accelerator);
  EXPECT_EQ(gpu.url, "http://a/v1/embeddings");
  EXPECT_EQ(gpu.model, "bge");
  EXPECT_EQ(gpu.keyVariable, "KEY");
  EXPECT_EQ(gpu.depth, 44U);
  const DeviceDescription &simulated = description->devices[1];
  EXPECT_EQ(simulated.kind, DeviceKind::Cpu);
  EXPECT_EQ(simulated.simulated.line, (LatencyLine{0.01, 0.2}));
  EXPECT_EQ(simulated.simulated.noise, 0.05);
  EXPECT_EQ(simulated.simulated.name, "sim");
  EXPECT_FALSE(simulated.depth);
  EXPECT_EQ(description->devices[2].type, DeviceType::Cpu);
  EXPECT_EQ(description->devices[2].kind, DeviceKind::Cpu);
}

TEST(DeviceDescription, HasDefaults) {
  const auto description = DevicesDescription::parse(
      R"({"devices": [{"name": "c", "type": "cpu"}]})");
  ASSERT_TRUE(description);
  EXPECT_FALSE(description->heterogeneous);
  EXPECT_EQ(description->sloSeconds, 1);
  EXPECT_EQ(description->queryTokens, 75U);
}

TEST(DeviceDescription, RefusesWhatIsWrong) {
  EXPECT_NE(errorOf("[]"), "");
  EXPECT_NE(errorOf("{}").find("devices"), std::string::npos);
  EXPECT_EQ(errorOf(R"({"devices": []})"),
            "devices must be a list of 1 to 64 devices");
  EXPECT_EQ(errorOf(R"({"heterogeneous": 1, "devices": []})"),
            "heterogeneous must be true or false");
  EXPECT_EQ(errorOf(R"({"devices": [{"name": "x", "type": "tpu"}]})"),
            "devices[0].type is \"tpu\"; it must be \"cpu\", \"remote\" or "
            "\"simulated\"");
  EXPECT_EQ(
      errorOf(R"({"devices": [{"name": "x", "type": "cpu", "kind": "npu"}]})"),
      "devices[0].kind is \"npu\"; it must be \"accelerator\" or \"cpu\"");
  EXPECT_EQ(errorOf(R"({"devices": [{"name": "x", "type": "cpu"},
                                    {"name": "y", "type": "cpu"}]})"),
            "devices[1].type is \"cpu\", as is that of another device");
  EXPECT_EQ(errorOf(R"({"devices": [
      {"name": "x", "type": "cpu"},
      {"name": "x", "type": "remote", "url": "http://a/embed"}]})"),
            "devices[1].name is \"x\", as is that of another device");
  for (const char *field :
       {R"("depth": 0)", R"("depth": 1.5)", R"("url": "http://a/embed")",
        R"("alpha": 1)", R"("name": "")", R"("unknown": 1)"})
    EXPECT_NE(errorOf(R"({"devices": [{"name": "x", "type": "cpu", )" +
                      std::string(field) + "}]}"),
              "")
        << field;
  EXPECT_NE(
      errorOf(R"({"devices": [{"name": "x", "type": "remote"}]})").find("url"),
      std::string::npos);
  EXPECT_NE(errorOf(R"({"devices": [{"name": "x", "type": "simulated"}]})")
                .find("alpha"),
            std::string::npos);
}

} // namespace
