//===- StepPlan.h - What the engine is to compute next ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_STEPPLAN_H
#define SANDWICH_SERVING_STEPPLAN_H

#include "sandwich/Runtime/Memory/BlockPool.h"
#include "sandwich/Serving/Request.h"
#include "sandwich/Serving/StepCostModel.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sandwich {

/// What steps can hold.
struct SchedulerLimits {
  struct Phase {
    uint64_t tokens = 0;
    /// Segments, each of another sequence.
    uint64_t sequences = 0;
    uint64_t logitRows = 0;
  };
  Phase prefill;
  /// Every segment has one token and a row of logits.
  Phase decode;
  /// Tokens of one sequence that can be computed.
  uint64_t contextLength = 0;
};

/// Consecutive tokens that one sequence gets.
struct StepSegment {
  RequestId request;
  /// Which of the request's continuations, from 0.
  uint32_t text;
  /// Holds the tokens before; the blocks for `tokens` are reserved.
  Sequence *sequence;
  std::span<const int32_t> tokens;
  /// How many tokens are to be sampled from the logits of the last token; 0:
  /// its logits are not wanted. More than one are the first tokens of as many
  /// continuations, of this one and of those after it.
  uint32_t samples;
  /// Known tokens of the prompt that the logits of the first tokens tell how
  /// probable they were: each is the one that follows. Where there are some,
  /// the logits of all tokens are wanted.
  std::span<const int32_t> scored = {};
  /// How many of `tokens`, the last ones, are not known but proposed, behind
  /// one that is. `samples` is 1, and for each row of logits in turn a token is
  /// to be sampled: from that of the known token, and from the next one as long
  /// as the token before is what was proposed and did not end the text.
  uint64_t proposed = 0;

  bool wantsAllRows() const { return !scored.empty() || proposed > 0; }
  /// How many tokens are sampled for the segment where these are those that
  /// were chosen from its first rows.
  uint64_t drawn(std::span<const ChosenToken> chosen) const;
  /// Rows of logits that the step gives for it.
  uint64_t rows() const {
    return wantsAllRows() ? tokens.size() : std::min<uint64_t>(samples, 1);
  }
};

/// One step. Sequences and tokens stay where they are until `Scheduler::
/// complete` or `fail` gets it back.
struct StepPlan {
  /// Counts steps from 1.
  uint64_t number = 0;
  /// Empty: there is nothing to do.
  std::vector<StepSegment> segments;
  StepShape shape;
  StepPhase phase() const { return shape.phase; }
  /// When it was planned, in the scheduler's seconds, and how long it should
  /// take.
  double plannedAt = 0;
  double predictedSeconds = 0;
  /// Requests that had to give up their blocks and will go on later; some may
  /// be named even in a plan without segments.
  std::vector<RequestId> preempted;
  /// Requests that have ended since the last plan or the last completed step.
  std::vector<RequestEnd> ended;
};

/// What came of a step.
struct StepEvents {
  std::vector<ScoreEvent> scores;
  std::vector<TokenEvent> tokens;
  std::vector<RequestEnd> ended;
};

} // namespace sandwich

#endif // SANDWICH_SERVING_STEPPLAN_H
