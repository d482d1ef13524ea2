//===- AArch64.cpp - What a 64-bit ARM CPU and its system offer -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detection.h"
#include "sandwich/Target/Target.h"

#include <algorithm>

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

using namespace sandwich;

namespace {

/// Where the kernel tells about a feature: the word of its auxiliary vector,
/// and the bit (Linux, Documentation/arch/arm64/elf_hwcaps.rst). It sets a bit
/// only for what it saves the registers of.
struct FeatureBit {
  CpuFeature feature;
  bool second;
  uint8_t bit;
};

constexpr FeatureBit featureBits[] = {
    {CpuFeature::ARM_NEON, false, 1},     {CpuFeature::ARM_FULLFP16, false, 10},
    {CpuFeature::ARM_DOTPROD, false, 20}, {CpuFeature::ARM_I8MM, true, 13},
    {CpuFeature::ARM_BF16, true, 14},     {CpuFeature::ARM_SVE, false, 22},
    {CpuFeature::ARM_SVE2, true, 1},
};

/// Who made a core, and which, as MIDR_EL1 tells.
struct KnownCore {
  uint8_t implementer;
  uint16_t part;
  std::string_view name;
};

constexpr KnownCore cores[] = {
    {0x41, 0xd08, "ARM Cortex-A72"},  {0x41, 0xd0c, "ARM Neoverse-N1"},
    {0x41, 0xd40, "ARM Neoverse-V1"}, {0x41, 0xd49, "ARM Neoverse-N2"},
    {0x41, 0xd4f, "ARM Neoverse-V2"}, {0x41, 0xd84, "ARM Neoverse-V3"},
    {0x46, 0x001, "Fujitsu A64FX"},   {0x48, 0xd01, "HiSilicon TSV110"},
    {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
};

} // namespace

CpuFeatures detection::featuresOfAArch64(uint64_t hwcap, uint64_t hwcap2) {
  CpuFeatures features;
  for (const FeatureBit &each : featureBits)
    if ((each.second ? hwcap2 : hwcap) >> each.bit & 1)
      features.insert(each.feature);
  return features;
}

std::string detection::coreOfAArch64(uint64_t mainId) {
  const auto implementer = static_cast<uint8_t>(mainId >> 24);
  const auto part = static_cast<uint16_t>(mainId >> 4 & 0xfff);
  const auto found = std::ranges::find_if(cores, [&](const KnownCore &core) {
    return core.implementer == implementer && core.part == part;
  });
  return found == std::ranges::end(cores) ? std::string()
                                          : std::string(found->name);
}

#if defined(__aarch64__)

int64_t detection::scalableVectorBytes() {
  constexpr int lengthMask = 0xffff;
  const int answer = ::prctl(PR_SVE_GET_VL);
  return answer < 0 ? 0 : answer & lengthMask;
}

CpuFeatures detection::features() {
  CpuFeatures features =
      featuresOfAArch64(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  // Micro-kernels go through the longest vectors in whole ones. Other lengths
  // are possible, but no CPU had them so far; emulators do.
  const int64_t length = scalableVectorBytes();
  if (length == 0 || longestScalableVectorBytes % length != 0) {
    features.remove(CpuFeature::ARM_SVE);
    features.remove(CpuFeature::ARM_SVE2);
  }
  return features;
}

// Registers that tell of caches are the kernel's own; it tells in sysfs.
CacheSizes detection::caches() { return {}; }

std::string detection::cpuModel() {
  // The kernel answers where programs read this register.
  constexpr unsigned registersAnswered = 11;
  if (!(getauxval(AT_HWCAP) >> registersAnswered & 1))
    return {};
  uint64_t mainId;
  asm("mrs %0, MIDR_EL1" : "=r"(mainId));
  return coreOfAArch64(mainId);
}

Status detection::askForTileState() {
  return makeError("this CPU has no AMX tile registers");
}

#endif
