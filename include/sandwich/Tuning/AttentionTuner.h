//===- AttentionTuner.h - Schedules for a model's attention -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_ATTENTIONTUNER_H
#define SANDWICH_TUNING_ATTENTIONTUNER_H

#include "sandwich/Scheduling/AttentionSearch.h"
#include "sandwich/Tuning/ModelTuner.h"

#include <memory>

namespace sandwich {

struct AttentionMeasuringOptions {
  /// Threads of the team, and the CPUs they stay on (see PhaseTeamOptions).
  unsigned threads = 1;
  std::vector<unsigned> cpus;
  /// The most tokens of a step.
  int64_t maxTokens = 512;
  /// Steps that will be measured, for which there have to be keys and values;
  /// without any, those that tuning measures.
  std::vector<AttentionPayload> payloads = {};
  /// Asked between compilations and between runs; true ends a measurement with
  /// an error (Ctrl-C).
  std::function<bool()> stop = {};
};

/// Attention beside what keeps it from being faster.
struct AttentionLimit {
  /// Of one layer.
  double seconds = 0;
  /// The same threads reading as many keys and values, without doing anything
  /// with them.
  double readSeconds = 0;
  /// Bytes of these, and floating-point operations of a layer.
  double bytes = 0, operations = 0;
  /// The median of how much of `seconds` reading takes.
  double readShare = 0;
};

/// Measures attention on this machine: programs with nothing but
/// `lm.attention`, compiled by the passes that compile models, on the team that
/// will run them. They read several layers of a cache of random keys and
/// values, so that these come from memory.
class MeasuringAttentionEvaluator : public AttentionEvaluator {
public:
  /// Errors: instructions of the target that this CPU lacks, too little memory,
  /// too few threads.
  static Result<std::unique_ptr<MeasuringAttentionEvaluator>>
  create(const AttentionShape &shape, const Target &target,
         const AttentionMeasuringOptions &options);

  /// Runs `schedule` in turn with plain reading, and takes medians. Errors: as
  /// `compare`.
  virtual Result<AttentionLimit>
  compareToReading(const AttentionPayload &payload,
                   const AttentionSchedule &schedule, size_t rounds) = 0;
};

/// What tuning the attention of a model came to.
struct TunedModelAttention {
  /// In the order of the shapes. Where there was no time, the untuned rule's.
  std::vector<AttentionTable> tables;
  int64_t measurements = 0;
  /// Tables that the database had.
  int64_t known = 0;
  double seconds = 0;
  /// Whether all searches came to their end.
  bool complete = true;

  /// Adds what tuning for another team came to.
  void append(TunedModelAttention other);
};

/// Tunes attention of each of `shapes` in steps of at most `maxTokens`, for
/// `target` on this machine, as `tuneModel` tunes matmuls: with its threads,
/// CPUs, seconds and database. What was not searched to its end is not in the
/// database. Errors: as `tuneModel`.
Result<TunedModelAttention>
tuneModelAttention(const std::vector<AttentionShape> &shapes,
                   const Target &target, int64_t maxTokens,
                   const ModelTuningOptions &options,
                   const TuningProgress &progress);

} // namespace sandwich

#endif // SANDWICH_TUNING_ATTENTIONTUNER_H
