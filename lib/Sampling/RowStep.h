//===- RowStep.h - One row on its way to a token ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SAMPLING_ROWSTEP_H
#define SANDWICH_LIB_SAMPLING_ROWSTEP_H

#include "LogitBlocks.h"

#include "sandwich/Sampling/Sampler.h"

#include <cstddef>
#include <optional>
#include <span>

namespace sandwich {

/// `Sampler::sample` in two parts, of which the first can be divided among
/// threads.
class RowStep {
public:
  /// What `row` refers to outlives the step; its sampler stays as it is until
  /// `finish`.
  explicit RowStep(const SamplingRow &row);

  size_t blocks() const { return changed.count(); }

  /// Looks at blocks [first, last). Several threads may look at different ones.
  void scan(size_t first, size_t last);

  /// Once all blocks were scanned.
  Result<SampledToken> finish();

private:
  /// The row whose sums of weights at temperature 1 give the probabilities that
  /// the model computed; null if nobody asked for them.
  const LogitBlocks *rowOfProbabilities() const;

  /// Why no token can be chosen where all logits are minus infinity.
  Error describeNoToken() const;

  /// The token at `place`, in [0, 1).
  Result<int32_t> drawToken(double place) const;
  /// The same by the row's kernel.
  Result<int32_t> drawByKernel(double place) const;

  SamplingRow row;
  /// With what the request changes of them, to choose from.
  LogitBlocks changed;
  /// As the model computed them, where that is another row or another scale.
  std::optional<LogitBlocks> model;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SAMPLING_ROWSTEP_H
