//===- ModelTuner.h - Schedules for the matmuls of a model ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MODELTUNER_H
#define SANDWICH_TUNING_MODELTUNER_H

#include "sandwich/Scheduling/ScheduleDatabase.h"
#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Scheduling/Strategies.h"
#include "sandwich/Target/Target.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace sandwich {

/// A matmul to find schedules for.
struct TunedMatmul {
  MatmulShape shape;
  /// The most rows that it is worth measuring for.
  int64_t maxRows = 1;
  /// Whether it runs for sequences, not for their tokens: mostly with one row,
  /// in each step.
  bool forSequences = false;
};

struct ModelTuningOptions : TuningOptions {
  Strategy strategy = Strategy::Sandwich;
  /// Threads of the team, and the CPUs they stay on while measuring.
  int64_t threads = 1;
  std::vector<unsigned> cpus;
  /// Numbers of rows to tune for, ascending.
  std::vector<int64_t> rows;
  /// What the packings of weights are chosen for.
  RowTrace trace;
  /// For all matmuls together. What is not tuned by then is left to the untuned
  /// rule.
  double seconds = std::numeric_limits<double>::infinity();
  /// The schedule database: what is in it is not tuned again, and what is
  /// tuned is added to it, now and then as well as at the end. What was not
  /// measured, as that of the cost model, is not.
  std::string database;
  /// So much work is lost at most when the process is killed.
  double secondsBetweenSaves = 5;
};

/// What tuning a model came to.
struct TunedModel {
  /// In the order of the matmuls; with an empty log where the database knew
  /// the table. Their tables serve every number of rows, with all that the
  /// database knows. Where the time did not even suffice to choose a packing,
  /// the shape has none, and the table is the untuned rule's.
  std::vector<TunedGroup> groups;
  /// Questions that had to be measured, and compilations for them.
  int64_t measurements = 0;
  int64_t compilations = 0;
  double seconds = 0;
  /// Tables that the database had.
  int64_t known = 0;
  /// What all threads multiply and read at best, and what of the former the
  /// fastest micro-kernel reaches with its operands in cache; 0 if nothing was
  /// measured.
  double flopsPerSecond = 0, flopsPerSecondInCache = 0, readBytesPerSecond = 0;

  /// Adds what tuning for another team came to. Speeds are those of the first
  /// team that measured them.
  void append(TunedModel other);
};

/// Hears which share of the work is done, from 0 to 1; an error ends tuning.
/// What was tuned is in the database then.
using TuningProgress = std::function<Status(double)>;

/// Tunes each of `matmuls` for `target` on this machine. Errors: those of
/// `progress`; a database that cannot be read or written; no rows; instructions
/// that this CPU lacks.
Result<TunedModel> tuneModel(const std::vector<TunedMatmul> &matmuls,
                             const Target &target,
                             const ModelTuningOptions &options,
                             const TuningProgress &progress);

/// Those whose shapes differ, in the order of their first use, with the most
/// rows of any of them, and for tokens if any of them is.
std::vector<TunedMatmul>
differentShapes(const std::vector<TunedMatmul> &matmuls);

} // namespace sandwich

#endif // SANDWICH_TUNING_MODELTUNER_H
