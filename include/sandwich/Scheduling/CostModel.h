//===- CostModel.h - How long a schedule should take ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An analytical model of a matmul on a team of threads: instant, for choosing
/// without measuring, and for strategies that rely on models.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_COSTMODEL_H
#define SANDWICH_SCHEDULING_COSTMODEL_H

#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Scheduling/ScheduleSearch.h"

#include <optional>

namespace sandwich {

/// What the model knows of a CPU. Cycles are those of one core, bytes in a
/// second those that one core reads unless said. What machines differ in comes
/// from a description (see MachineDescription.h); which of the rest was
/// measured, and which is assumed, docs/RationaleScheduling.md says.
struct CostModelParameters {
  /// How fast one core multiplies with the instructions of an ISA.
  struct Unit {
    /// Between two multiplications of registers, and until a sum is ready.
    double multiplyCycles = 0.5;
    double latencyCycles = 4;
    /// Between two loads of registers from L1.
    double loadCycles = 0.5;
  };

  double cyclesPerSecond = 0;
  double l1Bytes = 32 << 10;
  double l2Bytes = 1 << 20;
  double l2BytesPerSecond = 0;
  double l3BytesPerSecond = 0;
  /// From memory: one core alone, and all cores of a NUMA node together.
  double memoryBytesPerSecond = 0;
  double nodeMemoryBytesPerSecond = 0;
  double memoryLatencySeconds = 0;
  /// Calling a micro-kernel, clearing its sums, and leaving it.
  double callCycles = 40;
  double storeCycles = 1;
  /// A barrier, and what it takes longer for each thread, to which a cache line
  /// is handed on.
  double barrierSeconds = 2e-6;
  double handoffSeconds = 0;
  /// The share of the shorter of computing and reading from L2 that the longer
  /// does not hide.
  double overlapLoss = 0.15;
  /// The same of computing and reading from memory, where all is prefetched.
  double prefetchLoss = 0.08;
  /// The share of the memory's latency that beginning a stream costs.
  double streamBegin = 0.25;
  /// How much longer multiplying takes for each register less than four that
  /// are left for loading ahead.
  double registerPressure = 0.02;
  /// How much of a sequential stream the hardware fetches ahead by itself.
  double hardwarePrefetch = 0.5;
  /// Streams of software prefetches that it takes to read at full speed.
  double prefetchStreams = 1;

  /// By instructions, in the order of `MatrixISA`.
  std::array<Unit, matrixISACount> units;

  const Unit &unitOf(MatrixISA isa) const {
    return units[static_cast<size_t>(isa)];
  }

  /// Those of a CPU of `target` on a machine that is so described.
  static CostModelParameters of(const MachineDescription &machine,
                                const Target &target);
  /// The same where nothing is known of the machine but that a team of
  /// `threads` runs in one NUMA node.
  static CostModelParameters of(const Target &target, int64_t threads);
};

/// The model. A thread walks its part as lib/Conversion/GemmToLoops emits it:
/// blocks, slices of K, panels of the weight, balanced strips of rows.
class CostModel : public ScheduleEvaluator {
public:
  explicit CostModel(CostModelParameters parameters) : parameters(parameters) {}

  /// Errors: a schedule that `verify` refuses.
  Result<double> sliceSeconds(const MatmulShape &shape,
                              const Schedule &schedule) override;
  Result<double> seconds(const Payload &payload,
                         const Schedule &schedule) override;

  /// Of the caches of one core.
  double l1Bytes() const { return parameters.l1Bytes; }
  double l2Bytes() const { return parameters.l2Bytes; }

  /// The same without checking the schedule.
  double estimate(const Payload &payload, const Schedule &schedule) const;

private:
  struct Walk;
  /// One barrier of a team.
  double barrierSeconds(int64_t threads) const;
  double partSeconds(const MatmulShape &shape, const Schedule &schedule,
                     const std::array<int64_t, 3> &part,
                     double memoryBytesPerSecond) const;
  double passSeconds(const Walk &walk, int64_t rows, int64_t k, bool loadsSums,
                     double weightBytesPerSecond, bool fromMemory) const;
  double callSeconds(const Walk &walk, int64_t rows, int64_t k, bool loadsSums,
                     bool weightsInL1) const;

  CostModelParameters parameters;
};

/// The best schedule for `payload` by `model` among `menu`, thread grids, and a
/// few sizes of slices. Errors: no micro-kernel can multiply it.
Result<Choice> chooseByModel(const Payload &payload,
                             const std::vector<MicroKernel> &menu,
                             const CostModel &model);

/// The numbers of rows that an untuned table is made from: all few, then about
/// a twelfth more each time, ending with `maxRows`.
std::vector<int64_t> coarseRows(int64_t maxRows);

/// Up to which an untuned table is chosen; larger numbers repeat the last
/// slice.
inline constexpr int64_t mostUntunedRows = 512;

struct UntunedOptions {
  /// At least 1.
  int64_t maxRows = mostUntunedRows;
  /// Whether threads may share K.
  bool splitK = true;
  /// If nothing, a machine of which nothing is known.
  std::optional<MachineDescription> machine;
};

/// The untuned table, at once: what the model thinks fastest for each number of
/// rows, and the rule's schedule where the model hardly tells them apart, as
/// the rule's were measured; of quantized weights always the rule's, if it
/// knows the packing. Errors: no instructions of the target fit the shape.
Result<ScheduleTable> chooseUntuned(const MatmulShape &shape,
                                    const Target &target, int64_t threads,
                                    const UntunedOptions &options = {});

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_COSTMODEL_H
