//===- X86.cpp - What an x86-64 CPU and its system offer ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detection.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cerrno>
#include <cpuid.h>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sandwich;

namespace {

enum class Register : uint8_t { EAX, EBX, ECX, EDX };

/// Bits of XCR0: the register state that the operating system saves. An
/// instruction on registers it does not save faults, whatever CPUID tells.
enum RegisterState : uint32_t {
  noState = 0,
  avxState = 0x6,
  avx512State = avxState | 0xe0,
  tileState = 0x60000,
};

/// Where CPUID tells about a feature.
struct FeatureDescription {
  CpuFeature feature;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  uint8_t bit;
  RegisterState state;
};

using enum Register;
using F = CpuFeature;

constexpr FeatureDescription descriptions[] = {
    {F::SSE3, 1, 0, ECX, 0, noState},
    {F::SSSE3, 1, 0, ECX, 9, noState},
    {F::SSE4_1, 1, 0, ECX, 19, noState},
    {F::SSE4_2, 1, 0, ECX, 20, noState},
    {F::POPCNT, 1, 0, ECX, 23, noState},
    {F::CX16, 1, 0, ECX, 13, noState},
    {F::SAHF, 0x80000001, 0, ECX, 0, noState},
    {F::MOVBE, 1, 0, ECX, 22, noState},
    {F::LZCNT, 0x80000001, 0, ECX, 5, noState},
    {F::BMI, 7, 0, EBX, 3, noState},
    {F::BMI2, 7, 0, EBX, 8, noState},
    {F::AVX, 1, 0, ECX, 28, avxState},
    {F::F16C, 1, 0, ECX, 29, avxState},
    {F::FMA, 1, 0, ECX, 12, avxState},
    {F::AVX2, 7, 0, EBX, 5, avxState},
    {F::AVX512F, 7, 0, EBX, 16, avx512State},
    {F::AVX512CD, 7, 0, EBX, 28, avx512State},
    {F::AVX512BW, 7, 0, EBX, 30, avx512State},
    {F::AVX512DQ, 7, 0, EBX, 17, avx512State},
    {F::AVX512VL, 7, 0, EBX, 31, avx512State},
    {F::AVX512IFMA, 7, 0, EBX, 21, avx512State},
    {F::AVX512VBMI, 7, 0, ECX, 1, avx512State},
    {F::AVX512VBMI2, 7, 0, ECX, 6, avx512State},
    {F::AVX512VNNI, 7, 0, ECX, 11, avx512State},
    {F::AVX512BITALG, 7, 0, ECX, 12, avx512State},
    {F::AVX512VPOPCNTDQ, 7, 0, ECX, 14, avx512State},
    {F::AVX512BF16, 7, 1, EAX, 5, avx512State},
    {F::AVX512FP16, 7, 0, EDX, 23, avx512State},
    {F::AVXVNNI, 7, 1, EAX, 4, avxState},
    {F::AVXVNNIINT8, 7, 1, EDX, 4, avxState},
    {F::AVXVNNIINT16, 7, 1, EDX, 10, avxState},
    {F::AVXIFMA, 7, 1, EAX, 23, avxState},
    {F::AVXNECONVERT, 7, 1, EDX, 5, avxState},
    {F::AMX_TILE, 7, 0, EDX, 24, tileState},
    {F::AMX_INT8, 7, 0, EDX, 25, tileState},
    {F::AMX_BF16, 7, 0, EDX, 22, tileState},
    {F::AMX_FP16, 7, 1, EAX, 21, tileState},
    {F::AMX_COMPLEX, 7, 1, EDX, 8, tileState},
};

/// EAX, EBX, ECX, EDX of a CPUID leaf; all zero if the CPU has no such leaf.
std::array<uint32_t, 4> queryCpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> registers = {};
  if (!__get_cpuid_count(leaf, subleaf, &registers[0], &registers[1],
                         &registers[2], &registers[3]))
    return {};
  // Leaf 7 tells its highest subleaf; above it the registers are undefined.
  if (leaf == 7 && subleaf > 0 && subleaf > queryCpuid(7, 0)[0])
    return {};
  return registers;
}

uint32_t savedRegisterState() {
  constexpr uint32_t osxsave = 1u << 27;
  if (!(queryCpuid(1, 0)[2] & osxsave))
    return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool cpuOffers(const FeatureDescription &description) {
  auto registers = queryCpuid(description.leaf, description.subleaf);
  return registers[static_cast<size_t>(description.reg)] >> description.bit & 1;
}

/// The caches that `leaf`, which has the layout of leaf 4, enumerates.
CacheSizes cachesFromCpuid(uint32_t leaf) {
  CacheSizes sizes;
  constexpr uint32_t maxCaches = 16;
  for (uint32_t index = 0; index < maxCaches; ++index) {
    auto [eax, ebx, ecx, edx] = queryCpuid(leaf, index);
    uint32_t type = eax & 0x1f, level = eax >> 5 & 7;
    if (type == 0)
      break;
    uint64_t bytes = (uint64_t(ebx >> 22) + 1) * ((ebx >> 12 & 0x3ff) + 1) *
                     ((ebx & 0xfff) + 1) * (uint64_t(ecx) + 1);
    constexpr uint32_t data = 1, unified = 3;
    if (level == 1 && type == data)
      sizes.level1Data = bytes;
    else if (level == 2 && type == unified)
      sizes.level2 = bytes;
    else if (level == 3 && type == unified)
      sizes.level3 = bytes;
  }
  return sizes;
}

} // namespace

Status detection::askForTileState() {
  if (!cpuOffers(*std::ranges::find(descriptions, F::AMX_TILE,
                                    &FeatureDescription::feature)))
    return makeError("this CPU has no AMX tile registers");
  if ((savedRegisterState() & tileState) != tileState)
    return makeError("the operating system does not save AMX tile registers");
  constexpr long requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long tileData = 18;              // XFEATURE_XTILEDATA
  if (::syscall(SYS_arch_prctl, requestPermission, tileData) != 0)
    return makeError("the kernel does not permit AMX tile registers: ",
                     std::strerror(errno));
  return {};
}

CpuFeatures detection::features() {
  CpuFeatures result;
  uint32_t saved = savedRegisterState();
  for (const FeatureDescription &description : descriptions) {
    if (!cpuOffers(description) ||
        (saved & description.state) != description.state)
      continue;
    if (description.state == tileState && !requestTileState())
      continue;
    result.insert(description.feature);
  }
  return result;
}

int64_t detection::scalableVectorBytes() { return 0; }

CacheSizes detection::caches() {
  // AMD leaves leaf 4 empty and has the same layout elsewhere.
  CacheSizes sizes = cachesFromCpuid(4);
  constexpr uint32_t topologyExtensions = 1u << 22;
  if (!sizes.level1Data && queryCpuid(0x80000001, 0)[2] & topologyExtensions)
    sizes = cachesFromCpuid(0x8000001d);
  return sizes;
}

std::string detection::cpuModel() {
  constexpr uint32_t firstLeaf = 0x80000002, lastLeaf = 0x80000004;
  std::string text;
  for (uint32_t leaf = firstLeaf; leaf <= lastLeaf; ++leaf)
    for (uint32_t characters : queryCpuid(leaf, 0))
      for (int shift = 0; shift < 32; shift += 8)
        if (char c = static_cast<char>(characters >> shift); c >= ' ')
          text += c;
  size_t first = text.find_first_not_of(' ');
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

#endif
