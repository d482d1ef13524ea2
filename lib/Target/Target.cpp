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
#include <ranges>

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
    {MatrixISA::X86_AVX2_INT8, "X86_AVX2_INT8", {16, 1, 8}},
    {MatrixISA::X86_AVX_VNNI, "X86_AVX_VNNI", {16, 1, 8}},
    {MatrixISA::X86_AVX512_F32, "X86_AVX512_F32", {32, 1, 16}},
    {MatrixISA::X86_AVX512_VNNI, "X86_AVX512_VNNI", {32, 1, 16}},
    {MatrixISA::X86_AVX512_BF16, "X86_AVX512_BF16", {32, 1, 16}},
    {MatrixISA::X86_AMX_BF16, "X86_AMX_BF16", {8, 16, 16}},
    {MatrixISA::X86_AMX_INT8, "X86_AMX_INT8", {8, 16, 16}},
    {MatrixISA::ARM_NEON_F32, "ARM_NEON_F32", {32, 1, 4}},
    {MatrixISA::ARM_NEON_DOTPROD, "ARM_NEON_DOTPROD", {32, 1, 4}},
    {MatrixISA::ARM_NEON_I8MM, "ARM_NEON_I8MM", {32, 2, 2}},
    {MatrixISA::ARM_NEON_BF16, "ARM_NEON_BF16", {32, 2, 2}},
    {MatrixISA::ARM_SVE_F32,
     "ARM_SVE_F32",
     {32, 1, longestScalableVectorBytes / 4}},
    {MatrixISA::ARM_SVE_BF16,
     "ARM_SVE_BF16",
     {32, 2, longestScalableVectorBytes / 8}},
};
static_assert(std::size(namedISAs) == matrixISACount);

struct NamedTarget {
  std::string_view name;
  /// The target whose instructions and features it has as well, if any.
  std::string_view base;
  CpuArchitecture architecture;
  /// Beyond those of the base, best last.
  std::vector<MatrixISA> isas;
  std::vector<CpuFeature> features;
};

/// Of each architecture the one comes last that a CPU that runs several runs
/// best. CPUs with both multiply by bfmmla as fast as by SVE's form of it,
/// whose vectors are fewer or as short. Armv8.6 has both bfmmla and usmmla, and
/// CPUs of earlier versions that have the one have the other as well.
const std::vector<NamedTarget> &namedTargets() {
  using enum CpuFeature;
  using enum CpuArchitecture;
  static const std::vector<NamedTarget> targets = {
      {"x86-64-avx2",
       "",
       X86_64,
       {MatrixISA::X86_AVX2_F32, MatrixISA::X86_AVX2_INT8},
       {SSE3, SSSE3, SSE4_1, SSE4_2, POPCNT, CX16, MOVBE, LZCNT, BMI, BMI2, AVX,
        F16C, FMA, AVX2}},
      {"x86-64-avx-vnni",
       "x86-64-avx2",
       X86_64,
       {MatrixISA::X86_AVX_VNNI},
       {AVXVNNI}},
      {"x86-64-avx512",
       "x86-64-avx2",
       X86_64,
       {MatrixISA::X86_AVX512_F32},
       {AVX512F, AVX512CD, AVX512BW, AVX512DQ, AVX512VL}},
      {"x86-64-avx512-vnni",
       "x86-64-avx512",
       X86_64,
       {MatrixISA::X86_AVX512_VNNI},
       {AVX512VNNI}},
      {"x86-64-avx512-bf16",
       "x86-64-avx512-vnni",
       X86_64,
       {MatrixISA::X86_AVX512_BF16},
       {AVX512BF16}},
      {"x86-64-amx",
       "x86-64-avx512-bf16",
       X86_64,
       {MatrixISA::X86_AMX_INT8, MatrixISA::X86_AMX_BF16},
       {AMX_TILE, AMX_BF16, AMX_INT8}},
      {"aarch64-neon", "", AArch64, {MatrixISA::ARM_NEON_F32}, {ARM_NEON}},
      {"aarch64-neon-dotprod",
       "aarch64-neon",
       AArch64,
       {MatrixISA::ARM_NEON_DOTPROD},
       {ARM_DOTPROD}},
      {"aarch64-neon-i8mm",
       "aarch64-neon-dotprod",
       AArch64,
       {MatrixISA::ARM_NEON_I8MM},
       {ARM_I8MM}},
      {"aarch64-sve",
       "aarch64-neon",
       AArch64,
       {MatrixISA::ARM_SVE_F32},
       {ARM_SVE}},
      {"aarch64-sve-bf16",
       "aarch64-sve",
       AArch64,
       {MatrixISA::ARM_NEON_DOTPROD, MatrixISA::ARM_NEON_I8MM,
        MatrixISA::ARM_SVE_BF16},
       {ARM_DOTPROD, ARM_I8MM, ARM_BF16}},
      {"aarch64-neon-bf16",
       "aarch64-neon-i8mm",
       AArch64,
       {MatrixISA::ARM_NEON_BF16},
       {ARM_BF16}},
  };
  return targets;
}

/// Adds to `target` what `named` has, its bases first.
void addInstructions(const NamedTarget &named, Target &target) {
  if (!named.base.empty())
    addInstructions(
        *std::ranges::find(namedTargets(), named.base, &NamedTarget::name),
        target);
  target.matrixISAs.insert(target.matrixISAs.end(), named.isas.begin(),
                           named.isas.end());
  for (CpuFeature feature : named.features)
    target.features.insert(feature);
}

Target makeTarget(const NamedTarget &named) {
  Target target;
  target.name = named.name;
  target.architecture = named.architecture;
  addInstructions(named, target);
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
  case MatrixISA::X86_AVX2_INT8:
  case MatrixISA::X86_AVX_VNNI:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::X86_AVX512_VNNI:
  case MatrixISA::X86_AVX512_BF16:
  case MatrixISA::X86_AMX_BF16:
  case MatrixISA::X86_AMX_INT8:
    return CpuArchitecture::X86_64;
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_NEON_DOTPROD:
  case MatrixISA::ARM_NEON_I8MM:
  case MatrixISA::ARM_NEON_BF16:
  case MatrixISA::ARM_SVE_F32:
  case MatrixISA::ARM_SVE_BF16:
    return CpuArchitecture::AArch64;
  }
  __builtin_unreachable();
}

bool sandwich::hasTiles(MatrixISA isa) {
  return isa == MatrixISA::X86_AMX_BF16 || isa == MatrixISA::X86_AMX_INT8;
}

bool sandwich::hasScalableVectors(MatrixISA isa) {
  return isa == MatrixISA::ARM_SVE_F32 || isa == MatrixISA::ARM_SVE_BF16;
}

std::string_view sandwich::name(MatrixElement element) {
  switch (element) {
  case MatrixElement::F32:
    return "f32";
  case MatrixElement::BF16:
    return "bf16";
  case MatrixElement::Int8:
    return "int8";
  }
  __builtin_unreachable();
}

MatrixElement sandwich::elementOf(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_SVE_F32:
    return MatrixElement::F32;
  case MatrixISA::X86_AVX512_BF16:
  case MatrixISA::X86_AMX_BF16:
  case MatrixISA::ARM_NEON_BF16:
  case MatrixISA::ARM_SVE_BF16:
    return MatrixElement::BF16;
  case MatrixISA::X86_AVX2_INT8:
  case MatrixISA::X86_AVX_VNNI:
  case MatrixISA::X86_AVX512_VNNI:
  case MatrixISA::X86_AMX_INT8:
  case MatrixISA::ARM_NEON_DOTPROD:
  case MatrixISA::ARM_NEON_I8MM:
    return MatrixElement::Int8;
  }
  __builtin_unreachable();
}

std::span<const MatrixISA> sandwich::allMatrixISAs() {
  static const auto all = [] {
    std::array<MatrixISA, matrixISACount> isas;
    std::ranges::transform(namedISAs, isas.begin(), &NamedISA::isa);
    return isas;
  }();
  return all;
}

RegisterFile Target::vectorRegisters() const {
  RegisterFile widest{};
  for (MatrixISA isa : matrixISAs)
    if (RegisterFile file = registerFileOf(isa);
        file.rows == 1 && file.columns >= widest.columns &&
        !hasScalableVectors(isa))
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
    for (const NamedTarget &named : std::views::reverse(namedTargets())) {
      if (named.architecture != hostArchitecture)
        continue;
      // Vectors no longer than NEON's would take four passes.
      constexpr int64_t bytesOfNeon = 16;
      if (hasScalableVectors(named.isas.back()) &&
          hostScalableVectorBytes() <= bytesOfNeon)
        continue;
      Target target = makeTarget(named);
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
  for (const NamedTarget &named : namedTargets()) {
    if (named.name == name)
      return makeTarget(named);
    known += std::string(named.name) + ", ";
  }
  return makeError("unknown target '", name, "'; known are ", known, "host");
}
