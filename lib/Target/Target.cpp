//===- Target.cpp - What code is compiled for -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Target/Target.h"

#include <algorithm>
#include <array>

using namespace sandwich;

namespace {

struct NamedISA {
  MatrixISA isa;
  std::string_view name;
  RegisterFile registers;
};

// In the order of MatrixISA. A tile holds 16 rows of 64 bytes.
constexpr NamedISA namedISAs[] = {
    {MatrixISA::X86_AVX2_F32, "X86_AVX2_F32", {16, 1, 8}},
    {MatrixISA::X86_AVX512_F32, "X86_AVX512_F32", {32, 1, 16}},
    {MatrixISA::X86_AVX512_BF16, "X86_AVX512_BF16", {32, 1, 16}},
    {MatrixISA::X86_AMX_BF16, "X86_AMX_BF16", {8, 16, 16}},
    {MatrixISA::ARM_NEON_F32, "ARM_NEON_F32", {32, 1, 4}},
    {MatrixISA::ARM_NEON_BF16, "ARM_NEON_BF16", {32, 2, 2}},
};

struct NamedTarget {
  std::string_view name;
  CpuArchitecture architecture;
  MatrixISA isa;
  /// Beyond those of the target of the architecture before it.
  std::vector<CpuFeature> features;
};

/// Worst first; each has everything of those of its architecture before it.
const std::vector<NamedTarget> &namedTargets() {
  using enum CpuFeature;
  using enum CpuArchitecture;
  static const std::vector<NamedTarget> targets = {
      {"x86-64-avx2",
       X86_64,
       MatrixISA::X86_AVX2_F32,
       {SSE3, SSSE3, SSE4_1, SSE4_2, POPCNT, CX16, MOVBE, LZCNT, BMI, BMI2, AVX,
        F16C, FMA, AVX2}},
      {"x86-64-avx512",
       X86_64,
       MatrixISA::X86_AVX512_F32,
       {AVX512F, AVX512CD, AVX512BW, AVX512DQ, AVX512VL}},
      {"x86-64-avx512-bf16",
       X86_64,
       MatrixISA::X86_AVX512_BF16,
       {AVX512VNNI, AVX512BF16}},
      {"x86-64-amx", X86_64, MatrixISA::X86_AMX_BF16, {AMX_TILE, AMX_BF16}},
      {"aarch64-neon", AArch64, MatrixISA::ARM_NEON_F32, {ARM_NEON}},
      {"aarch64-neon-bf16", AArch64, MatrixISA::ARM_NEON_BF16, {ARM_BF16}},
  };
  return targets;
}

/// The target of `namedTargets()[index]`.
Target makeTarget(size_t index) {
  Target target;
  target.architecture = namedTargets()[index].architecture;
  for (size_t i = 0; i <= index; ++i) {
    const NamedTarget &named = namedTargets()[i];
    if (named.architecture != target.architecture)
      continue;
    target.name = named.name;
    target.matrixISAs.push_back(named.isa);
    for (CpuFeature feature : named.features)
      target.features.insert(feature);
  }
  // All CPUs with tiles have these.
  if (hasTiles(target.matrixISAs.back())) {
    target.l1DataBytes = 48 << 10;
    target.l2Bytes = 2 << 20;
  }
  return target;
}

} // namespace

std::string_view sandwich::name(MatrixISA isa) {
  return namedISAs[static_cast<size_t>(isa)].name;
}

RegisterFile sandwich::registerFileOf(MatrixISA isa) {
  return namedISAs[static_cast<size_t>(isa)].registers;
}

CpuArchitecture sandwich::architectureOf(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::X86_AVX512_BF16:
  case MatrixISA::X86_AMX_BF16:
    return CpuArchitecture::X86_64;
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_NEON_BF16:
    return CpuArchitecture::AArch64;
  }
  __builtin_unreachable();
}

bool sandwich::hasTiles(MatrixISA isa) {
  return isa == MatrixISA::X86_AMX_BF16;
}

bool sandwich::multipliesBF16(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::ARM_NEON_F32:
    return false;
  case MatrixISA::X86_AVX512_BF16:
  case MatrixISA::X86_AMX_BF16:
  case MatrixISA::ARM_NEON_BF16:
    return true;
  }
  __builtin_unreachable();
}

std::span<const MatrixISA> sandwich::allMatrixISAs() {
  static const auto all = [] {
    std::array<MatrixISA, std::size(namedISAs)> isas;
    std::ranges::transform(namedISAs, isas.begin(), &NamedISA::isa);
    return isas;
  }();
  return all;
}

RegisterFile Target::vectorRegisters() const {
  RegisterFile widest{};
  for (MatrixISA isa : matrixISAs)
    if (RegisterFile file = registerFileOf(isa);
        file.rows == 1 && file.columns >= widest.columns)
      widest = file;
  return widest;
}

std::string_view Target::triple() const {
  switch (architecture) {
  case CpuArchitecture::X86_64:
    return "x86_64-unknown-linux-gnu";
  case CpuArchitecture::AArch64:
    return "aarch64-unknown-linux-gnu";
  }
  __builtin_unreachable();
}

std::string_view Target::baselineCpu() const {
  switch (architecture) {
  case CpuArchitecture::X86_64:
    return "x86-64";
  case CpuArchitecture::AArch64:
    return "generic";
  }
  __builtin_unreachable();
}

std::string Target::featureString() const {
  std::string list;
  for (std::string_view feature : features.names())
    list += (list.empty() ? "+" : ",+") + std::string(feature);
  return list;
}

std::vector<std::string> sandwich::targetNames() {
  std::vector<std::string> names;
  for (const NamedTarget &target : namedTargets())
    names.emplace_back(target.name);
  return names;
}

Result<Target> sandwich::getTarget(std::string_view name) {
  if (name == "host") {
    for (size_t index = namedTargets().size(); index-- > 0;) {
      if (namedTargets()[index].architecture != hostArchitecture)
        continue;
      Target target = makeTarget(index);
      if (!CpuFeatures::host().hasAll(target.features))
        continue;
      const CacheSizes &caches = CacheSizes::host();
      if (caches.level1Data)
        target.l1DataBytes = static_cast<int64_t>(caches.level1Data);
      if (caches.level2)
        target.l2Bytes = static_cast<int64_t>(caches.level2);
      return target;
    }
    return Error{
        "this CPU lacks AVX2 and FMA, the least Sandwich compiles for; "
        "name the machine that will run the artifact with --target"};
  }
  std::string known;
  for (size_t index = 0; index < namedTargets().size(); ++index) {
    if (namedTargets()[index].name == name)
      return makeTarget(index);
    known += std::string(namedTargets()[index].name) + ", ";
  }
  return makeError("unknown target '", name, "'; known are ", known, "host");
}
