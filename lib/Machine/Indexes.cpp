//===- Indexes.cpp - Lists of indexes for people --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Indexes.h"

#include <algorithm>

using namespace sandwich;

std::string sandwich::formatIndexes(std::vector<int64_t> indexes) {
  std::sort(indexes.begin(), indexes.end());
  indexes.erase(std::unique(indexes.begin(), indexes.end()), indexes.end());
  std::string text;
  for (size_t first = 0; first < indexes.size();) {
    size_t last = first;
    while (last + 1 < indexes.size() && indexes[last + 1] == indexes[last] + 1)
      ++last;
    if (last == first + 1)
      last = first;
    text += (text.empty() ? "" : ",") + std::to_string(indexes[first]);
    if (last > first)
      text += "-" + std::to_string(indexes[last]);
    first = last + 1;
  }
  return text;
}

std::string sandwich::formatCpus(const std::vector<int64_t> &cpus) {
  return (cpus.size() == 1 ? "CPU " : "CPUs ") + formatIndexes(cpus);
}
