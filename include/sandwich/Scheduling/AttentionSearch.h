//===- AttentionSearch.h - Attention tuned by measuring ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search for schedules of attention, whoever says how long they take.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_ATTENTIONSEARCH_H
#define SANDWICH_SCHEDULING_ATTENTIONSEARCH_H

#include "sandwich/Scheduling/AttentionSchedule.h"

#include <functional>
#include <vector>

namespace sandwich {

/// A step that attention is measured on: segments of equal lengths.
struct AttentionPayload {
  int64_t segments = 1;
  /// Of each segment.
  int64_t tokens = 1;
  /// That the last token of a segment attends to; at least `tokens`.
  int64_t positions = 1;
};

/// Tells how long schedules take.
class AttentionEvaluator {
public:
  virtual ~AttentionEvaluator() = default;

  /// How long attention takes with each of `schedules`, as a share of the time
  /// with the first one. All of them run in turn: machines are noisy. What is
  /// much slower may be measured less well.
  virtual Result<std::vector<double>>
  compare(const AttentionPayload &payload,
          const std::vector<AttentionSchedule> &schedules) = 0;
};

struct TunedAttention {
  AttentionTable table;
  /// Whether the search came to its end.
  bool complete = true;
  /// Schedules that were measured beside others.
  int64_t measurements = 0;
};

/// The payloads of a search for a team of `threads` threads.
struct AttentionPayloads {
  AttentionPayload decode, prefill;

  static AttentionPayloads of(const AttentionShape &shape, int64_t threads,
                              int64_t maxTokens);
};

/// Climbs from the untuned rule's table: of the schedules that differ in one
/// size from the best so far, the fastest is the next, until none is faster by
/// more than noise. First the tiles of single tokens are chosen, then those of
/// prompts, once for each kind of arithmetic, and then into how many parts each
/// entry splits contexts. What is not plainly faster than the rule, side by
/// side, remains the rule's. `ended`, asked between comparisons, says that the
/// time is over; what was found by then is returned. Errors: those of
/// `evaluator`.
Result<TunedAttention> tuneAttention(const AttentionShape &shape,
                                     const Target &target, int64_t threads,
                                     int64_t maxTokens,
                                     AttentionEvaluator &evaluator,
                                     const std::function<bool()> &ended);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_ATTENTIONSEARCH_H
