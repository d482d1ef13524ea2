//===- Statistics.h - Medians and quantiles ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_STATISTICS_H
#define SANDWICH_SUPPORT_STATISTICS_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sandwich {

/// Of at least one value; of an even number of them the mean of the two in the
/// middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

/// The nearest rank: the smallest of `values`, of which there is at least one,
/// that a share of `share` of all are not larger than.
template <typename T> T quantile(std::vector<T> values, double share) {
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto place = std::clamp<std::ptrdiff_t>(
      static_cast<std::ptrdiff_t>(rank) - 1, 0,
      static_cast<std::ptrdiff_t>(values.size()) - 1);
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<size_t>(place)];
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_STATISTICS_H
