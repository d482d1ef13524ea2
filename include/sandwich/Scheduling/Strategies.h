//===- Strategies.h - Ways to search ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The strategies that the Sandwich paper compares (sections 7.1 and 7.4), on
/// the same menu and the same evaluator.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_STRATEGIES_H
#define SANDWICH_SCHEDULING_STRATEGIES_H

#include "sandwich/Scheduling/ScheduleTuner.h"

#include <memory>
#include <span>
#include <string_view>

namespace sandwich {

enum class Strategy : uint8_t {
  /// `sandwich`: fast start and finetune, sliding window, schedule reuse.
  Sandwich,
  /// `scale-up-and-out`, after Roller, as section 2.3 of the Sandwich paper has
  /// it for CPUs: the slice of each micro-kernel grows by itself along the
  /// dimension that gains most on one thread, as far as a cache holds it; what
  /// it
  /// came to is what it grows by for the next cache. The team's threads repeat
  /// it.
  ScaleUpAndOut,
  /// `cost-model`: nothing is measured.
  CostModel,
  /// `exhaustive`: every schedule of a coarse space is measured; refused where
  /// there are too many.
  Exhaustive,
  /// `sandwich-without-split-k`: as `sandwich`, but threads share no K: "+
  /// kernel tuning" in the ablation of section 7.4, whose last row is
  /// `sandwich`.
  SandwichWithoutSplitK,
};

std::span<const Strategy> allStrategies();
std::string_view name(Strategy strategy);
/// Errors: an unknown name; the error lists the known ones.
Result<Strategy> strategyNamed(std::string_view name);

/// Whether what `strategy` finds may share K among threads.
bool usesSplitK(Strategy strategy);

/// A new searcher for one group.
std::unique_ptr<SearchStrategy> makeStrategy(Strategy strategy);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_STRATEGIES_H
