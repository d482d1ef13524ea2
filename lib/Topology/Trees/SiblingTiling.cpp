//===- SiblingTiling.cpp - Siblings tiled by shifted groups ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/SiblingTiling.h"

#include <algorithm>

using namespace sandwich;

SiblingTiling::SiblingTiling(unsigned siblings) {
  append(/*insideGroup=*/false, siblings);
}

unsigned SiblingTiling::groupCount() const {
  unsigned count = 1;
  for (size_t place = 0; place < radices.size(); place += 2)
    count *= radices[place];
  return count;
}

/// Adds a highest digit; digits of one kind beside each other are one.
void SiblingTiling::append(bool insideGroup, unsigned radix) {
  if (radix == 1)
    return;
  if (radices.empty() && insideGroup)
    radices.push_back(1);
  if (radices.size() % 2 == insideGroup)
    radices.push_back(radix);
  else
    radices.back() *= radix;
}

std::optional<SiblingTiling> SiblingTiling::grouped(unsigned size,
                                                    unsigned stride) const {
  SiblingTiling result;
  // The numbers of groups that the digit at a place tells apart are `low`
  // apart, and `high` of them are no more than its carry. What is between
  // stride and size * stride becomes a digit inside the new groups. A limit
  // that cuts a digit into no two digits would carry over what lies between
  // this digit and the next, by which some groups were shifted and others not.
  unsigned low = 1;
  for (size_t place = 0; place < radices.size(); ++place) {
    if (place % 2 == 1) {
      result.append(/*insideGroup=*/true, radices[place]);
      continue;
    }
    unsigned high = low * radices[place];
    unsigned first = std::clamp(stride, low, high);
    unsigned last = std::clamp(size * stride, low, high);
    if (first % low != 0 || last % first != 0 || high % last != 0)
      return std::nullopt;
    result.append(/*insideGroup=*/false, first / low);
    result.append(/*insideGroup=*/true, last / first);
    result.append(/*insideGroup=*/false, high / last);
    low = high;
  }
  return result;
}
