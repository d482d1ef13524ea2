//===- Schedule.h - How a matmul runs ---------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Micro-kernels, schedules and weight packings as plain data. The `gemm`
/// dialect is their written form; solvers work on these.
///
/// A matmul is `result[M, N] = input[M, K] * transpose(weight[N, K])`, where M
/// counts tokens and is known only at run time.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_SCHEDULE_H
#define SANDWICH_SCHEDULING_SCHEDULE_H

#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Scheduling/MatmulEpilogue.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// A single-threaded program that multiplies up to `rows` rows of the input by
/// `columns` columns of the weight, all accumulators in registers (Sandwich
/// paper, section 5, "Micro-Kernel Generation").
///
/// The name is `ISA_ROWSxCOLUMNS`, for example `X86_AVX512_BF16_14x32`.
/// A micro-kernel also serves every smaller number of rows.
struct MicroKernel {
  MatrixISA isa = MatrixISA::X86_AVX2_F32;
  int64_t rows = 0;
  int64_t columns = 0;

  std::string name() const;
  /// Errors: a name outside the grammar.
  static Result<MicroKernel> parse(std::string_view name);

  auto operator<=>(const MicroKernel &) const = default;
};

/// An error if the micro-kernel does not fit the register file of its ISA
/// without spilling, or its shape is no multiple of what its instructions
/// compute. In registers are all sums, the operands of their rows or of their
/// columns, whichever are fewer, and one of the others; for bfmmla, whose rows
/// come in halves, one more where the rows pass through. Sums of integers are
/// two, one of the group and one in f32, and their operands come from a line
/// and through a mask; those of matrix multiplication see `matrixInt8Columns`.
Status verify(const MicroKernel &kernel);

/// Columns whose sums of a group micro-kernels of ARM_NEON_I8MM have in
/// registers at a time, those in f32 being in memory. More columns than a panel
/// then gain them nothing.
inline constexpr int64_t matrixInt8Columns = 8;

/// How the elements of a weight `[N, K]` lie in memory:
/// `[N / panel][K / kStep][panel / tile][kStep / kPack][tile][kPack]`.
///
/// With `tile = panel` and `kStep = kPack` that is `[N / panel][K / kPack]
/// [panel][kPack]`, what vector instructions stream; AMX wants tiles of 16
/// columns by 32 k, each 1 KB in one piece. N is filled up with zeros to a
/// multiple of `panel`; K must be a multiple of `kStep`.
struct Packing {
  int64_t panel = 32;
  int64_t tile = 32;
  int64_t kStep = 1;
  int64_t kPack = 1;

  auto operator<=>(const Packing &) const = default;
};

/// The packing of a weight for `isa` where nothing else was decided.
Packing packingOf(MatrixISA isa);

/// The order of the numbers of a group: as instructions for integers take them,
/// [group / 4][panel][4].
Packing integerPacking(int64_t panel);

/// `packingOf(isa)`, or that of groups with its panels.
Packing packingOf(MatrixISA isa, const StorageFormat &storage);

/// Every packing of floats that some micro-kernel of `isa` reads, narrowest
/// panel first.
std::vector<Packing> packingsOf(MatrixISA isa);

/// The same of a weight in `storage`: of groups, those in the order of
/// integers.
std::vector<Packing> packingsOf(MatrixISA isa, const StorageFormat &storage);

/// The packing in which micro-kernels of `isa` find a weight that is stored as
/// `storage` and `packing`: this one, or that of the copy to which it is
/// unpacked.
Packing multipliedPacking(MatrixISA isa, const Packing &packing,
                          const StorageFormat &storage);

/// Whether `kernel` can multiply a weight packed as `packing`: its elements lie
/// in the order its instructions want, or the weight can be unpacked to that,
/// and its columns divide a panel or are whole panels; of integers only the
/// latter.
bool reads(const MicroKernel &kernel, const Packing &packing,
           const StorageFormat &storage = StorageFormat::f32());

/// Elements of `elementBytes` from one row of an input to the next: a cache
/// line more than the channels, as rows a power of two apart would fall into
/// the same cache set.
int64_t rowStride(int64_t channels, int64_t elementBytes);

/// The order in which a thread walks the blocks of bM rows and bN columns of
/// its part.
enum class LoopOrder : uint8_t {
  /// For each block of rows all blocks of columns: the input stays near.
  RowsOuter,
  /// For each block of columns all blocks of rows: reads a weight once even
  /// where bM is less than the rows.
  ColumnsOuter,
};

/// `rows_outer` or `columns_outer`.
std::string_view name(LoopOrder order);
/// The order called `name`, or nothing.
std::optional<LoopOrder> loopOrderNamed(std::string_view name);

/// Where software prefetches bring lines of the weight.
enum class PrefetchHint : uint8_t {
  /// Into every cache (`l1`, x86's prefetcht0).
  L1,
  /// Not into L1 (`l2`, prefetcht1): a slice that L1 does not hold.
  L2,
  /// Into as few caches as possible (`non_temporal`, prefetchnta).
  NonTemporal,
};

/// How results are written.
enum class StoreKind : uint8_t {
  /// Into the caches, where the next operation finds them (`cached`).
  Cached,
  /// Past the caches, which then keep the operands and need not read what is
  /// overwritten (`non_temporal`). The `rotate_append_kv` epilogue, whose
  /// results are read at once, writes into the caches all the same.
  NonTemporal,
};

/// Which operands tiles are loaded from past the nearest cache (`tileloaddt1`),
/// so that it keeps the others.
enum class StreamedOperands : uint8_t {
  /// `none`
  None,
  /// The input, and sums that are added to (`input`): the weight is in L1.
  Input,
  /// `weight`
  Weight,
  /// `both`, and sums
  Both,
};

/// `none`, `input`, `weight` or `both`.
std::string_view name(StreamedOperands operands);
std::optional<StreamedOperands> streamedOperandsNamed(std::string_view name);
inline bool streamsInput(StreamedOperands operands) {
  return operands == StreamedOperands::Input ||
         operands == StreamedOperands::Both;
}
inline bool streamsWeight(StreamedOperands operands) {
  return operands == StreamedOperands::Weight ||
         operands == StreamedOperands::Both;
}

/// `l1`, `l2` or `non_temporal`.
std::string_view name(PrefetchHint hint);
std::optional<PrefetchHint> prefetchHintNamed(std::string_view name);
/// `cached` or `non_temporal`.
std::string_view name(StoreKind stores);
std::optional<StoreKind> storeKindNamed(std::string_view name);

/// How one matmul runs for a range of M.
struct Schedule {
  MicroKernel microKernel;
  /// Computation slice bM, bN, bK: the block whose accumulators and operands
  /// stay in cache. bN is a multiple of the micro-kernel's columns; bK of the
  /// packing's kStep. A slice may be larger than the matmul.
  std::array<int64_t, 3> slice = {0, 0, 0};
  /// Thread grid tM, tN, tK (polymerization scheme); its product is at most
  /// the team, whose other threads wait.
  std::array<int64_t, 3> threads = {1, 1, 1};
  /// Cache lines of the weight that software prefetches for each four packed
  /// k steps of the micro-kernel; 0 for none. One strip of rows needs as many
  /// as it reads, S strips an S-th of that. Of slices that are copied first, 1:
  /// calls share those of the next one evenly, or, of copies made ahead, each
  /// line that is unpacked has one prefetched.
  int64_t prefetchLines = 0;
  /// How far ahead of the micro-kernel's own reads they lie, in bytes; 0: in
  /// the slice of the weight that the thread reads next.
  int64_t prefetchDistance = 0;
  LoopOrder order = LoopOrder::RowsOuter;
  /// The slice that the thread reads next is cut into this many equally long
  /// segments whose lines are prefetched in turn, so that the streamers of
  /// several pages run ahead. 1 unless `prefetchDistance` is 0.
  int64_t prefetchStreams = 1;
  PrefetchHint prefetchHint = PrefetchHint::L1;
  StoreKind stores = StoreKind::Cached;
  /// K of one call of the micro-kernel: a panel's part of the slice is walked
  /// in such chunks, all strips of rows for each, so that a chunk stays in the
  /// nearest cache. A multiple of the packing's kStep; 0: all of bK.
  int64_t chunkK = 0;
  /// Each thread copies its rows of a slice to one piece, in the order in which
  /// micro-kernels read them, before it multiplies. Of instructions that
  /// `canPackInput` only.
  bool packsInput = false;
  /// Of instructions on tiles only.
  StreamedOperands streamed = StreamedOperands::None;
  /// k that share a scale while integers are multiplied; 0: as they are stored.
  /// More, up to `longestRegrouped`, so that sums are scaled less often: each
  /// slice of a weight of 4 bits is first copied to 8 bits with a scale for as
  /// many k, several groups, and the input is rounded in groups as long.
  int64_t groupK = 0;
  /// Whether a chunk of a panel of a weight that is unpacked for tiles of bf16
  /// is unpacked while tiles multiply the one before, instead of slice by slice
  /// before they do: vectors have time for that.
  bool copiesAhead = false;

  auto operator<=>(const Schedule &) const = default;
};

/// Whether micro-kernels of `isa` can read packed input: tiles, NEON, bfmmla
/// and those of integers, which read no other. Others put an element of a row
/// in every lane without an instruction more.
bool canPackInput(MatrixISA isa);

/// Whether the untuned rule has `kernel` read packed input where a thread's
/// part has `rows` rows and `columns` columns.
bool packsByRule(const MicroKernel &kernel, int64_t rows, int64_t columns);

/// k that tiles of integers multiply at once of groups of `group` k, of which
/// these have a multiple: what a row of a tile holds, or half; 0 if neither.
constexpr int64_t kOfIntegerTiles(int64_t group) {
  for (int64_t k : {64, 32})
    if (group % k == 0)
      return k;
  return 0;
}

/// Whether `isa` multiplies tiles of integers: of 8 bits without minima, in
/// groups that `kOfIntegerTiles` knows, or what schedules copy to that
/// (`groupK`).
inline bool hasIntegerTiles(MatrixISA isa) {
  return hasTiles(isa) && multipliesIntegers(isa);
}

/// Whether `isa` multiplies tiles of integers whose inputs fill half of a
/// tile's rows, as groups of `group` k want.
inline bool halvesInputTiles(MatrixISA isa, int64_t group) {
  return hasIntegerTiles(isa) && kOfIntegerTiles(group) == 32;
}

/// Whether there are tiles for all sums of `kernel`, of weights in groups of
/// `group` k: where inputs fill half a row, the fifth tile holds no sums.
bool hasTilesForSums(const MicroKernel &kernel, int64_t group);

/// The most k of a group to which slices are copied: inputs that are rounded in
/// longer ones come near 1e-3 nats from a file's values
/// (docs/RationaleQuantization.md).
inline constexpr int64_t longestRegrouped = 256;
/// The most f32 sums of a block, bM * bN, that a thread keeps.
inline constexpr int64_t maxBlockSums = 1 << 18;
/// The most elements of the weight, bN * bK, that it unpacks.
inline constexpr int64_t maxUnpackedWeight = 1 << 20;
/// The most elements of its input, bM * bK, that it packs; where registers hold
/// pairs of rows, a strip of an odd number adds a row.
inline constexpr int64_t maxPackedInput = 1 << 19;
/// The same for micro-kernels of `isa`: L2 beside tiles holds that many bytes
/// four times, and all of K at once saves rounding it again.
inline int64_t mostPackedInput(MatrixISA isa) {
  return hasIntegerTiles(isa) ? 4 * maxPackedInput : maxPackedInput;
}

/// The bytes that a group of a row of packed integers takes: beside them there
/// are an i32 that the sum of products begins with, or an f32 where the weight
/// has minima, and the scale in f32.
constexpr int64_t packedGroupLength(int64_t group) { return group + 8; }

/// The elements that `k` elements of a row take packed for `isa`, for weights
/// in groups of `group` k.
int64_t packedLength(MatrixISA isa, int64_t group, int64_t k);

/// A schedule and the largest M it serves; the last entry of a table serves
/// every larger M as well.
struct ScheduleTableEntry {
  int64_t maxRows = 0;
  Schedule schedule;

  auto operator<=>(const ScheduleTableEntry &) const = default;
};
using ScheduleTable = std::vector<ScheduleTableEntry>;

/// The schedule of `table`, which is not empty, that serves `rows` tokens.
const Schedule &scheduleFor(const ScheduleTable &table, int64_t rows);

/// A matmul as the rule sees it.
struct MatmulShape {
  int64_t n = 0;
  int64_t k = 0;
  /// Columns that one thread must own together (a head for rotary epilogues,
  /// a gate and its up panel).
  int64_t columnUnit = 1;
  /// How the weight's numbers are stored.
  StorageFormat storage;
  /// How the weight lies in memory; nothing: in the default packing of the
  /// schedule's instructions.
  std::optional<Packing> packing = {};
  /// Whether the input may be rounded to int8 in groups as long as the
  /// weight's, which is of integers, each with a scale of its own, where there
  /// are instructions for that.
  bool roundsInput = false;
  /// Whether each sum must have the same bits whatever M is: then no threads
  /// share K, and all else adds in the order of K.
  bool deterministic = false;
  MatmulEpilogue epilogue = {};

  auto operator<=>(const MatmulShape &) const = default;
};

/// Whether instructions of `isa` can multiply a weight in `storage`.
bool multiplies(MatrixISA isa, const StorageFormat &storage);

/// What untuned and tuned schedules of `shape` multiply with: those of integers
/// if there are any and they may, else the last of `target` that fit; nothing
/// if none do.
std::optional<MatrixISA> instructionsFor(const MatmulShape &shape,
                                         const Target &target);

/// The most rows that tiles of integers of the weight of `shape`, read as it is
/// stored, take less time for than floats that it is unpacked to, by the
/// untuned rule; 0 if there are no such tiles.
int64_t mostRowsOfIntegerTiles(const MatmulShape &shape);

/// All that schedules of `shape` may multiply with, whether tuned or not: what
/// `instructionsFor` says; behind integers tiles of them, which give the same
/// bits, or, where sums may depend on the rows, such tiles for copies in longer
/// groups; then, unless groups are long enough for tiles of all rows, the
/// floats to which slices are unpacked for more rows, where these gain by that
/// and sums may depend on the rows; or, behind those of pairs of rows, those
/// for one row that give the same bits. Others may be less exact than was asked
/// for, which speed alone must not decide.
std::vector<MatrixISA> allInstructionsFor(const MatmulShape &shape,
                                          const Target &target);

/// Whether `isa` finds in slices of `sliceK` of a weight of `k` k what it can
/// multiply: whole groups or, unpacked, an equal part of one.
bool hasWholeGroups(MatrixISA isa, const StorageFormat &storage, int64_t k,
                    int64_t sliceK);

/// Whether each slice of a weight in `storage` is turned into floats in memory
/// before micro-kernels of `isa` multiply it.
bool unpacksWeights(MatrixISA isa, const StorageFormat &storage);

/// How micro-kernels of integers find a weight in `storage` under `schedule`.
StorageFormat multipliedStorage(const Schedule &schedule,
                                const StorageFormat &storage);

/// An error if `groupK` of `schedule` does not suit `shape`: groups become
/// longer where integers of 4 bits are multiplied, in whole groups that divide
/// K, which no threads share, and where sums may depend on the number of rows.
Status verifyRegrouping(const Schedule &schedule, const MatmulShape &shape);

/// k that are unpacked at a time where slices are copied ahead, and columns: of
/// numbers of 4 bits two lines of 16 columns share one.
inline constexpr int64_t kOfAheadRound = 32, columnsAhead = 32;

/// Of copies ahead: the steps of 32 k in each of which 32 k of what comes next
/// are unpacked, 1, 2, 4 or 8: the more, the less there is to do beside a
/// multiplication, but `strips` strips have to unpack a chunk together. Chunks
/// are whole rounds of them.
int64_t stepsOfAheadRound(const Schedule &schedule, int64_t k, int64_t strips);

/// An error if `schedule` copies ahead and `shape` cannot be: a weight that is
/// unpacked for tiles of bf16, in groups of whole rounds, whose panels are the
/// micro-kernel's columns, all of K at once and not shared by threads.
Status verifyCopiesAhead(const Schedule &schedule, const MatmulShape &shape);

/// Whether its numbers are turned into those that `isa` multiplies in
/// registers.
bool widensWeights(MatrixISA isa, const StorageFormat &storage);

/// Whether micro-kernels read the weight of `shape` as it is stored and turn
/// its numbers into floats in registers instead, under `schedule`: where a
/// slice is one strip of rows, which would read an unpacked copy but once, of
/// whole groups and panels, and where there are registers for a group's sums,
/// too. As the sums of a group are scaled, not its weights, sums depend on
/// which of the two it is: never where they must not depend on the rows.
bool widensGroups(const Schedule &schedule, const MatmulShape &shape);

/// Whether each slice of the weight of `shape` is copied under `schedule`: to
/// floats, or to longer groups.
inline bool unpacksWeights(const Schedule &schedule, const MatmulShape &shape) {
  return schedule.groupK > 0 ||
         (unpacksWeights(schedule.microKernel.isa, shape.storage) &&
          !widensGroups(schedule, shape));
}

/// The packing that schedules for `isa` find the weight of `shape` in.
Packing packingFor(const MatmulShape &shape, MatrixISA isa);

/// An error if a quantized weight would be prefetched otherwise than it can be:
/// at a distance where micro-kernels read it as it is stored, else the slice
/// that is copied next, of which calls share the lines evenly.
Status verifyPrefetching(const Schedule &schedule, const MatmulShape &shape);

/// `schedule` with a quantized weight prefetched: one that is copied slice by
/// slice; of one that is read in groups, one strip of
/// rows has its own panels prefetched at a distance that was found by hand;
/// where there are at least `strips`, they share the work of prefetching the
/// panels that come next.
Schedule prefetchGroups(Schedule schedule, const MatmulShape &shape,
                        int64_t strips);

/// The k of a group to which slices of `k` k are copied for `isa`: 128, for
/// tiles 256 where that divides `k`.
int64_t longGroupOf(MatrixISA isa, int64_t k);

/// `schedule`, of integers, with slices copied to groups of `longGroupOf` k,
/// and chunks of K of which L1 holds a panel's. As it was where that does not
/// suit `shape`, and where the weight has minima, which are there to be more
/// exact.
Schedule regroup(Schedule schedule, const MatmulShape &shape);

/// `schedule` with what the untuned rule has beside slices and threads, for
/// `rows` tokens. One strip of rows prefetches its own stream ahead, more
/// strips share the work of prefetching all of the next slice. Tiles also get
/// the rule's chunks of K, and stream what does not stay in L1; integers get
/// the packed input that they need.
Schedule completeByRule(Schedule schedule, const MatmulShape &shape,
                        int64_t rows);

/// The untuned schedule table: a fixed rule from the CPU model, described in
/// docs/RationaleGemm.md. Errors: no ISA of the target fits the shape.
Result<ScheduleTable> chooseByRule(const MatmulShape &shape,
                                   const Target &target, int64_t threads);

/// Whether `schedule` can run `shape`; an error says what does not fit.
Status verify(const Schedule &schedule, const MatmulShape &shape);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_SCHEDULE_H
