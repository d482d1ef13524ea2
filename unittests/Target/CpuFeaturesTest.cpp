//===- CpuFeaturesTest.cpp - What this CPU and its system offer -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Target/CpuFeatures.h"

#include "../../lib/Target/Detection.h"

#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {

TEST(CpuFeatures, EveryFeatureIsFoundByItsName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < numCpuFeatures; ++i) {
    auto feature = static_cast<CpuFeature>(i);
    EXPECT_EQ(cpuFeatureNamed(cpuFeatureName(feature)), feature);
    EXPECT_TRUE(names.insert(cpuFeatureName(feature)).second);
  }
  EXPECT_EQ(cpuFeatureNamed("avx512_bf16"), std::nullopt);
  EXPECT_EQ(cpuFeatureNamed(""), std::nullopt);
}

TEST(CpuFeatures, NamesAreThoseOfLLVM) {
  EXPECT_EQ(cpuFeatureName(CpuFeature::SSE4_2), "sse4.2");
  EXPECT_EQ(cpuFeatureName(CpuFeature::AVX512BF16), "avx512bf16");
  EXPECT_EQ(cpuFeatureName(CpuFeature::AMX_TILE), "amx-tile");
}

TEST(CpuFeatures, BehavesAsASet) {
  CpuFeatures some = {CpuFeature::AVX2, CpuFeature::FMA};
  EXPECT_TRUE(some.has(CpuFeature::AVX2));
  EXPECT_TRUE(some.has("fma"));
  EXPECT_FALSE(some.has("avx512f"));
  EXPECT_FALSE(some.has("no-such-feature"));
  EXPECT_TRUE(some.hasAll({CpuFeature::FMA}));
  EXPECT_FALSE(CpuFeatures({CpuFeature::FMA}).hasAll(some));
  EXPECT_EQ(some.names(), (std::vector<std::string_view>{"fma", "avx2"}));
  some.remove(CpuFeature::AVX2);
  EXPECT_EQ(some, CpuFeatures{CpuFeature::FMA});
}

TEST(CpuFeatures, HostIsConsistent) {
  const CpuFeatures &host = CpuFeatures::host();
  EXPECT_TRUE(!host.has(CpuFeature::AVX2) || host.has(CpuFeature::AVX));
  EXPECT_TRUE(!host.has(CpuFeature::AVX512BF16) ||
              host.hasAll({CpuFeature::AVX512F, CpuFeature::AVX512BW}));
  // AMX is only reported when the kernel lets this process use it.
  EXPECT_EQ(host.has(CpuFeature::AMX_TILE), bool(requestTileState()));
  EXPECT_EQ(bool(requestTileState()), bool(requestTileState()));
}

TEST(CpuFeatures, AreOfOneArchitecture) {
  EXPECT_EQ(architectureOf(CpuFeature::AMX_COMPLEX), CpuArchitecture::X86_64);
  EXPECT_EQ(architectureOf(CpuFeature::ARM_NEON), CpuArchitecture::AArch64);
  for (std::string_view name : CpuFeatures::host().names())
    EXPECT_EQ(architectureOf(*cpuFeatureNamed(name)), hostArchitecture) << name;
}

TEST(CpuFeatures, LinuxOnARMTellsInWords) {
  using detection::featuresOfAArch64;
  using enum CpuFeature;
  EXPECT_EQ(featuresOfAArch64(0, 0), CpuFeatures());
  // As a Neoverse N1 has it.
  EXPECT_EQ(featuresOfAArch64(0x10119fff, 0),
            (CpuFeatures{ARM_NEON, ARM_FULLFP16, ARM_DOTPROD}));
  CpuFeatures all = featuresOfAArch64(~uint64_t{0}, ~uint64_t{0});
  EXPECT_TRUE(all.hasAll({ARM_NEON, ARM_I8MM, ARM_BF16, ARM_SVE, ARM_SVE2}));
  EXPECT_EQ(featuresOfAArch64(1 << 1, 1 << 14),
            (CpuFeatures{ARM_NEON, ARM_BF16}));
}

TEST(CpuFeatures, CoresOfARMHaveNames) {
  EXPECT_EQ(detection::coreOfAArch64(0x413fd0c1), "ARM Neoverse-N1");
  EXPECT_EQ(detection::coreOfAArch64(0x481fd010), "HiSilicon TSV110");
  EXPECT_EQ(detection::coreOfAArch64(0), "");
}

/// The kernel's own list must agree, but for AMX, where the permission counts.
TEST(CpuFeatures, HostAgreesWithTheKernel) {
  if (hostArchitecture != CpuArchitecture::X86_64)
    GTEST_SKIP() << "flags are those of x86";
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;)
        flags.insert(word);
      break;
    }
  if (flags.empty())
    GTEST_SKIP() << "/proc/cpuinfo has no flags of x86";
  const std::pair<CpuFeature, const char *> kernelNames[] = {
      {CpuFeature::SSE3, "pni"},
      {CpuFeature::SSSE3, "ssse3"},
      {CpuFeature::SSE4_1, "sse4_1"},
      {CpuFeature::SSE4_2, "sse4_2"},
      {CpuFeature::POPCNT, "popcnt"},
      {CpuFeature::CX16, "cx16"},
      {CpuFeature::SAHF, "lahf_lm"},
      {CpuFeature::MOVBE, "movbe"},
      {CpuFeature::LZCNT, "abm"},
      {CpuFeature::BMI, "bmi1"},
      {CpuFeature::BMI2, "bmi2"},
      {CpuFeature::AVX, "avx"},
      {CpuFeature::F16C, "f16c"},
      {CpuFeature::FMA, "fma"},
      {CpuFeature::AVX2, "avx2"},
      {CpuFeature::AVX512F, "avx512f"},
      {CpuFeature::AVX512CD, "avx512cd"},
      {CpuFeature::AVX512BW, "avx512bw"},
      {CpuFeature::AVX512DQ, "avx512dq"},
      {CpuFeature::AVX512VL, "avx512vl"},
      {CpuFeature::AVX512IFMA, "avx512ifma"},
      {CpuFeature::AVX512VBMI, "avx512vbmi"},
      {CpuFeature::AVX512VBMI2, "avx512_vbmi2"},
      {CpuFeature::AVX512VNNI, "avx512_vnni"},
      {CpuFeature::AVX512BITALG, "avx512_bitalg"},
      {CpuFeature::AVX512VPOPCNTDQ, "avx512_vpopcntdq"},
      {CpuFeature::AVX512BF16, "avx512_bf16"},
      {CpuFeature::AVX512FP16, "avx512_fp16"},
      {CpuFeature::AVXVNNI, "avx_vnni"},
  };
  for (auto [feature, name] : kernelNames)
    EXPECT_EQ(CpuFeatures::host().has(feature), flags.contains(name)) << name;
}

#if defined(__x86_64__)
TEST(CpuFeatures, TheModelIsWhatTheKernelTells) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  const std::string field = "model name\t: ";
  while (std::getline(file, line))
    if (line.starts_with(field)) {
      EXPECT_EQ(hostCpuModel(), line.substr(field.size()));
      return;
    }
  GTEST_SKIP() << "the kernel tells no model";
}

TEST(CacheSizes, HostHasPlausibleCaches) {
  const CacheSizes &caches = CacheSizes::host();
  EXPECT_GE(caches.level1Data, 8u << 10);
  EXPECT_LE(caches.level1Data, 1u << 20);
  EXPECT_GT(caches.level2, caches.level1Data);
}
#endif

} // namespace
