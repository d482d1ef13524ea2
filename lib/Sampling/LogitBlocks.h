//===- LogitBlocks.h - A row of logits, block by block ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_LOGITBLOCKS_H
#define SANDWICH_LIB_SAMPLING_LOGITBLOCKS_H

#include "BlockKernels.h"

#include "sandwich/Sampling/LogitAdjustments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sandwich {

/// The logits of a row, as the model computed them or as a request changes
/// them, and what is known of each block of them. All that `scan` finds is
/// there once it was called for all blocks.
class LogitBlocks {
public:
  /// `adjustments` may be empty and stays as it is meanwhile, as do the tokens
  /// `allowed`, as in `Sampler::sample`. `scale` is above
  /// zero where sums of weights are wanted, exp((logit - largest) * scale), and
  /// 0 otherwise. Rough sums, which are for scale 1, have a relative error of
  /// at most `roughWeightError`, others `weightError`.
  LogitBlocks(std::span<const float> logits,
              const LogitAdjustments &adjustments, double scale,
              bool rough = false, std::span<const uint64_t> allowed = {});

  size_t tokens() const { return logits.size(); }
  size_t count() const { return largest.size(); }

  /// What the model computed for `token`.
  float unchangedLogit(int32_t token) const {
    return logits[static_cast<size_t>(token)];
  }

  /// Looks at blocks [first, last). Several threads may look at different ones.
  void scan(size_t first, size_t last);

  /// Of all logits; plus infinity if one of them is NaN or plus infinity, minus
  /// infinity if all tokens are barred.
  float largestLogit() const;

  /// An error that names the first logit that is NaN or plus infinity.
  Error describeBadLogit() const;

  /// The sums of exp((logit - largestLogit()) * scale) over the blocks before
  /// each block and, last, over all of them.
  std::vector<double> sumsBefore() const;

  /// A logit that at least `rank` tokens reach; `lowestLogit` if not so many
  /// blocks have a token that is not barred.
  float thresholdOfRank(size_t rank) const;

  /// No more tokens than this have a logit of at least `threshold`.
  size_t tokensAtMost(float threshold) const {
    return blockSize *
           static_cast<size_t>(std::ranges::count_if(
               largest, [=](float logit) { return logit >= threshold; }));
  }

  /// Writes all logits, with changes and minus infinity for tokens that are not
  /// allowed, to `logits`, which has room for them.
  void copyTo(std::span<float> logits) const;

  /// Calls `visit(token, logit)` for each token of blocks [first, last) whose
  /// logit is at least `threshold`, in ascending order.
  template <typename Visit>
  void visitAtLeast(float threshold, size_t first, size_t last,
                    const Visit &visit) const {
    Copy copy;
    std::array<uint32_t, blockSize> positions;
    for (size_t block = first; block < last; ++block) {
      if (largest[block] < threshold)
        continue;
      const float *values = read(block, changesOf(block, block + 1), copy);
      const size_t found = findAtLeast(values, threshold, positions.data());
      for (size_t i = 0; i < found; ++i)
        visit(static_cast<int32_t>(block * blockSize + positions[i]),
              values[positions[i]]);
    }
  }
  template <typename Visit>
  void visitAtLeast(float threshold, const Visit &visit) const {
    visitAtLeast(threshold, 0, count(), visit);
  }

  /// The lowest threshold, which only barred tokens are below.
  static constexpr float lowestLogit = std::numeric_limits<float>::lowest();

private:
  /// A block that is not as the model's row has it: with changes, or the row's
  /// last, on which minus infinity follows.
  struct alignas(64) Copy : std::array<float, blockSize> {};

  using Changes = std::span<const LogitAdjustments::Adjustment>;
  /// A bit for each token of a block.
  using Bits = std::array<uint64_t, blockSize / 64>;

  Changes changesOf(size_t first, size_t last) const {
    return adjustments.ofTokens(first * blockSize, (last - first) * blockSize);
  }
  /// The logits of a block as the model computed them, in the row or in `copy`.
  const float *readUnchanged(size_t block, Copy &copy) const;
  /// The tokens of a block that are allowed.
  Bits allowedOf(size_t block) const;
  static bool allowsAll(const Bits &bits) {
    return (bits[0] & bits[1] & bits[2] & bits[3]) == ~uint64_t{0};
  }
  static bool allowsNone(const Bits &bits) {
    return (bits[0] | bits[1] | bits[2] | bits[3]) == 0;
  }
  /// The same with `changes`, which are the block's, and without the tokens
  /// that are not allowed.
  const float *read(size_t block, Changes changes, Copy &copy) const;
  /// The largest of them; before the changes it is `unchanged`.
  float findLargest(size_t block, Changes changes, float unchanged,
                    Copy &copy) const;

  std::span<const float> logits;
  const LogitAdjustments &adjustments;
  double scale;
  bool rough;
  std::span<const uint64_t> allowed;
  /// Of each block, the largest logit.
  std::vector<float> largest;
  /// Of each block, the sum of exp((logit - its largest logit) * scale).
  std::vector<double> weights;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_LOGITBLOCKS_H
