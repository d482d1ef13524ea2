//===- StrategyFamilies.h - One searcher for each strategy ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What each way to search is made by, and what several of them share.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SCHEDULING_STRATEGYFAMILIES_H
#define SANDWICH_LIB_SCHEDULING_STRATEGYFAMILIES_H

#include "sandwich/Scheduling/ScheduleTuner.h"

#include <memory>

namespace sandwich {

/// Without `splitK`, threads share no K even where a payload lets them.
std::unique_ptr<SearchStrategy> makeSandwichStrategy(bool splitK);
std::unique_ptr<SearchStrategy> makeScaleUpAndOutStrategy();
std::unique_ptr<SearchStrategy> makeCostModelStrategy();
std::unique_ptr<SearchStrategy> makeExhaustiveStrategy();

/// That nothing of the menu fits.
Error noMicroKernel(const Payload &payload);

/// The grid without split-k whose threads are most evenly loaded.
std::array<int64_t, 3> mostEvenGrid(const Payload &payload,
                                    const Packing &packing);

} // namespace sandwich

#endif // SANDWICH_LIB_SCHEDULING_STRATEGYFAMILIES_H
