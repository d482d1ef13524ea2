//===- ClassRanking.cpp - The best classes of configurations --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClassRanking.h"

#include <algorithm>
#include <tuple>

using namespace sandwich;

/// By time, then processes, then cores awake. Of one number of processes all
/// have as many cores in prefill.
static auto orderOf(const RankedClass &of) {
  return std::make_tuple(of.milliseconds, of.shape.processes,
                         -static_cast<int64_t>(of.shape.decodeCores));
}

unsigned ClassRanking::transformationsOf(RankedClass &of) const {
  if (!of.transformations)
    of.transformations =
        space->transformations(of.cut.level, of.cut.tiling, of.removals);
  return *of.transformations;
}

std::optional<RankedClass> ClassRanking::add(RankedClass one) {
  auto place = std::ranges::lower_bound(ranked, one.milliseconds, {},
                                        &RankedClass::milliseconds);
  for (auto near : {place, place == ranked.begin() ? place : place - 1})
    if (near != ranked.end() &&
        areEqualPredictions(near->milliseconds, one.milliseconds))
      one.milliseconds = near->milliseconds;
  place = std::ranges::lower_bound(ranked, orderOf(one), {}, orderOf);
  if (place == ranked.end() || orderOf(*place) != orderOf(one)) {
    ranked.insert(place, std::move(one));
    if (ranked.size() <= most)
      return std::nullopt;
    RankedClass last = std::move(ranked.back());
    ranked.pop_back();
    return last;
  }
  RankedClass &known = *place;
  known.members += one.members;
  if (known.lastSet != one.set) {
    known.lastSet = one.set;
    known.inLastSet = 0;
  }
  known.inLastSet += one.members;
  if (known.set == one.set)
    known.inSet += one.members;
  if (transformationsOf(one) >= transformationsOf(known))
    return std::nullopt;
  known.cut = one.cut;
  known.removals = std::move(one.removals);
  known.transformations = one.transformations;
  known.set = known.lastSet;
  known.inSet = known.inLastSet;
  return std::nullopt;
}
