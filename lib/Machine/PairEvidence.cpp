//===- PairEvidence.cpp - Which cores slow each other down ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairEvidence.h"

#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

using namespace sandwich;
using namespace sandwich::latent;

std::vector<Grouping> latent::groupingsOf(unsigned places) {
  std::vector<Grouping> groupings;
  for (unsigned cores = 2; cores < places; ++cores)
    for (unsigned stride = 1; cores * stride <= places; ++stride)
      if (places % (cores * stride) == 0)
        groupings.push_back({cores, stride});
  return groupings;
}

bool latent::areNested(const Grouping &first, const Grouping &second,
                       unsigned places) {
  bool inFirst = true, inSecond = true;
  for (unsigned i = 0; i < places; ++i)
    for (unsigned j = 0; j < i; ++j) {
      const bool one = first.groupOf(i) == first.groupOf(j);
      const bool other = second.groupOf(i) == second.groupOf(j);
      inFirst &= one || !other;
      inSecond &= other || !one;
    }
  return inFirst || inSecond;
}

double latent::robustDeviation(std::span<const double> values) {
  if (values.empty())
    return 0;
  std::vector<double> sizes;
  for (double value : values)
    sizes.push_back(std::abs(value));
  // Half of a normal distribution lies within so many deviations.
  constexpr double medianOfNormal = 0.6745;
  return median(std::move(sizes)) / medianOfNormal;
}

/// The number of a pair of a part's cores, of which the first is larger.
static size_t pairNumber(unsigned first, unsigned second) {
  return size_t{first} * (first - 1) / 2 + second;
}

PairEvidence::PairEvidence(std::vector<std::vector<unsigned>> places,
                           unsigned size)
    : places(std::move(places)), partSize(size), groupings(groupingsOf(size)) {
  for (const std::vector<unsigned> &part : this->places) {
    firstCore.push_back(cores);
    cores += part.size();
  }
}

//===----------------------------------------------------------------------===//
// Moments and single cores
//===----------------------------------------------------------------------===//

PairEvidence::Column PairEvidence::withoutMoments() const {
  std::map<std::pair<size_t, size_t>, std::vector<double>> moments;
  auto momentOf = [](const Observation &observation) {
    return std::pair(observation.batch, observation.members.size());
  };
  for (const Observation &observation : observations)
    moments[momentOf(observation)].push_back(observation.value);
  std::map<std::pair<size_t, size_t>, double> middles;
  for (auto &[moment, values] : moments)
    middles[moment] = median(std::move(values));
  Column column;
  for (const Observation &observation : observations)
    column.push_back(observation.value - middles[momentOf(observation)]);
  return column;
}

void PairEvidence::factorCores() {
  factor.assign(cores * cores, 0);
  for (const Observation &observation : observations) {
    const double share = 1 / static_cast<double>(observation.members.size());
    const size_t first = firstCore[observation.part];
    for (unsigned i : observation.members)
      for (unsigned j : observation.members)
        factor[(first + i) * cores + first + j] += share * share;
  }
  // What all cores have in common is no core's own, and a core that was never
  // measured has no effect.
  constexpr double ridge = 1e-6;
  for (size_t i = 0; i < cores; ++i)
    factor[i * cores + i] += ridge * (1 + factor[i * cores + i]);
  for (size_t i = 0; i < cores; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = factor[i * cores + j];
      for (size_t k = 0; k < j; ++k)
        sum -= factor[i * cores + k] * factor[j * cores + k];
      factor[i * cores + j] =
          i == j ? std::sqrt(sum) : sum / factor[j * cores + j];
    }
}

PairEvidence::Column PairEvidence::withoutCores(const Column &column) const {
  // Of the pairs of so few cores too little would be left.
  constexpr unsigned fewest = 6;
  if (partSize < fewest)
    return column;
  std::vector<double> effects(cores);
  auto shareOf = [](const Observation &observation) {
    return 1 / static_cast<double>(observation.members.size());
  };
  for (size_t n = 0; n < observations.size(); ++n)
    for (unsigned i : observations[n].members)
      effects[firstCore[observations[n].part] + i] +=
          shareOf(observations[n]) * column[n];
  for (size_t i = 0; i < cores; ++i) {
    for (size_t k = 0; k < i; ++k)
      effects[i] -= factor[i * cores + k] * effects[k];
    effects[i] /= factor[i * cores + i];
  }
  for (size_t i = cores; i-- > 0;) {
    for (size_t k = i + 1; k < cores; ++k)
      effects[i] -= factor[k * cores + i] * effects[k];
    effects[i] /= factor[i * cores + i];
  }
  Column left = column;
  for (size_t n = 0; n < observations.size(); ++n)
    for (unsigned i : observations[n].members)
      left[n] -= shareOf(observations[n]) *
                 effects[firstCore[observations[n].part] + i];
  return left;
}

void PairEvidence::clip(Column &rest, Column &fitted) const {
  std::map<size_t, std::vector<double>> ofSize;
  for (size_t n = 0; n < observations.size(); ++n)
    ofSize[observations[n].members.size()].push_back(rest[n]);
  std::map<size_t, double> most;
  for (const auto &[size, values] : ofSize)
    most[size] = clipDeviations * robustDeviation(values);
  for (size_t n = 0; n < observations.size(); ++n) {
    const double limit = most[observations[n].members.size()];
    fitted[n] += std::clamp(rest[n], -limit, limit);
  }
}

//===----------------------------------------------------------------------===//
// Groupings
//===----------------------------------------------------------------------===//

PairEvidence::Column PairEvidence::centered(Column column) const {
  std::map<size_t, std::pair<double, double>> sums;
  for (size_t n = 0; n < observations.size(); ++n) {
    auto &[sum, count] = sums[observations[n].members.size()];
    sum += column[n];
    count += 1;
  }
  for (size_t n = 0; n < observations.size(); ++n) {
    const auto &[sum, count] = sums[observations[n].members.size()];
    column[n] -= sum / count;
  }
  return withoutCores(column);
}

PairEvidence::Column
PairEvidence::togetherColumn(const Grouping &grouping) const {
  Column column;
  std::vector<unsigned> counts(partSize);
  for (const Observation &observation : observations) {
    std::ranges::fill(counts, 0);
    double pairs = 0;
    for (unsigned member : observation.members)
      pairs += counts[grouping.groupOf(places[observation.part][member])]++;
    column.push_back(pairs);
  }
  return centered(std::move(column));
}

PairEvidence::Column PairEvidence::nearColumn(bool ring) const {
  Column column;
  for (const auto &[part, members, value, batch] : observations) {
    double sum = 0;
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const unsigned first = places[part][members[i]];
        const unsigned second = places[part][members[j]];
        const unsigned distance =
            first > second ? first - second : second - first;
        sum -= ring ? std::min(distance, partSize - distance) : distance;
      }
    column.push_back(sum);
  }
  return centered(std::move(column));
}

namespace {
/// The slope and the correlation of observations of sets of one size.
struct Line {
  double xx = 0, xy = 0, yy = 0, count = 0;

  /// How much less likely chance makes what goes down with x.
  double evidence() const {
    if (xx < 1e-9 || yy <= 0 || xy >= 0)
      return 0;
    const double square = std::min(xy * xy / (xx * yy), 1 - 1e-9);
    return -count / 2 * std::log(1 - square);
  }
};
} // namespace

static std::map<size_t, Line>
linesOf(const std::vector<Observation> &observations,
        const std::vector<double> &x, const std::vector<double> &y) {
  std::map<size_t, Line> lines;
  for (size_t n = 0; n < observations.size(); ++n) {
    Line &line = lines[observations[n].members.size()];
    line.xx += x[n] * x[n];
    line.xy += x[n] * y[n];
    line.yy += y[n] * y[n];
    line.count += 1;
  }
  return lines;
}

double PairEvidence::evidenceOf(const Column &column) const {
  double evidence = 0;
  for (const auto &[size, line] : linesOf(observations, column, rest))
    evidence += line.evidence();
  return evidence;
}

void PairEvidence::update() {
  factorCores();
  const Column values = withoutMoments();
  rest = withoutCores(values);
  // What outliers did to the cores' effects goes with them.
  clipped.assign(values.size(), 0);
  for (size_t n = 0; n < values.size(); ++n)
    clipped[n] = values[n] - rest[n];
  clip(rest, clipped);
  rest = withoutCores(clipped);
  ranking.clear();
  for (const Grouping &grouping : groupings)
    ranking.push_back({grouping, evidenceOf(togetherColumn(grouping))});
  std::ranges::stable_sort(ranking, std::ranges::greater(),
                           &Explanation::evidence);
  distanceEvidence = std::max(evidenceOf(nearColumn(/*ring=*/false)),
                              evidenceOf(nearColumn(/*ring=*/true)));
}

double PairEvidence::rivalEvidence() const {
  return std::max(distanceEvidence,
                  ranking.size() > 1 ? ranking[1].evidence : 0);
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

PairEvidence::PairValues PairEvidence::pairMeans(const Column &column,
                                                 bool even, bool odd) const {
  PairValues sums, weights;
  for (const std::vector<unsigned> &part : places) {
    sums.emplace_back(part.size() * (part.size() - 1) / 2);
    weights.emplace_back(sums.back().size());
  }
  for (size_t n = 0; n < observations.size(); ++n) {
    const auto &[part, members, value, batch] = observations[n];
    if (!(batch % 2 ? odd : even))
      continue;
    // Of a large set many pairs may be the reason.
    const double weight = 1 / static_cast<double>(members.size());
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const size_t pair = pairNumber(std::max(members[i], members[j]),
                                       std::min(members[i], members[j]));
        sums[part][pair] += weight * column[n];
        weights[part][pair] += weight;
      }
  }
  for (size_t part = 0; part < sums.size(); ++part)
    for (size_t pair = 0; pair < sums[part].size(); ++pair)
      sums[part][pair] /= weights[part][pair];
  return sums;
}

double PairEvidence::chance(std::mt19937_64 &random) const {
  // Only what was observed, with the pairs that each grouping puts together.
  PairValues values = pairMeans(rest, true, true);
  std::vector<std::vector<std::vector<uint32_t>>> together(groupings.size());
  std::vector<double> counts(groupings.size());
  double sum = 0, squares = 0, count = 0;
  for (size_t part = 0; part < values.size(); ++part) {
    std::vector<double> known;
    std::vector<std::vector<uint32_t>> pairs(groupings.size());
    for (unsigned i = 0; i < places[part].size(); ++i)
      for (unsigned j = 0; j < i; ++j) {
        const double value = values[part][pairNumber(i, j)];
        if (std::isnan(value))
          continue;
        for (size_t g = 0; g < groupings.size(); ++g)
          if (groupings[g].groupOf(places[part][i]) ==
              groupings[g].groupOf(places[part][j]))
            pairs[g].push_back(static_cast<uint32_t>(known.size()));
        known.push_back(value);
        sum += value;
        squares += value * value;
        count += 1;
      }
    for (size_t g = 0; g < groupings.size(); ++g) {
      counts[g] += static_cast<double>(pairs[g].size());
      together[g].push_back(std::move(pairs[g]));
    }
    values[part] = std::move(known);
  }
  if (count < 2)
    return 1;
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  // How far the mean of the pairs together is below that of all, in deviations.
  auto best = [&] {
    double most = 0;
    for (size_t g = 0; g < groupings.size(); ++g) {
      if (counts[g] == 0 || counts[g] == count)
        continue;
      double inside = 0;
      for (size_t part = 0; part < values.size(); ++part)
        for (uint32_t pair : together[g][part])
          inside += values[part][pair];
      most = std::max(
          most, (mean - inside / counts[g]) /
                    std::sqrt(variance / counts[g] * (1 - counts[g] / count)));
    }
    return most;
  };
  // Rounding must not make equals differ.
  const double observed = best() * (1 - 1e-9);
  return shareOfTries([&] {
    for (std::vector<double> &part : values)
      std::ranges::shuffle(part, random);
    return best() >= observed;
  });
}

PairEvidence::Column PairEvidence::bestFit() const {
  Column column = togetherColumn(ranking.front().grouping);
  const std::map<size_t, Line> lines = linesOf(observations, column, rest);
  for (size_t n = 0; n < observations.size(); ++n) {
    const Line &line = lines.at(observations[n].members.size());
    column[n] *= line.xx > 0 ? line.xy / line.xx : 0;
  }
  return column;
}

PairEvidence::Reproduced PairEvidence::reproduced() const {
  /// Means of products and of squares of pairs that both halves have.
  auto compare = [&](const Column &column, double &product, double &noise) {
    const PairValues even = pairMeans(column, true, false);
    const PairValues odd = pairMeans(column, false, true);
    double count = 0, evens = 0, odds = 0, products = 0;
    for (size_t part = 0; part < even.size(); ++part)
      for (size_t pair = 0; pair < even[part].size(); ++pair) {
        const double first = even[part][pair], second = odd[part][pair];
        if (std::isnan(first) || std::isnan(second))
          continue;
        count += 1;
        products += first * second;
        evens += first * first;
        odds += second * second;
      }
    product = products;
    noise = count > 0 ? std::sqrt(evens * odds / count) : 0;
  };
  double all = 0, noise = 0, fit = 0, unused = 0;
  compare(rest, all, noise);
  compare(bestFit(), fit, unused);
  if (noise <= 0)
    return {};
  return {all / noise, all > 0 ? fit / all : 1};
}

std::vector<std::vector<std::vector<unsigned>>>
PairEvidence::linkedCores() const {
  // Cores of groups of other sizes than others' differ by themselves too.
  const PairValues values = pairMeans(clipped, true, true);
  // The threshold that divides all pairs into two with the least squares.
  std::vector<double> sorted;
  for (const std::vector<double> &part : values)
    for (double value : part)
      if (!std::isnan(value))
        sorted.push_back(value);
  std::ranges::sort(sorted);
  const double total = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  double below = 0, best = 0,
         threshold = -std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < sorted.size(); ++i) {
    below += sorted[i - 1];
    const auto low = static_cast<double>(i);
    const auto high = static_cast<double>(sorted.size() - i);
    const double between =
        below * below / low + (total - below) * (total - below) / high;
    if (between > best) {
      best = between;
      threshold = (sorted[i - 1] + sorted[i]) / 2;
    }
  }
  std::vector<std::vector<std::vector<unsigned>>> linked;
  for (size_t part = 0; part < values.size(); ++part) {
    std::vector<unsigned> leader(places[part].size());
    std::iota(leader.begin(), leader.end(), 0U);
    for (unsigned i = 0; i < leader.size(); ++i)
      for (unsigned j = 0; j < i; ++j)
        if (values[part][pairNumber(i, j)] < threshold &&
            leader[i] != leader[j])
          std::ranges::replace(leader, unsigned{leader[i]},
                               unsigned{leader[j]});
    std::map<unsigned, std::vector<unsigned>> sets;
    for (unsigned i = 0; i < leader.size(); ++i)
      sets[leader[i]].push_back(i);
    linked.emplace_back();
    for (auto &[first, set] : sets)
      if (set.size() > 1)
        linked.back().push_back(std::move(set));
  }
  return linked;
}
