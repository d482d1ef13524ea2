//===- KnownProcessors.cpp - Published figures of processors --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownProcessors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

using namespace sandwich;

// docs/RationaleTopoTree.md, "Where published figures are from", lists the
// sources. Channels and transfers are those of the data sheets.
static constexpr std::array<KnownProcessor, 12> processors = {{
    {.models = {"Kunpeng 920"},
     .name = "Kunpeng 920",
     .channels = 8,
     .megatransfers = 2933,
     .readShare = 0.70,
     .coreGigabytes = 12.4,
     .linkGigabytes = 58,
     .remoteShare = 0.65,
     .sliceHandoff = 36,
     .packageHandoff = 80,
     .source = "lmbench of wayca-scheduler, core-to-core-latency"},
    {.models = {"EPYC 7##2", "EPYC 7H12"},
     .name = "EPYC Rome",
     .channels = 8,
     .megatransfers = 3200,
     .readShare = 0.70,
     .coreGigabytes = 21.8,
     .sliceGigabytes = 35.7,
     .linkGigabytes = 70,
     .sliceHandoff = 25,
     .packageHandoff = 134,
     .machineHandoff = 266,
     .source = "kerncraft's EPYC 7452, core-to-core-latency"},
    {.models = {"EPYC 7##3"},
     .name = "EPYC Milan",
     .channels = 8,
     .megatransfers = 3200,
     .readShare = 0.75,
     .source = "data sheet"},
    {.models = {"EPYC 9##4"},
     .name = "EPYC Genoa",
     .channels = 12,
     .megatransfers = 4800,
     .readShare = 0.80,
     .sliceGigabytes = 50,
     .sliceHandoff = 24,
     .packageHandoff = 98,
     .machineHandoff = 194,
     .source = "Micron's STREAM, core-to-core-latency"},
    {.models = {"EPYC 9##5"},
     .name = "EPYC Turin",
     .channels = 12,
     .megatransfers = 6000,
     .readShare = 0.80,
     .source = "data sheet"},
    {.models = {"Xeon Gold 62##", "Xeon Platinum 82##"},
     .name = "Cascade Lake",
     .channels = 6,
     .megatransfers = 2933,
     .readShare = 0.85,
     .coreGigabytes = 13.0,
     .linkGigabytes = 34,
     .remoteShare = 0.58,
     .packageHandoff = 48,
     .machineHandoff = 125,
     .latencyNanoseconds = 81,
     .source = "kerncraft's Xeon 6248, Memory Latency Checker on a 6240"},
    {.models = {"Xeon Platinum 83##"},
     .name = "Ice Lake",
     .channels = 8,
     .megatransfers = 3200,
     .readShare = 0.80,
     .source = "data sheet"},
    {.models = {"Xeon Platinum 84##"},
     .name = "Sapphire Rapids",
     .channels = 8,
     .megatransfers = 4800,
     .readShare = 0.80,
     .remoteShare = 0.6,
     .packageHandoff = 110,
     .machineHandoff = 188,
     .latencyNanoseconds = 100,
     .source = "Memory Latency Checker on a Xeon 8468"},
    {.models = {"Xeon Max 94##"},
     .name = "Xeon Max",
     .channels = 8,
     .megatransfers = 4800,
     .readShare = 0.68,
     .packageHandoff = 110,
     .machineHandoff = 188,
     .source = "McCalpin, Bandwidth limits in the Intel Xeon Max"},
    {.models = {"Ampere Altra"},
     .name = "Ampere Altra",
     .channels = 8,
     .megatransfers = 3200,
     .readShare = 0.83,
     .coreGigabytes = 14,
     .source = "data sheet; Graviton2, which has the same cores"},
    {.models = {"Graviton2"},
     .name = "Graviton2",
     .channels = 8,
     .megatransfers = 3200,
     .readShare = 0.83,
     .coreGigabytes = 20.9,
     .source = "Arm's memory-subsystem learning path"},
    {.models = {"Graviton3"},
     .name = "Graviton3",
     .channels = 8,
     .megatransfers = 4800,
     .readShare = 0.80,
     .packageHandoff = 46,
     .source = "data sheet, core-to-core-latency"},
}};

/// Whether `text` begins with `pattern`, a digit for each '#'.
static bool beginsWith(std::string_view text, std::string_view pattern) {
  return text.size() >= pattern.size() &&
         std::ranges::equal(
             pattern, text.substr(0, pattern.size()),
             [](char wanted, char found) {
               return wanted == '#'
                          ? std::isdigit(static_cast<unsigned char>(found)) != 0
                          : wanted == found;
             });
}

bool KnownProcessor::isNamedBy(std::string_view text) const {
  return beginsWith(text, name) ||
         std::ranges::any_of(models, [&](std::string_view model) {
           return !model.empty() && beginsWith(text, model);
         });
}

/// `cpuModel` without "(R)", "(TM)", "CPU" and what firmware writes between
/// words.
static std::string plainModel(std::string_view cpuModel) {
  std::string plain;
  for (size_t i = 0; i < cpuModel.size(); ++i) {
    if (cpuModel[i] == '(')
      while (i < cpuModel.size() && cpuModel[i] != ')')
        ++i;
    else if (const char c = cpuModel[i] == '-' ? ' ' : cpuModel[i];
             c != ' ' || (!plain.empty() && plain.back() != ' '))
      plain += c;
  }
  constexpr std::string_view filler = " CPU ";
  if (const size_t at = plain.find(filler); at != std::string::npos)
    plain.replace(at, filler.size(), " ");
  return plain;
}

const KnownProcessor *sandwich::findKnownProcessor(std::string_view cpuModel) {
  const std::string plain = plainModel(cpuModel);
  for (const KnownProcessor &processor : processors)
    for (size_t i = 0; i < plain.size(); ++i)
      if ((i == 0 || plain[i - 1] == ' ') &&
          processor.isNamedBy(std::string_view(plain).substr(i)))
        return &processor;
  return nullptr;
}

std::string sandwich::knownProcessorNames() {
  std::string names;
  for (const KnownProcessor &processor : processors)
    names.append(names.empty() ? "" : ", ").append(processor.name);
  return names;
}

// Those of the machines that schedules were measured on, where there is one:
// virtual ones with two cores of a Zen 5, a Zen 3 and a Sapphire Rapids
// (docs/RationaleScheduling.md). What a memory gives for each core lies between
// 2.1 GB/s (Altra) and 7.5 (desktops) in published figures; 5 is high, so that
// plans rather keep cores awake.
const Generation &sandwich::generationOf(const Target &target) {
  // Integers: on AMX tiles multiply what has many rows, as bf16 but where groups
  // are long. A Zen 4
  // reaches 1.4 times its bf16 and 2.8 times its f32, which is what the CPUs
  // with AVX-512 are thought to; of ARM nothing was measured: two thirds to
  // four fifths of four times f32.
  static constexpr Generation amx = {
      3.34, 48, 380, 380, 16, 5, 28, 191, "x86-64 with AMX"};
  static constexpr Generation avx512BF16 = {
      3.6, 58, 110, 154, 30, 5, 40, 110, "x86-64 with AVX512_BF16"};
  static constexpr Generation avx512 = {
      3.6, 48, 48, 135, 30, 5, 40, 110, "x86-64 with AVX-512"};
  static constexpr Generation avx2 = {
      3.6, 27, 27, 27, 30, 5, 40, 110, "x86-64 with AVX2"};
  static constexpr Generation neon = {2.6, 14, 14,  44,       12.4,
                                      5,   40, 110, "aarch64"};
  // By A64FX's data sheet.
  static constexpr Generation sve = {
      2.2, 58, 58, 58, 20, 21, 40, 130, "aarch64 with SVE of 512 bits"};
  // Of a Neoverse V1, whose vectors have 256 bits; the next is of an N2.
  static constexpr Generation sveBF16 = {
      2.6, 28, 100, 88, 20, 5, 40, 110, "aarch64 with SVE and BF16"};
  static constexpr Generation neonBF16 = {
      2.6, 14, 50, 44, 20, 5, 40, 110, "aarch64 with BF16"};
  const auto has = [&](CpuFeature feature) {
    return target.features.has(feature);
  };
  if (target.architecture == CpuArchitecture::AArch64) {
    if (has(CpuFeature::ARM_SVE))
      return has(CpuFeature::ARM_BF16) ? sveBF16 : sve;
    return has(CpuFeature::ARM_BF16) ? neonBF16 : neon;
  }
  if (has(CpuFeature::AMX_BF16))
    return amx;
  if (has(CpuFeature::AVX512BF16))
    return avx512BF16;
  return std::ranges::count(target.matrixISAs, MatrixISA::X86_AVX512_F32)
             ? avx512
             : avx2;
}
