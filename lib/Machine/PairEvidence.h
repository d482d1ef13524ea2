//===- PairEvidence.h - Which cores slow each other down --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Statistics of noisy measurements of sets of cores: which grouping of the
/// cores explains them.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_MACHINE_PAIREVIDENCE_H
#define SANDWICH_LIB_MACHINE_PAIREVIDENCE_H

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace sandwich::latent {

/// Which groups the cores of a part are in, by their places in it, as in
/// `LatentGroup`.
struct Grouping {
  unsigned cores = 0;
  unsigned stride = 1;

  unsigned groupOf(unsigned place) const {
    const unsigned block = cores * stride;
    return place / block * stride + place % stride;
  }
  bool operator==(const Grouping &) const = default;
};

/// All groupings of a part of `places` cores, without that into one group.
std::vector<Grouping> groupingsOf(unsigned places);

/// Whether each group of one of them lies in a group of the other.
bool areNested(const Grouping &first, const Grouping &second, unsigned places);

/// A share of all observations lie beyond this many deviations, whatever made
/// them; they count as if they were there.
inline constexpr double clipDeviations = 4;

/// The deviation of normal numbers that have the median of `values`' absolute
/// ones.
double robustDeviation(std::span<const double> values);

/// Fewer tries of chance than this share may do as well as what was found.
inline constexpr double mostChance = 1e-3;

/// The share of tries in which `isAsGood`, which shuffles first, says that
/// chance does as well; ends as soon as that is too large. The unshuffled one
/// counts as a try.
template <typename Try> double shareOfTries(Try isAsGood) {
  constexpr int most = 4999;
  int done = 0, asGood = 0;
  while (done < most && 1 + asGood < mostChance * (1 + most)) {
    ++done;
    asGood += isAsGood();
  }
  return (1.0 + asGood) / (1.0 + done);
}

/// The cores of a set that was measured.
struct Observation {
  /// Which part, and numbers among its usable cores.
  size_t part = 0;
  std::vector<unsigned> members;
  /// A logarithm; smaller where cores share something.
  double value = 0;
  /// What was measured at about the same time has one number.
  size_t batch = 0;
};

/// How well a grouping explains the observations.
struct Explanation {
  Grouping grouping;
  /// By how much more likely it makes them than chance, as a logarithm.
  double evidence = 0;
};

/// What observations tell of one signal in some parts of equal size.
class PairEvidence {
public:
  /// `places` has for each part the place of each usable core, ascending, of
  /// `size` in all.
  PairEvidence(std::vector<std::vector<unsigned>> places, unsigned size);

  void add(Observation observation) {
    observations.push_back(std::move(observation));
  }
  size_t size() const { return observations.size(); }

  /// Estimates all that follows from the observations so far.
  void update();

  /// The groupings, best first.
  const std::vector<Explanation> &explanations() const { return ranking; }
  /// What the best other explanation has as evidence: another grouping, or the
  /// distance of the cores' numbers, as on a ring or in a row.
  double rivalEvidence() const;

  /// The share of tries in which pairs' values, shuffled, suit some grouping
  /// as well as they suit the best one unshuffled.
  double chance(std::mt19937_64 &random) const;

  /// How much of the variance of pairs is there in the first half of the
  /// observations and in the second, in deviations of what noise makes of it;
  /// and the part of it that the best grouping explains.
  struct Reproduced {
    double deviations = 0;
    double explained = 0;
  };
  Reproduced reproduced() const;

  /// For each part, sets of at least two cores of which all are linked by pairs
  /// that clearly share something, as numbers among its usable cores.
  std::vector<std::vector<std::vector<unsigned>>> linkedCores() const;

private:
  /// A number for each observation.
  using Column = std::vector<double>;
  /// A number for each pair of each part; not a number where the pair was not
  /// observed.
  using PairValues = std::vector<std::vector<double>>;

  void factorCores();
  /// What is left of a column without what the single cores explain.
  Column withoutCores(const Column &column) const;
  Column withoutMoments() const;
  void clip(Column &rest, Column &fitted) const;
  /// For each observation how many of its pairs are in one group, and how near
  /// its cores are to each other, both without what single cores explain and
  /// without the mean of sets of its size.
  Column togetherColumn(const Grouping &grouping) const;
  Column nearColumn(bool ring) const;
  Column centered(Column column) const;
  double evidenceOf(const Column &column) const;
  /// Means over the observations with `batch % 2` in `halves`.
  PairValues pairMeans(const Column &column, bool even, bool odd) const;
  /// The column of the best grouping, scaled to fit in each size of sets.
  Column bestFit() const;

  std::vector<std::vector<unsigned>> places;
  unsigned partSize;
  std::vector<Grouping> groupings;
  std::vector<Observation> observations;
  /// Of each part, the number of its first core among those of all.
  std::vector<size_t> firstCore;
  size_t cores = 0;
  /// Cholesky's factor of what cores have in common by their sets.
  std::vector<double> factor;
  /// What moments do not explain, outliers clipped, and what single cores do
  /// not explain of that.
  Column clipped, rest;
  std::vector<Explanation> ranking;
  double distanceEvidence = 0;
};

} // namespace sandwich::latent

#endif // SANDWICH_LIB_MACHINE_PAIREVIDENCE_H
