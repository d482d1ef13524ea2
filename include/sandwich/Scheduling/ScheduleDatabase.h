//===- ScheduleDatabase.h - What tuning found -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Schedules that were searched once are kept in a file and found again by what
/// they depend on: the CPU, the team, the matmul and the compiler. The file is
/// protobuf's text form, proto/schedules.proto. Only the compiler's side links
/// this; the runtime has the light protobuf library.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_SCHEDULEDATABASE_H
#define SANDWICH_SCHEDULING_SCHEDULEDATABASE_H

#include "sandwich/Scheduling/ScheduleTuner.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandwich {

/// Everything that a tuned table depends on.
struct ScheduleKey {
  std::string compilerVersion;
  /// As LLVM lists them.
  std::string cpuFeatures;
  int64_t l1DataBytes = 0;
  int64_t l2Bytes = 0;
  int64_t threads = 0;
  bool bf16Weights = false;
  int64_t n = 0;
  int64_t k = 0;
  int64_t columnUnit = 1;
  Packing packing;

  /// The key of `group` tuned for `target` by this version of Sandwich; a shape
  /// without a packing has that of `isa`.
  static ScheduleKey of(const TuningGroup &group, const Target &target,
                        MatrixISA isa);

  /// The matmul, with its packing.
  MatmulShape shape() const;

  bool operator<(const ScheduleKey &other) const;
  bool operator==(const ScheduleKey &) const = default;
};

/// A tuned table, and the rows it was measured at.
struct TunedSchedules {
  ScheduleTable table;
  /// Whether every number of rows that was asked for is in it.
  bool complete = false;
  /// Rows and seconds, ascending.
  std::vector<std::pair<int64_t, double>> measurements;
  /// How many numbers of rows were asked for, and the largest of them.
  int64_t requestedRows = 0, largestRows = 0;

  static TunedSchedules of(const TunedGroup &group);
  /// What `tuneGroup` goes on from.
  std::vector<Choice> choices() const;
  /// Whether tuning for `rows` would find nothing to do.
  bool covers(const std::vector<int64_t> &rows) const;
};

class ScheduleDatabase {
public:
  /// Reads and checks all of `path`. Errors name the file, the line or the
  /// field, and the reason: absent, no database, damaged, of another format
  /// version, a micro-kernel that is unknown or does not fit its registers, a
  /// schedule that cannot run its matmul.
  static Result<ScheduleDatabase> load(const std::string &path);

  /// Writes a file beside `path`, syncs it and renames it: a program that is
  /// killed at any moment leaves the old file or the new one. Removes what
  /// killed programs left beside it.
  Status save(const std::string &path) const;

  /// The table of `key`, or null.
  const TunedSchedules *find(const ScheduleKey &key) const;

  /// The best table for `group` in any packing of `isa`, where its shape does
  /// not say which one: complete ones first, then those measured at more rows.
  std::optional<std::pair<ScheduleKey, TunedSchedules>>
  findTuned(const TuningGroup &group, const Target &target,
            MatrixISA isa) const;

  /// Adds or replaces the table of `key`.
  void insert(const ScheduleKey &key, TunedSchedules schedules);

  /// Adds all of `other`. Where both know a key, a complete table wins, then
  /// the one measured at more rows, then that of `other`.
  void merge(const ScheduleDatabase &other);

  size_t size() const { return groups.size(); }
  const std::map<ScheduleKey, TunedSchedules> &all() const { return groups; }

private:
  std::map<ScheduleKey, TunedSchedules> groups;
};

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_SCHEDULEDATABASE_H
