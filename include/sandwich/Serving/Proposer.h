//===- Proposer.h - Guesses how texts go on ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Speculative decoding (Leviathan, Kalman and Matias 2023): somebody proposes
/// the next tokens of a text, and one step of the model computes the logits
/// behind all of them. The text's own sampler then draws a token from each row
/// of logits in turn, as long as what it drew is what was proposed. Every token
/// is drawn from the model's own distribution given those before it, and from
/// the same random numbers as without proposals: the same seed gives the same
/// text, whatever was proposed. (Their rule accepts more of a proposer that
/// draws its proposals at random, and gives other texts of the same
/// distribution. Proposals that follow from the text, as all here do, make it
/// the same rule as this one.)
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PROPOSER_H
#define SANDWICH_SERVING_PROPOSER_H

#include "sandwich/Serving/Request.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sandwich {

/// A text that is to be continued.
struct ProposalRequest {
  RequestId request;
  uint32_t text;
  /// All that are known. Each call has those of the one before, and perhaps
  /// more.
  std::span<const int32_t> tokens;
  /// Tokens to be proposed at most, at least 1.
  uint64_t most;
};

/// What it proposes follows from the texts alone.
class Proposer {
public:
  virtual ~Proposer() = default;

  /// Tokens that may follow each of `texts`, which are all different: as many
  /// as are wanted, fewer, or none.
  virtual std::vector<std::vector<int32_t>>
  propose(std::span<const ProposalRequest> texts) = 0;

  /// Forgets the texts of a request.
  virtual void forget(RequestId request) = 0;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_PROPOSER_H
