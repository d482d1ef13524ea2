//===- PaperFigures.h - What the WindVE paper reports -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The figures of section V, and lines of latency that follow from them. Of the
/// lines the paper tells only beta, and the ratios of two pairs of alphas.
///
//===----------------------------------------------------------------------===//

#ifndef BENCHMARKS_WINDVE_PAPERFIGURES_H
#define BENCHMARKS_WINDVE_PAPERFIGURES_H

#include "sandwich/Devices/LatencyFit.h"

#include <array>
#include <cstdint>

namespace sandwich::benchmark {

/// The two limits of all experiments, in seconds.
inline constexpr std::array<double, 2> limits = {1, 2};

/// Of tables I and II: alone, and what the CPU adds, for each limit; and the
/// improvement as it is printed, in per cent.
struct PaperConcurrency {
  std::array<uint32_t, 2> alone;
  std::array<uint32_t, 2> added;
  std::array<double, 2> improvement;
};

/// Of table III, for each limit.
struct PaperDepths {
  std::array<uint32_t, 2> regression;
  std::array<uint32_t, 2> stressTest;
  std::array<uint32_t, 2> tuned;
};

struct PaperDevice {
  const char *name;
  /// Beta of figure 4, in seconds.
  double beta;
  PaperDepths depths;
  /// The line of figure 4: its beta, and the only range of alphas with which
  /// table III's row of linear regression and the ratios of alphas (0.21, 0.12)
  /// hold: all of these agree with each other.
  LatencyLine fitted;
  /// A line with the concurrencies of table I. Its beta is figure 4's where
  /// such a line exists, which it does for CPUs only; otherwise alpha is one
  /// part of the difference of the two concurrencies, and beta in the middle of
  /// what is possible.
  LatencyLine ofTable1;
  /// The same of table II. The paper tells no beta of jina.
  LatencyLine ofTable2;
  /// The step of the stress test. The text says 8; but the depths of the CPUs
  /// are no multiples of 8, but of 2.
  uint32_t step;
};

struct PaperMachine {
  PaperDevice accelerator;
  PaperDevice cpu;
  /// Alpha of the accelerator by that of the CPU (V.B).
  double ratio;
  PaperConcurrency bge;
  PaperConcurrency jina;
};

/// With x86 CPUs: two Xeon E5-2680 by V.A, E5 2690 by the tables.
inline constexpr PaperMachine gpuMachine = {
    .accelerator = {.name = "Tesla V100",
                    .beta = 0.27,
                    .depths = {{40, 96}, {40, 88}, {44, 96}},
                    // 17.84 to 18.02 ms.
                    .fitted = {0.0179, 0.27},
                    // With a beta of 0.27, 44 within 1 s are at least 104
                    // within 2 s.
                    .ofTable1 = {1.0 / 52, 0.1442},
                    .ofTable2 = {1.0 / 64, 0.2422},
                    .step = 8},
    .cpu = {.name = "Xeon E5 2690",
            .beta = 0.32,
            .depths = {{8, 20}, {6, 18}, {8, 22}},
            // 83.0 to 84.0 ms.
            .fitted = {0.0837, 0.32},
            // 75.6 to 76.4 ms.
            .ofTable1 = {0.0759, 0.32},
            .ofTable2 = {1.0 / 19, 0.3947},
            .step = 2},
    .ratio = 0.21,
    .bge = {{44, 96}, {8, 22}, {18.2, 22.3}},
    .jina = {{48, 112}, {11, 30}, {22.9, 26.7}}};

inline constexpr PaperMachine npuMachine = {
    .accelerator = {.name = "Atlas 300I DUO",
                    .beta = 0.24,
                    .depths = {{84, 195}, {80, 176}, {84, 172}},
                    // 8.98 to 9.03 ms.
                    .fitted = {0.009, 0.24},
                    .ofTable1 = {1.0 / 88, 0.0398},
                    // Any beta is at most 7.8 ms: 128 and 256 are twice the
                    // queries in twice the time.
                    .ofTable2 = {1.0 / 128.5, 0.0019},
                    .step = 8},
    .cpu = {.name = "Kunpeng 920",
            .beta = 0.85,
            .depths = {{2, 15}, {2, 12}, {2, 8}},
            // 71.9 to 75.0 ms.
            .fitted = {0.0735, 0.85},
            // 127.8 to 143.8 ms.
            .ofTable1 = {0.1357, 0.85},
            .ofTable2 = {1.0 / 14, 0.5357},
            .step = 2},
    .ratio = 0.12,
    .bge = {{84, 172}, {1, 8}, {1.2, 4.7}},
    .jina = {{128, 256}, {6, 20}, {4.6, 7.8}}};

/// The text tells of figure 5: beyond 1 s the CPU adds none at 500 tokens, and
/// within 2 s it adds 2 queries, 20% of the accelerator's. So one alpha at 500
/// tokens is 9.0 to 9.6 times that at 75, for both devices. Tokens cost as much
/// as their number, and attention, which grows with its square, as much again
/// at `attentionTokens`: 9.3 times. Beta stays.
inline constexpr double usualTokens = 75;
inline constexpr double attentionTokens = 1000;
constexpr double alphaGrowth(double tokens) {
  return tokens / usualTokens * (1 + tokens / attentionTokens) /
         (1 + usualTokens / attentionTokens);
}

/// The text tells of figure 6: fewer than 44 cores add nothing within 1 s, and
/// fewer than 36 nothing within 2 s. From 48 cores on down in steps of 4, these
/// are the boundaries where latency grows with this power of the cores that are
/// missing, 5.1 to 5.6. Work that is shared evenly has a power of 1, with which
/// 20 cores would serve a query within 1 s.
inline constexpr double usualCores = 48;
inline constexpr double corePower = 5.3;

} // namespace sandwich::benchmark

#endif // BENCHMARKS_WINDVE_PAPERFIGURES_H
