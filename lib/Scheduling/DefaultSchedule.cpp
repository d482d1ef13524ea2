//===- DefaultSchedule.cpp - The untuned schedule rule --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

using namespace sandwich;

namespace {

/// The widest micro-kernel of each ISA that keeps its accumulators and one
/// panel of the weight in registers, and leaves enough independent
/// accumulators to hide the latency of its instructions; for few rows.
MicroKernel widestMicroKernel(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
    return {isa, 6, 16};
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::X86_AVX512_BF16:
  case MatrixISA::ARM_SVE_F32:
  case MatrixISA::ARM_SVE_BF16:
    return {isa, 12, 32};
  case MatrixISA::X86_AVX2_INT8:
    return {isa, 4, 16};
  case MatrixISA::X86_AVX_VNNI:
    return {isa, 2, 16};
  case MatrixISA::X86_AVX512_VNNI:
    return {isa, 6, 32};
  case MatrixISA::ARM_NEON_DOTPROD:
    return {isa, 3, 16};
  case MatrixISA::ARM_NEON_I8MM:
    return {isa, 8, 16};
  case MatrixISA::X86_AMX_BF16:
  case MatrixISA::X86_AMX_INT8:
    return {isa, 32, 32};
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_NEON_BF16:
    return {isa, 6, 16};
  }
  __builtin_unreachable();
}

/// That for more rows than `fewRows` has, where they are packed.
MicroKernel manyRowsMicroKernel(const MicroKernel &fewRows,
                                const MatmulShape &shape) {
  // NEON widens a weight in an instruction of its own: 4 to 24 multiplications
  // of 6x16, 2 to 24 here, though of a panel of 16 columns each half is read on
  // its own, the second time from L1. Only the instructions were counted.
  if (fewRows.isa == MatrixISA::ARM_NEON_F32 &&
      widensWeights(fewRows.isa, shape.storage))
    return {fewRows.isa, 12, 8};
  return fewRows;
}

/// Makes a table of one schedule after another.
class TableBuilder {
public:
  TableBuilder(const MatmulShape &shape, const MicroKernel &kernel,
               int64_t threads)
      : shape(shape),
        // Threads split columns only: every thread then streams its own part of
        // the weight and nothing is summed across threads.
        schedule{.microKernel = kernel, .threads = {1, threads, 1}} {}

  /// `schedule`, completed, serves from `minRows` to `maxRows` rows.
  void serve(int64_t minRows, int64_t maxRows) {
    schedule = completeByRule(schedule, shape, minRows);
    add(maxRows);
  }

  /// `schedule`, as it is, serves up to `maxRows` rows.
  void add(int64_t maxRows) {
    if (!table.empty() && table.back().schedule == schedule)
      table.back().maxRows = maxRows;
    else
      table.push_back({maxRows, schedule});
  }

private:
  const MatmulShape &shape;

public:
  Schedule schedule;
  ScheduleTable table;
};

/// The fewest columns of a block of vectors: a cache line of results in bf16.
int64_t columnsOf(const Packing &packing) {
  return std::lcm<int64_t>(packing.panel, cacheLineBytes / 2);
}

/// K in equal parts. Vectors multiply slowly enough to read a slice of the
/// weight's panel from L2, and the fewer slices there are, the less often sums
/// come and go. A sixteenth of L2 was fastest on AVX-512 (NEON was not
/// measured), a quarter on AVX2, though more of the input then comes from L3.
int64_t chooseSliceK(const MatmulShape &shape, const Packing &packing,
                     MatrixISA isa, const Target &target) {
  int64_t bytesPerK = columnsOf(packing) * shape.storage.bits() / 8;
  int64_t step = std::max(packing.kStep, 4 * packing.kPack);
  int64_t sliceBytes =
      std::max(target.l1DataBytes * 2 / 3,
               target.l2Bytes / (isa == MatrixISA::X86_AVX2_F32 ? 4 : 16));
  int64_t largest = std::max(sliceBytes / bytesPerK, step);
  int64_t parts = divideUp(shape.k, largest);
  return divideUp(divideUp(shape.k, parts), step) * step;
}

/// With one or two rows, 6x16 has two or four vectors of sums and waits for
/// each; this one has six or twelve. It reads three panels side by side, and
/// the more streams there are, the more of them hardware prefetches at once.
constexpr MicroKernel fewRowsOfAVX2 = {MatrixISA::X86_AVX2_F32, 2, 48};

/// Whether calls of `kernel` multiply nearly all columns of a thread's part:
/// the rest goes panel by panel.
bool coversColumns(const MicroKernel &kernel, const MatmulShape &shape,
                   int64_t threads) {
  const Packing packing = packingFor(shape, kernel.isa);
  if (!reads(kernel, packing, shape.storage))
    return false;
  const int64_t columns =
      largestPart({shape, kernel.rows, threads}, packing, {1, threads, 1})[1];
  return columns >= kernel.columns && columns % kernel.columns <= columns / 8;
}

/// Tiles multiply faster than a weight is read again from memory, so blocks are
/// as large as L2 holds their input, half of it; where K is too long for that,
/// slices of K, between which sums wait, of as many columns as a block may
/// have.
ScheduleTable chooseTiles(const MatmulShape &shape, MatrixISA isa,
                          const Target &target, int64_t threads) {
  const Packing packing = packingOf(isa);
  const int64_t tileRows = registerFileOf(isa).rows;
  const int64_t unit = std::lcm(packing.panel, shape.columnUnit);
  TableBuilder builder(shape, widestMicroKernel(isa), threads);
  Schedule &schedule = builder.schedule;
  schedule.slice = {tileRows, unit, shape.k};
  // A tile of rows beside two panels at once, where threads have that many.
  const MicroKernel pair{isa, tileRows, 2 * packing.panel};
  if (shape.n >= threads * pair.columns) {
    Schedule tall = schedule;
    schedule.microKernel = pair;
    schedule.slice[1] = std::lcm(unit, pair.columns);
    builder.serve(1, tileRows);
    schedule = tall;
  }
  int64_t served = builder.table.empty() ? 0 : tileRows;
  for (int64_t strips : {1, 2, 3}) {
    const int64_t rows = strips * schedule.microKernel.rows;
    schedule.slice[0] = rows;
    builder.serve(served + 1, rows);
    served = rows;
  }
  constexpr int64_t blockRows = 256;
  schedule.slice[0] = blockRows;
  const int64_t largestK = target.l2Bytes / 2 / blockRows / 2;
  if (shape.k > largestK) {
    // Less than half: sums are in use as well.
    const int64_t mostK = largestK * 4 / 5 / packing.kStep * packing.kStep;
    const int64_t parts = divideUp(shape.k, std::max(mostK, packing.kStep));
    schedule.slice[2] = roundUp(divideUp(shape.k, parts), packing.kStep);
    const int64_t columns = divideUp(divideUp(shape.n, unit), threads) * unit;
    schedule.slice[1] = std::max(
        std::min(columns, maxBlockSums / blockRows / unit * unit), unit);
  }
  builder.serve(served + 1, INT64_MAX);
  return std::move(builder.table);
}

/// Micro-kernels that may widen numbers of panels of `packing` which are
/// unpacked for `isa`, fewest rows first. Beside tiles vectors do it for two
/// rows: vdpbf16ps takes twice as long there, and of four rows unpacking ahead
/// takes less time.
std::vector<MicroKernel> wideningMicroKernels(MatrixISA isa,
                                              const Packing &packing) {
  const bool besideTiles = isa == MatrixISA::X86_AMX_BF16;
  const int64_t mostRows = besideTiles ? 2 : 8;
  if (besideTiles)
    isa = MatrixISA::X86_AVX512_BF16;
  std::vector<MicroKernel> kernels;
  const int64_t lanes = registerFileOf(isa).columns;
  for (auto [rows, blocks] : std::vector<std::array<int64_t, 2>>{
           {1, 4}, {2, 4}, {2, 2}, {4, 2}, {8, 2}}) {
    const MicroKernel kernel{isa, rows, roundUp(blocks * lanes, packing.panel)};
    if (rows <= mostRows && verify(kernel))
      kernels.push_back(kernel);
  }
  return kernels;
}

/// A quantized weight that is multiplied as floats: slices are unpacked to a
/// copy that stays in a cache while blocks of rows come by, to the nearest one
/// if these are few.
ScheduleTable chooseUnpacking(const MatmulShape &shape, MatrixISA isa,
                              const Packing &packing, const Target &target,
                              int64_t threads) {
  const MicroKernel kernel = widestMicroKernel(isa);
  const int64_t bytes = multipliesBF16(isa) ? 2 : 4;
  const int64_t step = std::max(packingOf(isa).kStep, smallestGroup);
  const int64_t group = shape.storage.groupOf(shape.k);
  const int64_t unit =
      std::lcm(std::lcm(packing.panel, kernel.columns), shape.columnUnit);
  // Strips of so many rows widen each for itself what the one before left in a
  // cache; of two strips that takes less time than unpacking, but
  // for numbers of 8 bits, of which to widen one takes as long again.
  constexpr int64_t fewestRowsToWidenAgain = 8;
  const int64_t stripsToWiden =
      shape.storage.number == NumberFormat::Int4 ? 2 : 1;
  TableBuilder builder(shape, kernel, threads);
  Schedule &schedule = builder.schedule;
  schedule.order = LoopOrder::ColumnsOuter;
  schedule.slice[1] = unit;
  // Equal parts of K of whole groups, none if `most` is less than one.
  auto fitGroups = [&](int64_t most) {
    const int64_t groups = shape.k / group;
    return most < group
               ? 0
               : divideUp(groups, divideUp(groups, most / group)) * group;
  };
  // The same, or an equal part of a group.
  auto fitK = [&](int64_t cacheBytes) {
    const int64_t most = std::max(cacheBytes / bytes / unit, step);
    if (most >= group)
      return fitGroups(most);
    int64_t part = most / step * step;
    while (group % part != 0)
      part -= step;
    return part;
  };
  // Whether slices are copied ahead, then as they have to be for that.
  auto takesAllOfK = [&](Schedule &each) {
    each.order = LoopOrder::RowsOuter;
    each.slice[2] = shape.k;
    each.copiesAhead = true;
    return unit <= maxUnpackedWeight / shape.k &&
           bool(verifyCopiesAhead(each, shape));
  };
  int64_t served = 0;
  // Rows that are as few as the micro-kernels that widen integers have read the
  // weight as it is stored. The wider of them for fewer rows have enough sums
  // to wait for none, the others share what is taken out of a line.
  for (const MicroKernel &widening : wideningMicroKernels(isa, packing)) {
    schedule.microKernel = widening;
    schedule.slice[0] = widening.rows;
    schedule.slice[1] = std::lcm(unit, widening.columns);
    schedule.slice[2] = fitGroups(maxUnpackedWeight / schedule.slice[1]);
    if (widening.rows <= served || schedule.slice[2] == 0 ||
        !widensGroups(schedule, shape))
      continue;
    builder.serve(served + 1, widening.rows);
    served = widening.rows;
  }
  if (served >= fewestRowsToWidenAgain) {
    builder.table.back().maxRows = served * stripsToWiden;
    served *= stripsToWiden;
  }
  schedule.microKernel = kernel;
  schedule.slice[1] = unit;
  if (Schedule ahead = schedule; takesAllOfK(ahead)) {
    // Rows are what L2 holds the input of beside the chunks, but so many that
    // unpacking takes no longer than multiplying.
    constexpr int64_t fewestStrips = 2, mostStrips = 8;
    const int64_t inputRows = target.l2Bytes * 3 / 4 / (shape.k * bytes);
    const int64_t blockRows =
        std::clamp(inputRows / kernel.rows, fewestStrips, mostStrips) *
        kernel.rows;
    schedule = ahead;
    // Four strips and more share the work as four do.
    for (int64_t strips : {1, 2, 3})
      if (const int64_t rows = strips * kernel.rows;
          rows > served && rows < blockRows) {
        schedule.slice[0] = rows;
        builder.serve(served + 1, rows);
        served = rows;
      }
    schedule.slice[0] = blockRows;
    builder.serve(served + 1, INT64_MAX);
    return std::move(builder.table);
  }
  // One strip that does not widen, in a cache for it alone.
  schedule.slice[0] = kernel.rows;
  schedule.slice[2] = fitK(target.l1DataBytes / 2);
  if (served < kernel.rows)
    builder.serve(served + 1, kernel.rows);
  constexpr int64_t blockRows = 192;
  schedule.slice[0] = roundUp(blockRows, rowUnitOf(isa));
  schedule.slice[2] = fitK(target.l2Bytes / 4);
  builder.serve(std::max(served, kernel.rows) + 1, INT64_MAX);
  return std::move(builder.table);
}

/// Micro-kernels of integers for fewer rows than the widest has, fewest rows
/// first and of as many the widest first.
std::vector<MicroKernel> fewRowsIntegerMicroKernels(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_INT8:
    // More streams: on a Zen 3 two panels of 4 bits came to 80 to 85% of the
    // speed of memory, four to 99%.
    return {{isa, 1, 64}, {isa, 1, 32}};
  case MatrixISA::X86_AVX512_VNNI:
    // Panels side by side are as many streams, of which hardware prefetches
    // each: on a Cascade Lake 6x32 reads at 80% of the speed of memory, which
    // these come to.
    return {{isa, 1, 128}, {isa, 1, 64}, {isa, 2, 64}};
  case MatrixISA::X86_AMX_INT8:
    return {{isa, 16, 64}};
  case MatrixISA::ARM_NEON_DOTPROD:
  case MatrixISA::ARM_NEON_I8MM:
    // One row of 3x16 has four vectors of sums, and waits for each; a pair of
    // rows has nothing to multiply the second with.
    return {{MatrixISA::ARM_NEON_DOTPROD, 1, 32}};
  default:
    return {};
  }
}

/// Whether strips of rows prefetch the integers of `shape` under `schedule`:
/// one its own panels, several the next ones. On a Cascade Lake one strip then
/// reads weights of 4 bits at 90% of the speed of memory instead of 85, but
/// those of 8 bits at 80% instead of 95; a Zen 4, which has bf16, lost by it.
/// CPUs with tiles gain 4 to 10% of one strip, more of panels that it reads one
/// at a time, and 8 to 28% where tiles multiply; of two and three strips 10 to
/// 15%.
bool prefetchesIntegers(const Schedule &schedule, const MatmulShape &shape,
                        const Target &target, int64_t strips) {
  const MicroKernel &kernel = schedule.microKernel;
  const bool besideTiles = target.features.has(CpuFeature::AMX_TILE);
  if (!besideTiles && (kernel.isa != MatrixISA::X86_AVX512_VNNI ||
                       target.features.has(CpuFeature::AVX512BF16)))
    return false;
  if (strips == 1)
    return besideTiles || shape.storage.number == NumberFormat::Int4;
  // Half of L2 has the block's input, the other two slices at once.
  return 2 * weightBytes(shape.storage, kernel.columns, shape.k) <=
         target.l2Bytes / 2;
}

/// The micro-kernel of integers for a weight packed as `packing`: the widest,
/// or that of as many rows as fit beside each other's panels.
MicroKernel integerMicroKernel(MatrixISA isa, const Packing &packing) {
  MicroKernel kernel = widestMicroKernel(isa);
  if (kernel.columns % packing.panel == 0)
    return kernel;
  const int64_t step = registerFileOf(isa).rows;
  kernel = {isa, step, packing.panel};
  while (verify(MicroKernel{isa, kernel.rows + step, packing.panel}))
    kernel.rows += step;
  return kernel;
}

/// A quantized weight whose integers are multiplied: of its panels, which lie
/// in L2 while all strips of a block come by, all of K at once, so that the
/// input is rounded once.
ScheduleTable chooseIntegers(const MatmulShape &shape, MatrixISA isa,
                             const Target &target, int64_t threads) {
  const Packing packing = packingFor(shape, isa);
  const MicroKernel kernel = integerMicroKernel(isa, packing);
  const int64_t group = shape.storage.groupOf(shape.k);
  TableBuilder builder(shape, kernel, threads);
  Schedule &schedule = builder.schedule;
  const int64_t mostK =
      std::max(mostPackedInput(isa) / kernel.rows / group, int64_t(1)) * group;
  schedule.slice[2] = std::min(shape.k, mostK);
  // Of fewer strips of a block copying takes as long as it saves
  // (docs/RationaleQuantization.md).
  constexpr int64_t fewestStripsToRegroup = 8;
  // Half of L2 has the block's input, the other a copy and what is copied next.
  auto holdsCopy = [&](const Schedule &regrouped) {
    const int64_t columns = regrouped.slice[1], k = regrouped.slice[2];
    return weightBytes(multipliedStorage(regrouped, shape.storage), columns,
                       k) +
               weightBytes(shape.storage, columns, k) <=
           target.l2Bytes / 2;
  };
  // Tiles read no numbers of 4 bits.
  auto regroups = [&](int64_t strips) {
    return hasIntegerTiles(isa) ? shape.storage.number == NumberFormat::Int4
                                : isa == MatrixISA::X86_AVX512_VNNI &&
                                      strips >= fewestStripsToRegroup;
  };
  int64_t served = 0;
  auto serve = [&](int64_t maxRows) {
    schedule = completeByRule(schedule, shape, served + 1);
    schedule.groupK = schedule.chunkK = 0;
    // Blocks are even: one row more than a block has makes for halves.
    const int64_t fewestRows =
        maxRows > schedule.slice[0] ? schedule.slice[0] / 2 + 1 : served + 1;
    const int64_t strips =
        stripsOfBlock(schedule, std::min(served + 1, fewestRows));
    if (prefetchesIntegers(schedule, shape, target, strips))
      schedule = prefetchGroups(schedule, shape, strips);
    if (regroups(strips))
      if (const Schedule regrouped = regroup(schedule, shape);
          regrouped.groupK > 0 && holdsCopy(regrouped))
        schedule = regrouped;
    builder.add(maxRows);
    served = maxRows;
  };
  auto serveStrip = [&](const MicroKernel &strip) {
    schedule.microKernel = strip;
    schedule.slice[0] = strip.rows;
    schedule.slice[1] =
        std::lcm(std::lcm(packing.panel, strip.columns), shape.columnUnit);
    serve(strip.rows);
  };
  // Copies for tiles serve more rows than those have.
  if (!hasIntegerTiles(isa) || shape.storage.number == NumberFormat::Int8)
    for (const MicroKernel &fewRows : fewRowsIntegerMicroKernels(isa))
      if (fewRows.rows > served && coversColumns(fewRows, shape, threads))
        serveStrip(fewRows);
  if (served == 0 && isa == MatrixISA::ARM_NEON_I8MM)
    serveStrip({MatrixISA::ARM_NEON_DOTPROD, 1, packing.panel});
  serveStrip(kernel);
  // Half of L2 for the input, beside tiles, which multiply faster than weights
  // are copied, three quarters.
  const int64_t mostRows = hasIntegerTiles(isa) ? 256 : 192;
  const int64_t inputBytes =
      hasIntegerTiles(isa) ? target.l2Bytes * 3 / 4 : target.l2Bytes / 2;
  const int64_t rows =
      std::min({inputBytes / packedLength(isa, group, shape.k), mostRows,
                mostPackedInput(isa) / schedule.slice[2]});
  schedule.slice[0] = std::max<int64_t>(rows / kernel.rows, 1) * kernel.rows;
  // The fewer strips there are, the more lines each prefetches.
  for (int64_t strips : {2, 8})
    if (schedule.slice[0] > strips * kernel.rows)
      serve(strips * kernel.rows);
  serve(INT64_MAX);
  return std::move(builder.table);
}

/// The table for tiles of integers, with copies of weights of 4 bits; none if
/// there are none, or no copies can be made.
std::optional<ScheduleTable> chooseIntegerTiles(const MatmulShape &shape,
                                                const Target &target,
                                                int64_t threads) {
  const std::vector<MatrixISA> all = allInstructionsFor(shape, target);
  const auto isa = std::ranges::find_if(all, hasIntegerTiles);
  if (isa == all.end())
    return std::nullopt;
  ScheduleTable table = chooseIntegers(shape, *isa, target, threads);
  if (!std::ranges::all_of(table, [&](const ScheduleTableEntry &entry) {
        return verify(entry.schedule, shape).operator bool();
      }))
    return std::nullopt;
  return table;
}

/// Up to `fewRows` rows as `table` has them, more as `manyRows` has.
ScheduleTable joinTables(ScheduleTable table, const ScheduleTable &manyRows,
                         int64_t fewRows) {
  // The range of which so many are the last ends with them.
  const auto last = std::ranges::find_if(
      table, [&](const auto &entry) { return entry.maxRows >= fewRows; });
  last->maxRows = fewRows;
  table.erase(std::next(last), table.end());
  for (const ScheduleTableEntry &entry : manyRows)
    if (entry.maxRows > fewRows)
      table.push_back(entry);
  return table;
}

} // namespace

bool sandwich::packsByRule(const MicroKernel &kernel, int64_t rows,
                           int64_t columns) {
  // Tiles gain where K is short only (docs/RationaleGemm.md), and with fewer
  // rows than NEON's widest micro-kernels have all wait for memory. To pack an
  // element takes a cycle or less, and saves a tenth or a quarter of those that
  // multiply it by 8 to 32 columns each: for 256 columns, counted in
  // instructions.
  constexpr int64_t fewestRows = 7, fewestColumns = 256;
  return canPackInput(kernel.isa) && !hasTiles(kernel.isa) &&
         rows >= fewestRows && columns >= fewestColumns;
}

Result<ScheduleTable> sandwich::chooseByRule(const MatmulShape &shape,
                                             const Target &target,
                                             int64_t threads) {
  const std::vector<MatrixISA> all = allInstructionsFor(shape, target);
  if (all.empty())
    return makeError("no matrix instructions of ", target.name,
                     " multiply a weight of ", shape.n, " x ", shape.k);
  const MatrixISA chosen = all.front();
  if (multipliesIntegers(chosen)) {
    ScheduleTable table = chooseIntegers(shape, chosen, target, threads);
    // Up to so many rows integers are read at the speed of memory; as they are
    // stored tiles read them as fast, of two rows.
    constexpr int64_t fewRows = 16, fewRowsBesideTiles = 2;
    int64_t served = fewRows;
    if (const auto tiles = chooseIntegerTiles(shape, target, threads)) {
      served = mostRowsOfIntegerTiles(shape);
      // What is copied serves all rows but those that pay no copy.
      if (served == 0)
        return joinTables(table, *tiles, fewRows);
      table = joinTables(table, *tiles, fewRowsBesideTiles);
    }
    const MatrixISA forMany = all.back();
    if (served == INT64_MAX || multipliesIntegers(forMany))
      return table;
    return joinTables(table,
                      chooseUnpacking(shape, forMany, packingFor(shape, chosen),
                                      target, threads),
                      served);
  }
  if (unpacksWeights(chosen, shape.storage))
    return chooseUnpacking(shape, chosen, packingFor(shape, chosen), target,
                           threads);
  if (hasTiles(chosen))
    return chooseTiles(shape, chosen, target, threads);
  MicroKernel kernel = widestMicroKernel(chosen);
  Packing packing = packingOf(chosen);
  TableBuilder builder(shape, kernel, threads);
  Schedule &schedule = builder.schedule;
  schedule.slice[1] = std::lcm(columnsOf(packing), shape.columnUnit);

  // One strip of rows streams the weight once with nothing to wait for but
  // memory, so it takes all of K.
  schedule.slice[2] = shape.k;
  int64_t served = 0;
  if (chosen == MatrixISA::X86_AVX2_F32 &&
      coversColumns(fewRowsOfAVX2, shape, threads)) {
    const Schedule tall = schedule;
    schedule.microKernel = fewRowsOfAVX2;
    schedule.slice[0] = fewRowsOfAVX2.rows;
    schedule.slice[1] = std::lcm(schedule.slice[1], fewRowsOfAVX2.columns);
    served = fewRowsOfAVX2.rows;
    builder.serve(1, served);
    // On a Zen 3 requests of its own only disturbed the hardware's.
    builder.table.back().schedule.prefetchLines = 0;
    schedule = tall;
  }
  schedule.slice[0] = kernel.rows;
  builder.serve(served + 1, kernel.rows);

  int64_t fewerRows = kernel.rows;
  schedule.packsInput =
      packsByRule(kernel, fewerRows + 1, divideUp(shape.n, threads));
  if (schedule.packsInput)
    kernel = schedule.microKernel = manyRowsMicroKernel(kernel, shape);
  // A slice that has no place packed would be cut to fewer rows.
  auto fits = [&](int64_t rows, int64_t k) {
    return !schedule.packsInput || rows <= maxPackedInput / k;
  };
  if (kernel.rows > fewerRows && fits(kernel.rows, shape.k)) {
    schedule.slice[0] = kernel.rows;
    builder.serve(fewerRows + 1, kernel.rows);
    fewerRows = kernel.rows;
  }
  // More strips reuse the slice. The fewest strips of a range must still
  // prefetch all of the next one. Blocks of rows keep most of their input in
  // L2, and the halves of a block that is just too large still have strips
  // enough to prefetch with.
  schedule.slice[0] = 192;
  schedule.slice[2] = chooseSliceK(shape, packing, chosen, target);
  if (!fits(schedule.slice[0], schedule.slice[2]))
    schedule.slice[2] =
        maxPackedInput / schedule.slice[0] / packing.kStep * packing.kStep;
  const int64_t mostColumns =
      schedule.slice[1] *
      divideUp(divideUp(shape.n, schedule.slice[1]), threads);
  if (schedule.packsInput && schedule.slice[2] < shape.k)
    // A slice of the input is packed once for all of these columns.
    schedule.slice[1] = std::clamp(maxBlockSums / schedule.slice[0] /
                                       schedule.slice[1] * schedule.slice[1],
                                   schedule.slice[1], mostColumns);
  for (int64_t mostStrips : {2, 4, 8}) {
    builder.serve(fewerRows + 1, kernel.rows * mostStrips);
    fewerRows = kernel.rows * mostStrips;
  }
  builder.serve(fewerRows + 1, INT64_MAX);
  return std::move(builder.table);
}
