//===- Candidates.cpp - Tokens that may be chosen, by probability ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Candidates.h"

#include <algorithm>
#include <span>

using namespace sandwich;

double sandwich::sumOfWeights(const Candidates &candidates) {
  double sum = 0;
  for (const Candidate &candidate : candidates)
    sum += candidate.weight;
  return sum;
}

RankedCandidates::RankedCandidates(const Candidates &unordered, double range)
    : candidates(unordered.size()) {
  // Sorting so few takes no longer than finding where they belong.
  constexpr size_t wanted = 32;
  const size_t buckets = std::clamp<size_t>(unordered.size() / wanted, 1, 4096);
  const auto [least, most] =
      std::ranges::minmax(unordered, {}, &Candidate::logit);
  const double largest = most.logit;
  range = std::min(range, largest - least.logit);
  const double factor = range > 0 ? static_cast<double>(buckets) / range : 0;
  auto bucketOf = [&](const Candidate &candidate) {
    const double index = (largest - candidate.logit) * factor;
    return static_cast<size_t>(
        std::min(index, static_cast<double>(buckets - 1)));
  };
  begins.resize(buckets + 1);
  sumsBefore.resize(buckets + 1);
  for (const Candidate &candidate : unordered) {
    const size_t bucket = bucketOf(candidate);
    ++begins[bucket + 1];
    sumsBefore[bucket + 1] += candidate.weight;
  }
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    begins[bucket + 1] += begins[bucket];
    sumsBefore[bucket + 1] += sumsBefore[bucket];
  }
  std::vector<size_t> next(begins.begin(), begins.end() - 1);
  for (const Candidate &candidate : unordered)
    candidates[next[bucketOf(candidate)]++] = candidate;
}

auto RankedCandidates::sorted(size_t bucket) {
  auto members =
      std::span(candidates)
          .subspan(begins[bucket], begins[bucket + 1] - begins[bucket]);
  std::ranges::sort(members, isMoreProbable);
  return members;
}

double RankedCandidates::sumOfFirst(size_t count) {
  const auto after = std::ranges::upper_bound(begins, count);
  const auto bucket = static_cast<size_t>(after - begins.begin()) - 1;
  double sum = sumsBefore[bucket];
  for (const Candidate &candidate :
       sorted(bucket).first(count - begins[bucket]))
    sum += candidate.weight;
  return sum;
}

std::optional<RankedCandidates::Place> RankedCandidates::findSum(double target,
                                                                 double error) {
  const auto after = std::ranges::upper_bound(sumsBefore, target);
  if (after == sumsBefore.end())
    return std::nullopt;
  const auto bucket = static_cast<size_t>(after - sumsBefore.begin()) - 1;
  double sum = sumsBefore[bucket];
  for (const Candidate &candidate : sorted(bucket)) {
    const double before = sum;
    sum += candidate.weight;
    if (sum <= target)
      continue;
    if (target - before > error && sum - target > error)
      return Place{candidate.token, sum};
    break;
  }
  return std::nullopt;
}
