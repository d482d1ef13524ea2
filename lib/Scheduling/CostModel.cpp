//===- CostModel.cpp - How long a schedule should take -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/CostModel.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ScheduleTuner.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

CostModelParameters CostModelParameters::of(const MachineDescription &machine,
                                            const Target &target) {
  CostModelParameters result;
  result.cyclesPerSecond = machine.coreCyclesPerSecond;
  result.l2BytesPerSecond = machine.coreL2BytesPerSecond;
  result.l3BytesPerSecond = machine.coreL3BytesPerSecond;
  result.memoryBytesPerSecond = machine.coreBytesPerSecond;
  result.nodeMemoryBytesPerSecond = machine.node().bytesPerSecond;
  result.memoryLatencySeconds = machine.memoryLatencySeconds;
  result.handoffSeconds = machine.node().handoffSeconds;
  result.l1Bytes = static_cast<double>(target.l1DataBytes);
  result.l2Bytes = static_cast<double>(target.l2Bytes);
  auto unit = [&](MatrixISA isa) -> Unit & {
    return result.units[static_cast<size_t>(isa)];
  };
  unit(MatrixISA::X86_AVX2_F32) = {0.5, 4, 0.5};
  unit(MatrixISA::X86_AVX512_F32) = {0.5, 4, 0.5};
  unit(MatrixISA::X86_AVX512_BF16) = {0.5, 6, 0.5};
  unit(MatrixISA::X86_AVX512_VNNI) = {0.5, 5, 0.5};
  unit(MatrixISA::X86_AMX_BF16) = {21.6, 52, 8};
  // Not measured by itself: as many tiles take as long.
  unit(MatrixISA::X86_AMX_INT8) = {21.6, 52, 8};
  unit(MatrixISA::ARM_NEON_F32) = {0.5, 4, 0.5};
  unit(MatrixISA::ARM_NEON_DOTPROD) = {0.5, 4, 0.5};
  unit(MatrixISA::ARM_NEON_I8MM) = {0.5, 4, 0.5};
  unit(MatrixISA::ARM_NEON_BF16) = {0.5, 5, 0.5};
  // Of vectors of 512 bits; shorter ones take as many times as long in passes,
  // which no schedule changes.
  unit(MatrixISA::ARM_SVE_F32) = {0.5, 9, 0.5};
  unit(MatrixISA::ARM_SVE_BF16) = {0.5, 5, 0.5};
  if (target.features.has(CpuFeature::AMX_BF16)) {
    // Where there are tiles, vdpbf16ps is half as fast as an f32 FMA, memory
    // is far, and only several page streams at once hide that.
    unit(MatrixISA::X86_AVX512_BF16).multiplyCycles = 2;
    result.prefetchStreams = 8;
  }
  return result;
}

CostModelParameters CostModelParameters::of(const Target &target,
                                            int64_t threads) {
  return of(describeNode(static_cast<uint64_t>(threads), target), target);
}

//===----------------------------------------------------------------------===//
// The walk of one thread
//===----------------------------------------------------------------------===//

/// What stays the same for all calls of a thread.
struct CostModel::Walk {
  const Schedule &schedule;
  const CostModelParameters::Unit &unit;
  RegisterFile file;
  /// Of the weight that micro-kernels read.
  Packing packing;
  double weightElementBytes, inputElementBytes;
  /// Instructions that make a register of columns what is multiplied.
  double widening;
  /// k that share a scale, of integers; else 0.
  int64_t group;
  /// Columns of a pass over the strips, and the calls for each strip in it.
  int64_t width, callsPerStrip;
  /// Registers of sums and weights side by side in a call.
  double columnRegisters;
  /// k of one multiplication.
  int64_t kStep;
  /// Lines of the weight that four packed steps of a pass hold.
  double linesPerStep;
  /// Prefetches for each multiplication's k.
  double prefetches;
  double pressure;
  double inputBytesPerSecond;
  double sumFactor;
  /// Whether passes over panels alternate with slices of K.
  bool jumps;
};

double CostModel::callSeconds(const Walk &walk, int64_t rows, int64_t k,
                              bool loadsSums, bool weightsInL1) const {
  double rowRegisters =
      walk.file.rows == 16
          ? static_cast<double>(rows) / walk.file.rows
          : static_cast<double>(divideUp(rows, walk.file.rows));
  double rowLoads = walk.file.rows == 16
                        ? static_cast<double>(divideUp(rows, walk.file.rows))
                        : rowRegisters;
  // NEON loads packed f32 of several rows at once.
  double inputLoads = rowLoads;
  if (walk.schedule.packsInput && walk.file.rows == 1)
    inputLoads = static_cast<double>(divideUp(rows, walk.file.columns));
  double columns = walk.columnRegisters;
  double multiplies = rowRegisters * columns + walk.widening * columns;
  double steps = static_cast<double>(k) / walk.kStep;
  if (walk.group > 0) {
    // The sums of a group are converted, scaled, and added to those in f32.
    constexpr double scaling = 3;
    multiplies += scaling * rowRegisters * columns * walk.kStep /
                  static_cast<double>(walk.group);
  }
  double multiplying = multiplies * walk.unit.multiplyCycles * walk.pressure;
  double loading =
      (inputLoads + columns) * walk.unit.loadCycles + walk.prefetches * 0.5;
  double computing = std::max({multiplying, loading, walk.unit.latencyCycles}) *
                     steps / parameters.cyclesPerSecond;
  double callColumns = static_cast<double>(
      std::min(walk.schedule.microKernel.columns, walk.width));
  double weights = 0;
  if (!weightsInL1)
    weights =
        k * callColumns * walk.weightElementBytes / parameters.l2BytesPerSecond;
  double sums = rowLoads * columns * (walk.file.rows == 16 ? 16 : 1);
  double fixed =
      parameters.callCycles +
      sums * walk.sumFactor * (parameters.storeCycles + (loadsSums ? 0.5 : 0));
  // The hardware follows the rows of the input better than the many short
  // passes over a slice of the weight.
  double input = rows * k * walk.inputElementBytes / walk.inputBytesPerSecond;
  return std::max(computing, input + weights) +
         parameters.overlapLoss * std::min(computing, weights + input / 4) +
         fixed / parameters.cyclesPerSecond;
}

double CostModel::passSeconds(const Walk &walk, int64_t rows, int64_t k,
                              bool loadsSums, double weightBytesPerSecond,
                              bool fromMemory) const {
  const Schedule &schedule = walk.schedule;
  int64_t strips = divideUp(rows, schedule.microKernel.rows);
  int64_t low = rows / strips, higher = rows % strips;
  double bytes = k * walk.width * walk.weightElementBytes;
  // What is read once comes from memory, and that is counted below.
  bool inL1 =
      strips * walk.callsPerStrip == 1 || bytes <= parameters.l1Bytes * 2 / 3;
  double lowCall = callSeconds(walk, low, k, loadsSums, inL1);
  double highCall =
      higher ? callSeconds(walk, low + 1, k, loadsSums, inL1) : lowCall;
  int64_t calls = walk.callsPerStrip;
  double computing = calls * (higher * highCall + (strips - higher) * lowCall);
  double reading = bytes / weightBytesPerSecond;

  // What part of reading happens while the pass before or this one computes.
  // Copies that are made ahead lie in L2.
  const bool copiesAhead = schedule.copiesAhead;
  double lines = copiesAhead ? 0 : static_cast<double>(schedule.prefetchLines);
  double covered = 0, other = 0;
  if (schedule.prefetchDistance > 0 && !copiesAhead) {
    covered = std::min(1.0, lines * strips * calls / walk.linesPerStep) *
              std::min(1.0, schedule.prefetchDistance /
                                (parameters.memoryLatencySeconds *
                                 parameters.memoryBytesPerSecond * 2));
    // Only the first calls run while their own stream arrives.
    double shares = std::ceil(walk.linesPerStep / std::max(lines, 1.0));
    double first = std::min(1.0, shares / static_cast<double>(strips * calls));
    other = computing * (1 - first);
    computing *= first;
  } else if (lines > 0) {
    covered = std::min(1.0, lines * strips * calls / walk.linesPerStep) *
              std::min(1.0, 0.4 + 0.6 * schedule.prefetchStreams /
                                      parameters.prefetchStreams);
    // Two slices at once must fit.
    if (2 * bytes > parameters.l2Bytes)
      covered *= parameters.l2Bytes / (2 * bytes);
  }
  // One strip reads the weight as one stream, which the hardware follows.
  if (strips == 1 && calls == 1)
    covered = std::max(covered, parameters.hardwarePrefetch);
  // Integers were read at the speed of memory without any prefetch, or nearly.
  if (walk.group > 0)
    covered = 1;
  // Side by side, more panels than were measured are more pages than trusted.
  constexpr double trustedPanels = 4;
  double panels = static_cast<double>(walk.width) / walk.packing.panel;
  covered *= std::min(1.0, trustedPanels / panels);
  if (!fromMemory)
    covered = std::max(covered, 0.8);
  // Even what is prefetched gets in the way of other loads, and a pass that
  // does not go on where the one before ended begins a new stream.
  double exposed = 1 - covered + covered * parameters.prefetchLoss;
  double begins = 1 - covered + (walk.jumps ? parameters.streamBegin : 0);
  return other + std::max(computing, reading) +
         exposed * std::min(computing, reading) +
         (fromMemory ? begins * parameters.memoryLatencySeconds : 0);
}

double CostModel::partSeconds(const MatmulShape &shape,
                              const Schedule &schedule,
                              const std::array<int64_t, 3> &part,
                              double memoryBytesPerSecond) const {
  const MicroKernel &kernel = schedule.microKernel;
  bool bf16 = multipliesBF16(kernel.isa);
  RegisterFile file = registerFileOf(kernel.isa);
  const StorageFormat storage = multipliedStorage(schedule, shape.storage);
  const bool integers = multipliesIntegers(kernel.isa);
  const bool widens = widensGroups(schedule, shape);
  const bool unpacks = unpacksWeights(schedule, shape);
  const bool isMatrixInt8 = kernel.isa == MatrixISA::ARM_NEON_I8MM;
  const double storedBytes = bitsPerWeight(shape.storage, shape.k) / 8;
  const double inputBytesOf = integers ? 1 : bf16 ? 2 : 4;
  // A shift or a shuffle, and a conversion or a look into a table.
  constexpr double wideningOfGroups = 2;
  Packing packing = packingFor(shape, kernel.isa);
  if (unpacks)
    packing = multipliedPacking(kernel.isa, packing, shape.storage);
  int64_t bM = std::min(schedule.slice[0], part[0]);
  int64_t bN = std::min(schedule.slice[1], part[1]);
  int64_t bK = std::min(schedule.slice[2], part[2]);
  int64_t rowBlocks = divideUp(part[0], bM);

  Walk walk{
      .schedule = schedule,
      .unit = parameters.unitOf(kernel.isa),
      .file = file,
      .packing = packing,
      .weightElementBytes = unpacks ? inputBytesOf : storedBytes,
      .inputElementBytes = inputBytesOf,
      .widening = widens ? wideningOfGroups
                  : widensWeights(kernel.isa, storage) || isMatrixInt8 ? 1.0
                                                                       : 0.0,
      .group = integers || widens ? storage.groupOf(shape.k) : 0,
      .width = std::max(packing.panel, kernel.columns),
      .callsPerStrip = std::max<int64_t>(packing.panel / kernel.columns, 1),
      .columnRegisters = static_cast<double>(kernel.columns) / file.columns,
      .kStep = hasTiles(kernel.isa)
                   ? (integers ? kOfIntegerTiles(storage.groupOf(shape.k))
                               : packing.kStep)
               : isMatrixInt8 ? 2 * packing.kPack
                              : packingOf(kernel.isa).kPack,
      .linesPerStep = 0,
      .prefetches = 0,
      .pressure = 1,
      .inputBytesPerSecond = 1e15,
      .sumFactor = 1,
      .jumps = false};
  walk.linesPerStep =
      4.0 * packing.kPack * walk.width * walk.weightElementBytes / 64;
  // A copy's few prefetches are not in its loops.
  walk.prefetches = unpacks ? 0
                            : static_cast<double>(schedule.prefetchLines) *
                                  walk.kStep / (4.0 * packing.kPack);
  if (file.rows == 1) {
    int64_t rowsUsed = std::min(kernel.rows, bM);
    int64_t strips = divideUp(bM, kernel.rows);
    rowsUsed = std::min(rowsUsed, divideUp(bM, strips));
    int64_t columns = kernel.columns / file.columns;
    // There are sums of a group, too.
    int64_t left =
        file.registers -
        ((walk.group > 0 ? 2 : 1) * rowsUsed * columns + columns + 1);
    walk.pressure +=
        parameters.registerPressure * std::max<int64_t>(4 - left, 0);
  }
  // All of a block's input is read again for each panel.
  double inputBytes = static_cast<double>(divideUp(part[0], rowBlocks)) *
                      part[2] * walk.inputElementBytes;
  if (inputBytes > parameters.l2Bytes / 2)
    walk.inputBytesPerSecond = parameters.l3BytesPerSecond;
  else if (inputBytes > parameters.l1Bytes / 3)
    walk.inputBytesPerSecond = parameters.l2BytesPerSecond;
  walk.jumps = bK < part[2] && bN > walk.width;
  // A pass is over a chunk of a slice.
  const int64_t passK =
      schedule.chunkK > 0 ? std::min(schedule.chunkK, bK) : bK;
  if (passK < part[2]) {
    double sumBytes = 4.0 * bM * (bK < part[2] ? bN : walk.width);
    walk.sumFactor = sumBytes > parameters.l2Bytes / 2   ? 6
                     : sumBytes > parameters.l1Bytes / 3 ? 2
                                                         : 1;
  }

  // Blocks of rows beyond the first find the weight where it still is.
  double again = schedule.order == LoopOrder::RowsOuter
                     ? static_cast<double>(part[1])
                     : static_cast<double>(bN);
  again *= part[2] * walk.weightElementBytes;
  bool againFromMemory = !unpacks && again > parameters.l2Bytes / 2;
  double againBytesPerSecond =
      againFromMemory ? memoryBytesPerSecond : parameters.l2BytesPerSecond;

  int64_t low = part[0] / rowBlocks, higher = part[0] % rowBlocks;
  int64_t wholePasses = part[2] / passK, restK = part[2] % passK;
  auto blockSeconds = [&](int64_t rows, double bandwidth, bool fromMemory) {
    double seconds =
        passSeconds(walk, rows, passK, false, bandwidth, fromMemory);
    if (wholePasses > 1)
      seconds += (wholePasses - 1) *
                 passSeconds(walk, rows, passK, true, bandwidth, fromMemory);
    if (restK)
      seconds += passSeconds(walk, rows, restK, true, bandwidth, fromMemory);
    return seconds;
  };
  int64_t firstRows = higher ? low + 1 : low;
  // What is unpacked is read from the copy, in a cache.
  double perPanel = unpacks
                        ? blockSeconds(firstRows, againBytesPerSecond, false)
                        : blockSeconds(firstRows, memoryBytesPerSecond, true);
  if (higher > 1)
    perPanel += (higher - 1) *
                blockSeconds(low + 1, againBytesPerSecond, againFromMemory);
  int64_t rest = rowBlocks - std::max<int64_t>(higher, 1);
  if (rest > 0)
    perPanel += rest * blockSeconds(low, againBytesPerSecond, againFromMemory);
  double seconds = perPanel * static_cast<double>(part[1]) / walk.width;
  if (unpacks) {
    // Once, if the copy stays for all blocks of rows.
    const bool stays = schedule.order == LoopOrder::ColumnsOuter &&
                       bK >= part[2] && !schedule.copiesAhead;
    const auto times = static_cast<double>(stays ? 1 : rowBlocks);
    const auto elements = static_cast<double>(part[1]) * part[2];
    const double elementsPerCycle = schedule.groupK > 0 ? 8 : 4;
    seconds += times * elements / elementsPerCycle / parameters.cyclesPerSecond;
    // Prefetched, reading goes on beside all else.
    const double reading =
        times * elements * storedBytes / memoryBytesPerSecond;
    seconds = schedule.prefetchLines > 0 ? std::max(seconds, reading)
                                         : seconds + reading;
  }
  if (schedule.packsInput) {
    // Each element is loaded and stored, again for other columns if not all of
    // K stays packed.
    const bool stays = schedule.order == LoopOrder::RowsOuter && bK >= part[2];
    const auto times = static_cast<double>(stays ? 1 : divideUp(part[1], bN));
    const auto elements = static_cast<double>(part[0]) * part[2];
    // Rounding looks at each twice.
    constexpr double vectorElements = 4;
    const double accesses = integers ? 4 : 2;
    seconds += times * elements / vectorElements * accesses *
               walk.unit.loadCycles / parameters.cyclesPerSecond;
  }
  // The loops around a block, and the way to its first line.
  double blocks = static_cast<double>(rowBlocks) * divideUp(part[1], bN);
  return seconds +
         blocks * 2 * parameters.callCycles / parameters.cyclesPerSecond;
}

double CostModel::barrierSeconds(int64_t threads) const {
  return parameters.barrierSeconds +
         static_cast<double>(threads) * parameters.handoffSeconds;
}

double CostModel::estimate(const Payload &payload,
                           const Schedule &schedule) const {
  Packing packing = packingFor(payload.shape, schedule.microKernel.isa);
  std::array<int64_t, 3> grid = schedule.threads;
  std::array<int64_t, 3> part = largestPart(payload, packing, grid);
  // Threads that read the same weights for other rows rarely do so at one time,
  // so that memory gives them to each.
  const int64_t threads = grid[0] * grid[1] * grid[2];
  double bandwidth = std::min(parameters.memoryBytesPerSecond,
                              parameters.nodeMemoryBytesPerSecond /
                                  static_cast<double>(threads));
  double seconds = partSeconds(payload.shape, schedule, part, bandwidth) +
                   barrierSeconds(threads);
  if (grid[2] > 1) {
    // Private sums are written, and each thread reads its share of all.
    double sums = 4.0 * part[0] * part[1];
    seconds += 2 * sums / parameters.l3BytesPerSecond + barrierSeconds(threads);
  }
  return seconds;
}

Result<double> CostModel::seconds(const Payload &payload,
                                  const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(verify(schedule, payload.shape));
  return estimate(payload, schedule);
}

Result<double> CostModel::sliceSeconds(const MatmulShape &shape,
                                       const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(verify(schedule.microKernel));
  return partSeconds(shape, schedule, schedule.slice,
                     parameters.memoryBytesPerSecond);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

Result<Choice> sandwich::chooseByModel(const Payload &payload,
                                       const std::vector<MicroKernel> &menu,
                                       const CostModel &model) {
  std::vector<Choice> begun;
  auto consider = [&](Schedule schedule) {
    schedule = completeByRule(schedule, payload.shape, payload.rows);
    return Choice{payload.rows, schedule, model.estimate(payload, schedule),
                  false};
  };
  std::vector<std::array<int64_t, 3>> grids;
  for (const std::vector<MicroKernel> &members :
       microKernelClasses(payload, menu)) {
    const MicroKernel &kernel = members.back();
    if (grids.empty())
      grids = threadGrids(payload, packingFor(payload.shape, kernel.isa));
    for (const std::array<int64_t, 3> &grid : grids)
      begun.push_back(consider(
          {.microKernel = kernel,
           .slice = clipSlice(payload, kernel, {payload.rows, 1, 512}, grid),
           .threads = grid,
           .packsInput = packsByRule(kernel, divideUp(payload.rows, grid[0]),
                                     divideUp(payload.shape.n, grid[1]))}));
  }
  if (begun.empty())
    return makeError("no micro-kernel can multiply a weight of ",
                     payload.shape.n, " x ", payload.shape.k);
  constexpr size_t grown = 4;
  size_t count = std::min(grown, begun.size());
  std::ranges::partial_sort(begun, begun.begin() + count, {}, &Choice::seconds);
  Choice best = begun.front();
  for (size_t i = 0; i < count; ++i) {
    const Schedule &start = begun[i].schedule;
    Packing packing = packingFor(payload.shape, start.microKernel.isa);
    std::array<int64_t, 3> part = largestPart(payload, packing, start.threads);
    std::array<int64_t, 3> tile = sliceTile(start.microKernel, payload);
    int64_t lastK = 0;
    for (int64_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      int64_t bK = divideUp(divideUp(part[2], parts), tile[2]) * tile[2];
      if (bK == lastK || (parts > 1 && bK < 128))
        continue;
      lastK = bK;
      for (int64_t rowBlocks : {1, 2, 4}) {
        int64_t bM = divideUp(part[0], rowBlocks);
        if (rowBlocks > 1 && bM < 64)
          continue;
        Schedule schedule = start;
        schedule.slice[0] = bM;
        schedule.slice[2] = bK;
        if (!fitsMemory(payload, schedule))
          continue;
        schedule.order =
            rowBlocks > 1 ? LoopOrder::ColumnsOuter : LoopOrder::RowsOuter;
        Choice choice = consider(schedule);
        if (choice.seconds < best.seconds)
          best = choice;
      }
    }
  }
  best.schedule.slice = clipSlice(payload, best.schedule.microKernel,
                                  best.schedule.slice, best.schedule.threads);
  return best;
}

std::vector<int64_t> sandwich::coarseRows(int64_t maxRows) {
  std::vector<int64_t> rows;
  for (int64_t row = 1; row < maxRows; row += std::max<int64_t>(row / 12, 1))
    rows.push_back(row);
  rows.push_back(maxRows);
  return rows;
}

/// Whether the model was compared with matmuls that used these instructions.
/// What it thinks of others is too far off to follow closely.
static bool wasMeasured(MatrixISA isa) {
  return isa == MatrixISA::X86_AVX512_F32 || isa == MatrixISA::X86_AVX512_BF16;
}

Result<ScheduleTable> sandwich::chooseUntuned(const MatmulShape &shape,
                                              const Target &target,
                                              int64_t threads,
                                              const UntunedOptions &options) {
  CostModel model(options.machine
                      ? CostModelParameters::of(*options.machine, target)
                      : CostModelParameters::of(target, threads));
  std::vector<MicroKernel> menu = microKernelMenu(shape, target);
  ScheduleTable rule;
  SANDWICH_ASSIGN_OR_RETURN(rule, chooseByRule(shape, target, threads));
  // The rule knows the default packing only.
  if (!std::ranges::all_of(rule, [&](const ScheduleTableEntry &entry) {
        return bool(verify(entry.schedule, shape));
      }))
    rule.clear();
  // The model was compared with no schedules of integers, and of unpacking.
  if (shape.storage.isQuantized() && !rule.empty())
    return rule;
  bool byRule = true;
  std::vector<Choice> choices;
  for (int64_t rows : coarseRows(options.maxRows)) {
    Payload payload{shape, rows, threads, options.splitK};
    SANDWICH_ASSIGN_OR_RETURN(Choice choice,
                              chooseByModel(payload, menu, model));
    // What differs by less than the model's errors, or by so little time that
    // code of its own costs more, is left to the rule, whose schedules were
    // measured.
    double errors = wasMeasured(choice.schedule.microKernel.isa) ? 0.05 : 0.3;
    constexpr double worthwhileSeconds = 2e-6;
    if (!rule.empty()) {
      const Schedule &schedule = scheduleFor(rule, rows);
      double seconds = model.estimate(payload, schedule);
      if (seconds <= choice.seconds * (1 + errors) + worthwhileSeconds) {
        choices.push_back({rows, schedule, seconds, false});
        continue;
      }
    }
    byRule = false;
    // What the model hardly tells apart is not worth code of its own.
    constexpr double hardly = 1.01;
    if (!choices.empty()) {
      const Choice &last = choices.back();
      Schedule before = last.schedule;
      bool whole = before.slice[0] >= divideUp(last.rows, before.threads[0]);
      if (whole)
        before.slice[0] = divideUp(rows, before.threads[0]);
      before = completeByRule(before, shape, rows);
      double seconds = model.estimate(payload, before);
      if (seconds <= choice.seconds * hardly)
        choice = {rows, before, seconds, false};
    }
    choices.push_back(choice);
  }
  return byRule ? rule : makeTable(shape, threads, choices);
}
