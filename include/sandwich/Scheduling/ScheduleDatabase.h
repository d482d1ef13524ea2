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
/// they depend on: the machine, the team, the matmul, the strategy and the
/// compiler. The file is protobuf's text form, proto/schedules.proto. Only the
/// compiler's side links this; the runtime has the light protobuf library.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_SCHEDULEDATABASE_H
#define SANDWICH_SCHEDULING_SCHEDULEDATABASE_H

#include "sandwich/Scheduling/AttentionSchedule.h"
#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Scheduling/Strategies.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sandwich {

/// What a measurement depends on of the machine that it was made on.
struct MeasuringMachine {
  /// All that the CPU has, not only what code uses, as LLVM lists them.
  std::string cpuFeatures;
  /// Bytes that a core sees; 0 where it is not known.
  int64_t l1DataBytes = 0, l2Bytes = 0, l3Bytes = 0;

  /// This one.
  static const MeasuringMachine &host();

  auto operator<=>(const MeasuringMachine &) const = default;
};

/// Everything that a tuned table depends on.
struct ScheduleKey {
  /// See `scheduleVersion`.
  std::string compilerVersion;
  Strategy strategy = Strategy::Sandwich;
  MeasuringMachine machine;
  /// What the code may use, as LLVM lists it.
  std::string targetFeatures;
  int64_t threads = 0;
  StorageFormat storage;
  int64_t n = 0;
  int64_t k = 0;
  int64_t columnUnit = 1;
  Packing packing;
  bool deterministic = false;
  MatmulEpilogue epilogue = {};
  /// See MatmulShape; of quantized weights only.
  bool roundsInput = false;

  /// The key of `group` tuned on this machine for `target` by this version of
  /// Sandwich; a shape without a packing has that of `isa`.
  static ScheduleKey of(const TuningGroup &group, const Target &target,
                        MatrixISA isa, Strategy strategy);

  /// The matmul, with its packing.
  MatmulShape shape() const;

  bool operator<(const ScheduleKey &other) const;
  bool operator==(const ScheduleKey &) const = default;
};

/// The version of Sandwich and of what makes schedules fast or slow in it: the
/// code generated for them, how they are searched and measured. A hash of the
/// sources (see cmake/HashSources.cmake), so that it changes with any of them.
std::string_view scheduleVersion();

/// Names `trace` by a hash of the share that each number of rows has in it.
std::string traceName(const RowTrace &trace);

/// What a strategy chose for one matmul.
struct TunedSchedules {
  /// Ascending in rows, at least one; what nothing was chosen for is not in it.
  std::vector<Choice> choices;
  /// Whether a run that asked for the last of them reached all it asked for. If
  /// not, nothing is known of more rows.
  bool complete = false;
  /// The names of the traces that the packing was chosen for.
  std::set<std::string> traces;
  /// What the CPU that measured calls itself.
  std::string cpuModel;

  /// Of a group in which something was chosen.
  static TunedSchedules of(const TunedGroup &group);
  /// Whether tuning for `rows` would find nothing to do.
  bool covers(const std::vector<int64_t> &rows) const;
  /// The rows that were measured.
  int64_t measuredRows() const;
  /// Adds what `other` chose for rows that are missing here, or derived here
  /// and measured there.
  void add(const TunedSchedules &other);
};

/// Everything that tuned attention depends on.
struct AttentionKey {
  /// See `scheduleVersion`.
  std::string compilerVersion;
  MeasuringMachine machine;
  /// What the code may use, as LLVM lists it.
  std::string targetFeatures;
  int64_t threads = 0;
  AttentionShape shape;

  /// The key of `shape` tuned on this machine for `target` by this version of
  /// Sandwich.
  static AttentionKey of(const AttentionShape &shape, const Target &target,
                         int64_t threads);

  auto operator<=>(const AttentionKey &) const = default;
};

/// What parameters of a kernel are, by their names.
using KernelParameters = std::map<std::string, int64_t>;

/// Everything that tuned parameters of a kernel depend on.
struct KernelTuningKey {
  /// See `scheduleVersion`.
  std::string compilerVersion;
  MeasuringMachine machine;
  /// What the code may use, as LLVM lists it.
  std::string targetFeatures;
  /// A hash of the kernel's IR.
  std::string kernel;
  /// What it was measured with: sizes of arguments, and constants.
  std::map<std::string, int64_t> sizes;

  /// The key of the kernel with the IR `text` tuned on this machine for
  /// `target` by this version of Sandwich.
  static KernelTuningKey of(std::string_view text,
                            std::map<std::string, int64_t> sizes,
                            const Target &target);

  auto operator<=>(const KernelTuningKey &) const = default;
};

/// The table that serves every number of rows of `key`: what was tuned, and
/// above it the untuned rule, or the cost model where the rule cannot read the
/// packing. The last schedule of a complete table serves up to twice its rows,
/// as the search itself trusts it no further. `machine` is that of
/// `UntunedOptions`. Errors: no instructions of `target` can multiply the
/// shape.
Result<ScheduleTable>
servedTable(const ScheduleKey &key, const TunedSchedules &tuned,
            const Target &target,
            const std::optional<MachineDescription> &machine = std::nullopt);

class ScheduleDatabase {
public:
  /// Reads and checks all of `path`. Errors name the file, the line or the
  /// field, and the reason: absent, no database, damaged, of another format
  /// version, a micro-kernel that is unknown or does not fit its registers, a
  /// schedule that cannot run its matmul. What another version of Sandwich
  /// tuned is kept as it is, and neither checked nor found.
  static Result<ScheduleDatabase> load(const std::string &path);

  /// Writes a file beside `path`, syncs it and renames it: a program that is
  /// killed at any moment leaves the old file or the new one. Removes what
  /// killed programs left beside it.
  Status save(const std::string &path) const;

  /// Adds what is in the file `path`, if there is one, to this database and
  /// writes both to it, under a lock: whoever else does so at the same time
  /// loses nothing either. Errors: those of `load`, `save` and `FileLock`.
  Status synchronize(const std::string &path);

  /// The table of `key`, or null.
  const TunedSchedules *find(const ScheduleKey &key) const;

  /// The best table for `group` of this machine, in any packing of `isa` where
  /// its shape does not say which one, by any strategy: `sandwich` first, then
  /// one that measured, then complete ones, then those for more rows.
  std::optional<std::pair<ScheduleKey, TunedSchedules>>
  findTuned(const TuningGroup &group, const Target &target,
            MatrixISA isa) const;

  /// The packing in which `strategy` tuned `group` on this machine after having
  /// chosen it for the trace called `trace`; nothing if it has not.
  std::optional<Packing> findPacking(const TuningGroup &group,
                                     const Target &target, MatrixISA isa,
                                     Strategy strategy,
                                     const std::string &trace) const;

  /// Adds or replaces the table of `key`.
  void insert(const ScheduleKey &key, TunedSchedules schedules);

  /// Adds `schedules` to those of `key` (see TunedSchedules::add): nothing that
  /// was chosen is lost.
  void add(const ScheduleKey &key, const TunedSchedules &schedules);

  /// How attention of `key` was tuned, or null.
  const AttentionTable *find(const AttentionKey &key) const;

  /// Adds or replaces the table of `key`.
  void insert(const AttentionKey &key, AttentionTable table);

  /// What was tuned for `key`, or null.
  const KernelParameters *find(const KernelTuningKey &key) const;

  /// Adds or replaces what was tuned for `key`.
  void insert(const KernelTuningKey &key, KernelParameters parameters);

  /// Adds all of `other`, table by table.
  void merge(const ScheduleDatabase &other);

  size_t size() const { return groups.size(); }
  const std::map<ScheduleKey, TunedSchedules> &all() const { return groups; }

private:
  std::map<ScheduleKey, TunedSchedules> groups;
  std::map<AttentionKey, AttentionTable> attention;
  std::map<KernelTuningKey, KernelParameters> kernels;
  /// Serialized groups of other versions of Sandwich.
  std::set<std::string> foreign, foreignAttention, foreignKernels;
};

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_SCHEDULEDATABASE_H
