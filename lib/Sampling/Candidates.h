//===- Candidates.h - Tokens that may be chosen, by probability --*- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_CANDIDATES_H
#define SANDWICH_LIB_SAMPLING_CANDIDATES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sandwich {

/// A token that may be chosen.
struct Candidate {
  float logit;
  int32_t token;
  double weight;
};
using Candidates = std::vector<Candidate>;

/// Equal logits are told apart by the token, so that there is one order.
inline bool isMoreProbable(const Candidate &a, const Candidate &b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

/// In the order in which they are.
double sumOfWeights(const Candidates &candidates);

/// Candidates by probability, most probable first, of which only those are
/// sorted among which something is looked for.
class RankedCandidates {
public:
  /// `candidates` is not empty. Those whose logits differ by more than `range`,
  /// above zero, from the largest are taken to matter little.
  RankedCandidates(const Candidates &candidates, double range);

  /// The sum of the weights of the first `count`, which are not all.
  double sumOfFirst(size_t count);

  struct Place {
    int32_t token;
    /// Of the weights up to and with the token's.
    double sum;
  };
  /// The first candidate at which the sum of weights exceeds `target`. Nothing
  /// if none does, or if another one might, were `target` or a sum wrong by
  /// `error`.
  std::optional<Place> findSum(double target, double error);

private:
  /// Sorts a bucket and returns its candidates.
  auto sorted(size_t bucket);

  Candidates candidates;
  /// The candidates of bucket i are those from `begins[i]` to `begins[i + 1]`;
  /// all are more probable than those of the next.
  std::vector<size_t> begins;
  /// The weights before each bucket and, last, of all.
  std::vector<double> sumsBefore;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_CANDIDATES_H
