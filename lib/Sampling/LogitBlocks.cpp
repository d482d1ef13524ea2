//===- LogitBlocks.cpp - A row of logits, block by block ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LogitBlocks.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace sandwich;

static constexpr float infinity = std::numeric_limits<float>::infinity();

LogitBlocks::LogitBlocks(std::span<const float> logits,
                         const LogitAdjustments &adjustments, double scale,
                         bool rough, std::span<const uint64_t> allowed)
    : logits(logits), adjustments(adjustments), scale(scale), rough(rough),
      allowed(allowed), largest((logits.size() + blockSize - 1) / blockSize),
      weights(scale > 0 ? largest.size() : 0) {}

const float *LogitBlocks::readUnchanged(size_t block, Copy &copy) const {
  const size_t first = block * blockSize;
  if (first + blockSize <= logits.size())
    return logits.data() + first;
  auto end = std::ranges::copy(logits.subspan(first), copy.begin()).out;
  std::fill(end, copy.end(), -infinity);
  return copy.data();
}

LogitBlocks::Bits LogitBlocks::allowedOf(size_t block) const {
  Bits bits;
  if (allowed.empty()) {
    bits.fill(~uint64_t{0});
    return bits;
  }
  const size_t first = std::min(block * bits.size(), allowed.size());
  const size_t count = std::min(bits.size(), allowed.size() - first);
  auto end = std::ranges::copy(allowed.subspan(first, count), bits.begin()).out;
  std::fill(end, bits.end(), 0);
  return bits;
}

const float *LogitBlocks::read(size_t block, Changes changes,
                               Copy &copy) const {
  const float *values = readUnchanged(block, copy);
  const Bits bits = allowedOf(block);
  if (!allowsAll(bits))
    barOthers(values, bits.data(), copy.data());
  else if (changes.empty())
    return values;
  else if (values != copy.data())
    std::copy(values, values + blockSize, copy.data());
  for (const LogitAdjustments::Adjustment &change : changes) {
    float &logit = copy[static_cast<size_t>(change.token) - block * blockSize];
    logit = adjustments.apply(logit, change);
  }
  return copy.data();
}

float LogitBlocks::findLargest(size_t block, Changes changes, float unchanged,
                               Copy &copy) const {
  const Bits bits = allowedOf(block);
  if (allowsNone(bits))
    return -infinity;
  if (!allowsAll(bits))
    return sandwich::findLargest(read(block, changes, copy));
  const float *values = readUnchanged(block, copy);
  float changed = -infinity;
  for (const LogitAdjustments::Adjustment &change : changes) {
    const float before =
        values[static_cast<size_t>(change.token) - block * blockSize];
    if (before == unchanged)
      return sandwich::findLargest(read(block, changes, copy));
    changed = std::max(changed, adjustments.apply(before, change));
  }
  // The largest is none of those changed.
  return std::max(unchanged, changed);
}

void LogitBlocks::scan(size_t first, size_t last) {
  Copy copy;
  Changes rest = changesOf(first, last);
  for (size_t block = first; block < last; ++block) {
    const auto isBefore = [end = (block + 1) * blockSize](const auto &change) {
      return static_cast<size_t>(change.token) < end;
    };
    const auto end = std::ranges::find_if_not(rest, isBefore);
    const Changes changes(rest.begin(), end);
    rest = Changes(end, rest.end());
    // A logit that is no number is an error even where it is barred.
    const float unchanged = sandwich::findLargest(readUnchanged(block, copy));
    largest[block] = unchanged < infinity
                         ? findLargest(block, changes, unchanged, copy)
                         : unchanged;
    if (scale > 0 && std::isfinite(largest[block])) {
      const float *values = read(block, changes, copy);
      weights[block] = rough ? sumWeightsRoughly(values, largest[block])
                             : sumWeights(values, largest[block], scale);
    }
  }
}

void LogitBlocks::copyTo(std::span<float> all) const {
  Copy copy;
  for (size_t block = 0; block < count(); ++block) {
    const size_t first = block * blockSize;
    std::copy_n(read(block, changesOf(block, block + 1), copy),
                std::min(blockSize, all.size() - first), all.data() + first);
  }
}

float LogitBlocks::largestLogit() const {
  return largest.empty() ? -infinity : std::ranges::max(largest);
}

Error LogitBlocks::describeBadLogit() const {
  auto describe = [](size_t token, float logit, const char *why) {
    return makeError(ErrorKind::Internal, "the logit of token ", token, " is ",
                     logit, why);
  };
  for (size_t token = 0; token < logits.size(); ++token)
    if (!(logits[token] < infinity))
      return describe(token, logits[token],
                      "; the model computed no finite number");
  const size_t block = static_cast<size_t>(
      std::ranges::find(largest, infinity) - largest.begin());
  Copy copy;
  const float *values = read(block, changesOf(block, block + 1), copy);
  const float *bad = std::find_if_not(
      values, values + blockSize, [](float logit) { return logit < infinity; });
  return describe(block * blockSize + static_cast<size_t>(bad - values), *bad,
                  " after logit-bias and penalties");
}

std::vector<double> LogitBlocks::sumsBefore() const {
  std::vector<double> sums = {0};
  sums.reserve(count() + 1);
  const auto offset = static_cast<double>(largestLogit());
  for (size_t block = 0; block < count(); ++block)
    sums.push_back(sums.back() +
                   weights[block] *
                       std::exp((largest[block] - offset) * scale));
  return sums;
}

float LogitBlocks::thresholdOfRank(size_t rank) const {
  if (rank > count())
    return lowestLogit;
  std::vector<float> ranked = largest;
  auto place = ranked.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::ranges::nth_element(ranked, place, std::greater<>());
  return std::max(*place, lowestLogit);
}
