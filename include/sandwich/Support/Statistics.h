//===- Statistics.h - Medians, quantiles, intervals -------------*- C++ -*-===//
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

/// Between two numbers, both included.
struct Interval {
  double low = 0;
  double high = 0;

  bool contains(double number) const { return low <= number && number <= high; }
};

/// The z of a confidence of 95%.
inline constexpr double usualZ = 1.959964;

/// Where the probability lies that made `successes` of `trials` independent
/// trials, at least one, succeed (Wilson 1927).
inline Interval wilsonInterval(size_t successes, size_t trials,
                               double z = usualZ) {
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double scale = 1 / (1 + z * z / n);
  const double middle = scale * (share + z * z / (2 * n));
  const double half =
      scale * z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_STATISTICS_H
