//===- CpuFeatures.h - What this CPU and its system offer -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Instruction-set extensions and cache sizes of the host, from CPUID or the
/// kernel's auxiliary vector, and what the operating system enabled; never from
/// the CPU's model name. Needs no LLVM, so that the runtime can refuse code
/// this machine cannot run.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TARGET_CPUFEATURES_H
#define SANDWICH_TARGET_CPUFEATURES_H

#include "sandwich/Support/Result.h"

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// What machine code is for.
enum class CpuArchitecture : uint8_t { X86_64, AArch64 };

/// The architecture this program was compiled for.
#if defined(__aarch64__)
inline constexpr CpuArchitecture hostArchitecture = CpuArchitecture::AArch64;
#elif defined(__x86_64__)
inline constexpr CpuArchitecture hostArchitecture = CpuArchitecture::X86_64;
#else
#error "Sandwich runs on x86-64 and on aarch64"
#endif

/// "x86-64" or "aarch64", as names of targets begin.
std::string_view name(CpuArchitecture architecture);

/// An instruction-set extension that generated code may need.
enum class CpuFeature : uint8_t {
  SSE3,
  SSSE3,
  SSE4_1,
  SSE4_2,
  POPCNT,
  CX16,
  SAHF,
  MOVBE,
  LZCNT,
  BMI,
  BMI2,
  AVX,
  F16C,
  FMA,
  AVX2,
  AVX512F,
  AVX512CD,
  AVX512BW,
  AVX512DQ,
  AVX512VL,
  AVX512IFMA,
  AVX512VBMI,
  AVX512VBMI2,
  AVX512VNNI,
  AVX512BITALG,
  AVX512VPOPCNTDQ,
  AVX512BF16,
  AVX512FP16,
  AVXVNNI,
  AVXVNNIINT8,
  AVXVNNIINT16,
  AVXIFMA,
  AVXNECONVERT,
  AMX_TILE,
  AMX_INT8,
  AMX_BF16,
  AMX_FP16,
  AMX_COMPLEX,
  /// AdvSIMD, which every Linux on aarch64 has.
  ARM_NEON,
  /// Arithmetic on f16.
  ARM_FULLFP16,
  /// sdot and udot.
  ARM_DOTPROD,
  /// smmla and usmmla.
  ARM_I8MM,
  /// bfmmla and bfdot.
  ARM_BF16,
  ARM_SVE,
  ARM_SVE2,
};

inline constexpr size_t numCpuFeatures =
    static_cast<size_t>(CpuFeature::ARM_SVE2) + 1;

/// The CPUs that may have `feature`.
CpuArchitecture architectureOf(CpuFeature feature);

/// The name LLVM gives `feature`: "sse4.2", "avx512bf16", "amx-tile".
std::string_view cpuFeatureName(CpuFeature feature);

/// The feature LLVM calls `name`, or nothing if none here is called so.
std::optional<CpuFeature> cpuFeatureNamed(std::string_view name);

/// A set of features.
class CpuFeatures {
public:
  CpuFeatures() = default;
  CpuFeatures(std::initializer_list<CpuFeature> features) {
    for (CpuFeature feature : features)
      insert(feature);
  }

  /// What this machine offers to this process, detected once. An extension
  /// counts only if the operating system saves its registers, and AMX only if
  /// `requestTileState` succeeded.
  static const CpuFeatures &host();

  bool has(CpuFeature feature) const {
    return bits[static_cast<size_t>(feature)];
  }
  /// False also for a name that `cpuFeatureNamed` does not know.
  bool has(std::string_view name) const;
  /// Whether every feature of `needed` is in this set.
  bool hasAll(const CpuFeatures &needed) const {
    return (needed.bits & ~bits).none();
  }
  void insert(CpuFeature feature) { bits.set(static_cast<size_t>(feature)); }
  void remove(CpuFeature feature) { bits.reset(static_cast<size_t>(feature)); }
  bool empty() const { return bits.none(); }

  /// The features in the order of the enumeration, as LLVM names them.
  std::vector<std::string_view> names() const;

  bool operator==(const CpuFeatures &) const = default;

private:
  std::bitset<numCpuFeatures> bits;
};

/// Bytes of a vector of SVE in this process; 0 where there is no SVE.
int64_t hostScalableVectorBytes();

/// What the CPU calls itself, "AMD EPYC 9555 64-Core Processor", or on aarch64
/// its cores, "ARM Neoverse-N1"; empty where it does not tell. For people to
/// read: hypervisors change it at will.
const std::string &hostCpuModel();

/// Asks the kernel to let this process use AMX tile registers; needed before
/// the first tile instruction of any thread. The kernel is asked once, later
/// calls return the same answer. Errors: the CPU has no AMX, the operating
/// system does not save its registers, or the kernel refuses.
Status requestTileState();

/// Capacities in bytes of the caches a core sees; zero for a level that is
/// absent or unknown.
struct CacheSizes {
  uint64_t level1Data = 0;
  /// One instance, private to a core on the CPUs Sandwich targets.
  uint64_t level2 = 0;
  /// One instance, usually shared by several cores.
  uint64_t level3 = 0;

  /// The caches of the first core: from CPUID, or from sysfs where that does
  /// not tell.
  static const CacheSizes &host();
};

} // namespace sandwich

#endif // SANDWICH_TARGET_CPUFEATURES_H
