//===- MeasuringEvaluator.h - How long schedules take -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Measures schedules on this machine: on the team that will run them, in the
/// program that a model has of the matmul, with its epilogue and random data,
/// and with weights that come from memory, as a model's do. While searching,
/// numbers of schedules are parameters of that program; those that are chosen
/// from in the end are compiled as they ship.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MEASURINGEVALUATOR_H
#define SANDWICH_TUNING_MEASURINGEVALUATOR_H

#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Scheduling/ScheduleSearch.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Tuning/MatmulLibrary.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace sandwich {

struct MeasuringOptions {
  /// Threads of the team, and the CPUs they stay on (see PhaseTeamOptions).
  unsigned threads = 1;
  std::vector<unsigned> cpus;
  /// The most rows of a payload.
  int64_t maxRows = 512;
  /// Bytes of random weights that measurements walk through in turn: more than
  /// the last cache holds.
  uint64_t weightBytes = uint64_t(512) << 20;
  /// Asked between compilations and between runs; true ends a measurement with
  /// an error (Ctrl-C).
  std::function<bool()> stop = {};
};

/// Machines are noisy: other processes, other guests, clocks and memory whose
/// speed changes for seconds. So a schedule is not timed alone. The first
/// schedule of a payload is its reference; every other one runs in turn with
/// it, and what counts is the median of their ratios. That is repeated until
/// the ratios agree, or it is plain that the schedule is much slower.
class MeasuringEvaluator : public ScheduleEvaluator {
public:
  /// Errors: instructions of the target that this CPU lacks, too little
  /// memory, too few threads.
  static Result<std::unique_ptr<MeasuringEvaluator>>
  create(const Target &target, const MeasuringOptions &options);

  /// Errors: a schedule that does not fit the shape, more rows than
  /// `maxRows`, more threads than the team has, a slice with too many sums, an
  /// epilogue that the shape has no heads for, a K of which the memory of
  /// weights holds too few columns.
  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override;
  Status expectSlices(const MatmulShape &shape,
                      const std::vector<Schedule> &schedules) override;
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override;

  Result<Limit> compareToLimit(const Payload &payload,
                               const Schedule &schedule) override;
  Result<size_t> fastest(const Payload &payload,
                         const std::vector<Schedule> &schedules) override;

  /// How long each of `schedules` takes, as a share of the first one's time:
  /// medians of `rounds` rounds, in each of which all run in turn. All have the
  /// same instructions. Errors: those of `seconds`; no schedules.
  Result<std::vector<double>> compare(const Payload &payload,
                                      const std::vector<Schedule> &schedules,
                                      size_t rounds);

  /// Floating-point operations a second of all threads.
  struct Speeds {
    /// Of a loop that does nothing but multiply; of integers, which scale their
    /// sums in between, the same as `inCache`.
    double peak = 0;
    /// Of the fastest micro-kernel with its operands in the nearest caches:
    /// what loading them, beginning and ending leave of that.
    double inCache = 0;
  };
  /// As measured first, or more, where something was faster since. A weight
  /// that is unpacked counts as the floats that it is unpacked to.
  Result<Speeds> speeds(const MatmulShape &shape, MatrixISA isa);
  /// Measured now: clocks change.
  Result<double> measurePeakFlops(const MatmulShape &shape, MatrixISA isa);
  Result<double> measureFlopsInCache(const MatmulShape &shape, MatrixISA isa);
  /// Bytes a second that all threads read from memory with plain loads.
  double readBytesPerSecond();

  const MatmulLibrary &programs() const { return *library; }

private:
  struct Reference {
    Schedule schedule;
    double seconds;
  };
  enum class Barriers : uint8_t { None, BehindEachMatmul };

  /// A measurement shorter than this says more about the clock and the start
  /// of the team than about the matmul.
  static constexpr double leastSeconds = 1e-3;

  MeasuringEvaluator(const Target &target,
                     std::unique_ptr<MatmulLibrary> library,
                     const MeasuringOptions &options);
  Status allocate();
  Status check(const Payload &payload, const Schedule &schedule) const;
  Status narrow(Payload &payload, const Schedule &schedule) const;
  /// The program of `payload`, which is narrow enough, for `isa`.
  MatmulProgram programOf(const Payload &payload, MatrixISA isa) const;
  /// That of its slices, which have no epilogue.
  Result<MatmulProgram> sliceProgram(const MatmulShape &shape,
                                     const Schedule &schedule) const;
  /// Memory with random operands for `rows` rows.
  Status reserve(const MatmulProgram &program, const MatmulCode &code,
                 int64_t rows);
  /// Seconds of one step of `code`, of `rows` tokens and the given layers, on
  /// `threads` threads, or this one alone, which waits for nobody.
  double run(const MatmulCode &code, int64_t rows, unsigned threads,
             const std::vector<int32_t> &layers,
             Barriers barriers = Barriers::BehindEachMatmul);
  double runAlone(const MatmulCode &code, int64_t rows,
                  const std::vector<int32_t> &layers);
  SandwichStep stepOf(int64_t rows, const std::vector<int32_t> &layers);
  /// Seconds of one matmul of `code`, whose operands are there: the mean of as
  /// many as fill `least` seconds.
  double secondsPerMatmul(const Payload &payload, const MatmulProgram &program,
                          const MatmulCode &code, double least);
  /// Seconds of one matmul, with parameters.
  Result<double> runOnce(const Payload &payload, const Schedule &schedule);
  /// The code of each of `schedules` as it ships for `payload`.
  Result<std::vector<MatmulCode>>
  prepareAsShipped(const Payload &payload,
                   const std::vector<Schedule> &schedules);
  /// Seconds of one matmul, as `secondsPerMatmul`.
  Result<double> runShipped(const Payload &payload,
                            const MatmulProgram &program,
                            const MatmulCode &code, double least);
  /// `count` layers, no more than there are, that were not read for longest.
  std::vector<int32_t> nextLayers(const MatmulProgram &program, size_t count);
  std::byte *nextWeight(uint64_t bytes);
  /// The reader of the weights' memory.
  const MemoryReader &plainReader();
  /// Measures what `speeds` knows, or more of it.
  Status measureSpeeds(const MatmulShape &shape, MatrixISA isa);
  /// The program whose micro-kernel of `schedule` runs again and again on
  /// operands in cache.
  MatmulProgram repeatedProgram(const MatmulShape &shape,
                                const Schedule &schedule) const;
  /// Seconds of a slice on each thread: the mean of as many as fill a
  /// measurement.
  Result<double> repeat(const MatmulProgram &program, const MatmulCode &code,
                        const Schedule &schedule);

  const Target target;
  std::unique_ptr<MatmulLibrary> library;
  const MeasuringOptions options;
  std::unique_ptr<PhaseTeam> team;
  AnonymousMemory weights, workspace, cache;
  /// How often something read faster than it, so that it was replaced.
  int readersReplaced = 0;
  std::optional<MemoryReader> reader;
  /// Of whose operands the workspace has random ones, and for how many rows.
  std::optional<MatmulProgram> filled;
  int64_t filledRows = 0;
  /// 0, 1, and so on: token ids, positions and slots.
  std::vector<int32_t> numbers;
  uint64_t weightPosition = 0;
  /// Pieces of slices that were measured.
  int64_t piecesRead = 0;
  /// By instructions and how weights are stored.
  std::map<std::pair<MatrixISA, StorageFormat>, Speeds> knownSpeeds;
  /// By rows and threads, the shape with its packing.
  std::map<std::tuple<int64_t, int64_t, MatmulShape>, Reference> references;
};

} // namespace sandwich

#endif // SANDWICH_TUNING_MEASURINGEVALUATOR_H
