//===- TargetTest.cpp - What code is compiled for -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Target/Target.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

TEST(Target, NamesWhatLLVMCompilesFor) {
  Target amx = *getTarget("x86-64-amx");
  EXPECT_EQ(amx.triple(), "x86_64-unknown-linux-gnu");
  EXPECT_EQ(amx.baselineCpu(), "x86-64");
  Target neon = *getTarget("aarch64-neon");
  EXPECT_EQ(neon.triple(), "aarch64-unknown-linux-gnu");
  EXPECT_EQ(neon.baselineCpu(), "generic");
  EXPECT_EQ(neon.featureString(), "+neon");
  EXPECT_EQ(getTarget("aarch64-neon-bf16")->featureString(),
            "+neon,+dotprod,+i8mm,+bf16");
  EXPECT_EQ(getTarget("aarch64-neon-i8mm")->featureString(),
            "+neon,+dotprod,+i8mm");
  EXPECT_EQ(getTarget("aarch64-sve")->featureString(), "+neon,+sve");
  EXPECT_EQ(getTarget("aarch64-sve-bf16")->featureString(),
            "+neon,+dotprod,+i8mm,+bf16,+sve");
}

TEST(Target, HasInstructionsOfItsArchitecture) {
  for (const std::string &name : targetNames()) {
    Target target = *getTarget(name);
    for (MatrixISA isa : target.matrixISAs)
      EXPECT_EQ(architectureOf(isa), target.architecture) << name;
    // So that no other machine takes its code.
    EXPECT_FALSE(target.features.empty()) << name;
    for (std::string_view feature : target.features.names())
      EXPECT_EQ(architectureOf(*cpuFeatureNamed(feature)), target.architecture)
          << name;
  }
}

TEST(Target, TheHostRunsItsOwn) {
  Target host = *getTarget("host");
  EXPECT_EQ(host.architecture, hostArchitecture);
  EXPECT_TRUE(CpuFeatures::host().hasAll(host.features));
  EXPECT_TRUE(host.name.starts_with(name(hostArchitecture)));
  for (const std::string &name : targetNames())
    if (Target target = *getTarget(name);
        target.architecture != hostArchitecture) {
      EXPECT_FALSE(CpuFeatures::host().hasAll(target.features)) << name;
    }
}

} // namespace
