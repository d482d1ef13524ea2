//===- CpuFeatures.cpp - What this CPU and its system offer ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Target/CpuFeatures.h"
#include "Detection.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

using namespace sandwich;

namespace {

/// What LLVM calls a feature, and whose it is.
struct FeatureName {
  CpuFeature feature;
  std::string_view name;
  CpuArchitecture architecture = CpuArchitecture::X86_64;
};

using F = CpuFeature;
using enum CpuArchitecture;

/// In the order of the enumeration.
constexpr std::array<FeatureName, numCpuFeatures> featureNames = {{
    {F::SSE3, "sse3"},
    {F::SSSE3, "ssse3"},
    {F::SSE4_1, "sse4.1"},
    {F::SSE4_2, "sse4.2"},
    {F::POPCNT, "popcnt"},
    {F::CX16, "cx16"},
    {F::SAHF, "sahf"},
    {F::MOVBE, "movbe"},
    {F::LZCNT, "lzcnt"},
    {F::BMI, "bmi"},
    {F::BMI2, "bmi2"},
    {F::AVX, "avx"},
    {F::F16C, "f16c"},
    {F::FMA, "fma"},
    {F::AVX2, "avx2"},
    {F::AVX512F, "avx512f"},
    {F::AVX512CD, "avx512cd"},
    {F::AVX512BW, "avx512bw"},
    {F::AVX512DQ, "avx512dq"},
    {F::AVX512VL, "avx512vl"},
    {F::AVX512IFMA, "avx512ifma"},
    {F::AVX512VBMI, "avx512vbmi"},
    {F::AVX512VBMI2, "avx512vbmi2"},
    {F::AVX512VNNI, "avx512vnni"},
    {F::AVX512BITALG, "avx512bitalg"},
    {F::AVX512VPOPCNTDQ, "avx512vpopcntdq"},
    {F::AVX512BF16, "avx512bf16"},
    {F::AVX512FP16, "avx512fp16"},
    {F::AVXVNNI, "avxvnni"},
    {F::AVXVNNIINT8, "avxvnniint8"},
    {F::AVXVNNIINT16, "avxvnniint16"},
    {F::AVXIFMA, "avxifma"},
    {F::AVXNECONVERT, "avxneconvert"},
    {F::AMX_TILE, "amx-tile"},
    {F::AMX_INT8, "amx-int8"},
    {F::AMX_BF16, "amx-bf16"},
    {F::AMX_FP16, "amx-fp16"},
    {F::AMX_COMPLEX, "amx-complex"},
    {F::ARM_NEON, "neon", AArch64},
    {F::ARM_FULLFP16, "fullfp16", AArch64},
    {F::ARM_DOTPROD, "dotprod", AArch64},
    {F::ARM_I8MM, "i8mm", AArch64},
    {F::ARM_BF16, "bf16", AArch64},
    {F::ARM_SVE, "sve", AArch64},
    {F::ARM_SVE2, "sve2", AArch64},
}};

constexpr bool inOrderOfEnumeration() {
  for (size_t i = 0; i < featureNames.size(); ++i)
    if (static_cast<size_t>(featureNames[i].feature) != i)
      return false;
  return true;
}
static_assert(inOrderOfEnumeration());

} // namespace

std::string_view sandwich::name(CpuArchitecture architecture) {
  switch (architecture) {
  case X86_64:
    return "x86-64";
  case AArch64:
    return "aarch64";
  }
  __builtin_unreachable();
}

CpuArchitecture sandwich::architectureOf(CpuFeature feature) {
  return featureNames[static_cast<size_t>(feature)].architecture;
}

std::string_view sandwich::cpuFeatureName(CpuFeature feature) {
  return featureNames[static_cast<size_t>(feature)].name;
}

std::optional<CpuFeature> sandwich::cpuFeatureNamed(std::string_view name) {
  auto found = std::ranges::find(featureNames, name, &FeatureName::name);
  if (found == featureNames.end())
    return std::nullopt;
  return found->feature;
}

bool CpuFeatures::has(std::string_view name) const {
  std::optional<CpuFeature> feature = cpuFeatureNamed(name);
  return feature && has(*feature);
}

std::vector<std::string_view> CpuFeatures::names() const {
  std::vector<std::string_view> result;
  for (const FeatureName &description : featureNames)
    if (has(description.feature))
      result.push_back(description.name);
  return result;
}

Status sandwich::requestTileState() {
  static const Status answer = detection::askForTileState();
  return answer;
}

const CpuFeatures &CpuFeatures::host() {
  static const CpuFeatures features = detection::features();
  return features;
}

int64_t sandwich::hostScalableVectorBytes() {
  return detection::scalableVectorBytes();
}

const std::string &sandwich::hostCpuModel() {
  static const std::string model = detection::cpuModel();
  return model;
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Fills in the levels that `sizes` lacks.
static void addCachesFromSysfs(CacheSizes &sizes) {
  for (int index = 0; index < 16; ++index) {
    std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::ifstream levelFile(folder + "/level"), typeFile(folder + "/type"),
        sizeFile(folder + "/size");
    int level;
    std::string type;
    uint64_t kibibytes;
    char unit;
    if (!(levelFile >> level) || !(typeFile >> type) ||
        !(sizeFile >> kibibytes >> unit) || unit != 'K')
      continue;
    uint64_t bytes = kibibytes << 10;
    if (level == 1 && type == "Data" && !sizes.level1Data)
      sizes.level1Data = bytes;
    else if (level == 2 && !sizes.level2)
      sizes.level2 = bytes;
    else if (level == 3 && !sizes.level3)
      sizes.level3 = bytes;
  }
}

const CacheSizes &CacheSizes::host() {
  static const CacheSizes sizes = [] {
    CacheSizes result = detection::caches();
    if (!result.level1Data || !result.level2)
      addCachesFromSysfs(result);
    return result;
  }();
  return sizes;
}
