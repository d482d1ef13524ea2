//===- Schedule.cpp - How a matmul runs -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <charconv>
#include <functional>

using namespace sandwich;

namespace {

constexpr int64_t maxSliceSize = int64_t(1) << 30;

bool parsePositive(std::string_view text, int64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

} // namespace

std::string MicroKernel::name() const {
  return std::string(sandwich::name(isa)) + "_" + std::to_string(rows) + "x" +
         std::to_string(columns);
}

Result<MicroKernel> MicroKernel::parse(std::string_view text) {
  for (MatrixISA isa : allMatrixISAs()) {
    std::string_view prefix = sandwich::name(isa);
    if (!text.starts_with(prefix) || text.size() <= prefix.size() ||
        text[prefix.size()] != '_')
      continue;
    std::string_view shape = text.substr(prefix.size() + 1);
    size_t cross = shape.find('x');
    MicroKernel kernel{isa};
    if (cross != shape.npos &&
        parsePositive(shape.substr(0, cross), kernel.rows) &&
        parsePositive(shape.substr(cross + 1), kernel.columns))
      return kernel;
  }
  return makeError("'", text,
                   "' is no micro-kernel's name; they are "
                   "ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32");
}

/// Six tiles have as many rows as are configured, and hold sums and input; two
/// hold weights.
static Status verifyTiles(const MicroKernel &kernel, int64_t rows,
                          int64_t columns) {
  constexpr int64_t available = 6, mostRows = 2;
  int64_t needed = rows * columns + (columns < rows ? 1 : rows);
  if (rows > mostRows || needed > available)
    return makeError(kernel.name(), " needs ", needed, " tiles for ", rows,
                     " of rows and the sums, there are ", available, " for ",
                     mostRows);
  return {};
}

/// Beside a group's sums of `pairs` of rows are first the operands of these and
/// those of the columns, zipped from two lines each, and a mask; then two
/// registers of each pair, its scales and the sums of its input, those of the
/// columns and one sum in f32.
static Status verifyMatrixInt8(const MicroKernel &kernel, int64_t pairs) {
  constexpr int64_t available = 32, mostColumns = 32, ofColumns = 6;
  if (kernel.columns % matrixInt8Columns != 0 || kernel.columns > mostColumns)
    return makeError(kernel.name(), " needs a multiple of ", matrixInt8Columns,
                     " columns, at most ", mostColumns);
  const int64_t needed = pairs * matrixInt8Columns / 2 + 2 * pairs + ofColumns;
  if (needed > available)
    return makeError(kernel.name(), " needs ", needed, " registers, ",
                     name(kernel.isa), " has ", available);
  return {};
}

Status sandwich::verify(const MicroKernel &kernel) {
  RegisterFile file = registerFileOf(kernel.isa);
  if (kernel.rows <= 0 || kernel.rows > 64 || kernel.columns <= 0 ||
      kernel.columns > 256 || kernel.columns % file.columns != 0)
    return makeError(kernel.name(), " needs 1 to 64 rows and a multiple of ",
                     file.columns, " columns, at most 256");
  // Tiles have as many rows as are configured, up to all; bfmmla always has
  // two.
  if (kernel.rows % file.rows != 0)
    return makeError(kernel.name(), " needs a multiple of ", file.rows,
                     " rows");
  int64_t rows = kernel.rows / file.rows;
  int64_t columns = kernel.columns / file.columns;
  if (hasTiles(kernel.isa))
    return verifyTiles(kernel, rows, columns);
  if (kernel.isa == MatrixISA::ARM_NEON_I8MM)
    return verifyMatrixInt8(kernel, rows);
  // The operands of the rows or of the columns, whichever are fewer, stay for a
  // step; the others pass through one register in turn.
  int64_t operands = std::min(rows, columns) + 1;
  // Two rows of the input come in two registers before they are one operand.
  if (file.rows == 2 && rows > columns)
    ++operands;
  // Their loads take an address each: with more, LLVM's loops spill them.
  constexpr int64_t mostScalableColumns = 7, mostPairs = 28;
  const int64_t mostRowsBesideMore = file.rows == 2 ? 1 : 2;
  if (hasScalableVectors(kernel.isa) && columns > mostScalableColumns &&
      rows > mostRowsBesideMore)
    return makeError(kernel.name(), " needs addresses for ", columns,
                     " registers of columns; beside more than ",
                     mostRowsBesideMore * file.rows,
                     " rows there are some for ", mostScalableColumns);
  if (hasScalableVectors(kernel.isa) && file.rows == 2 && rows > mostPairs)
    return makeError(kernel.name(), " needs addresses for ", rows,
                     " pairs of rows; there are some for ", mostPairs);
  int64_t needed = rows * columns + operands;
  // Of integers the sums of a group are beside those in f32. Where AVX2
  // multiplies, the latter wait in memory if they are many; a mask, ones, a
  // line as it is stored, weights without their sign and the input with one are
  // beside the former.
  if (kernel.isa == MatrixISA::X86_AVX2_INT8)
    needed += 5;
  else if (multipliesIntegers(kernel.isa))
    needed += rows * columns + 2;
  if (needed > file.registers)
    return makeError(kernel.name(), " needs ", needed, " registers, ",
                     sandwich::name(kernel.isa), " has ", file.registers);
  return {};
}

/// The packing of `isa` with panels of `panel` columns.
static Packing makePacking(MatrixISA isa, int64_t panel) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
  case MatrixISA::ARM_NEON_F32:
  case MatrixISA::ARM_SVE_F32:
    return {.panel = panel, .tile = panel, .kStep = 1, .kPack = 1};
  case MatrixISA::X86_AVX2_INT8:
  case MatrixISA::X86_AVX_VNNI:
  case MatrixISA::X86_AVX512_VNNI:
  case MatrixISA::X86_AMX_INT8:
  case MatrixISA::ARM_NEON_DOTPROD:
  case MatrixISA::ARM_NEON_I8MM:
    return integerPacking(panel);
  case MatrixISA::X86_AVX512_BF16:
    return {.panel = panel, .tile = panel, .kStep = 2, .kPack = 2};
  case MatrixISA::X86_AMX_BF16:
    return {.panel = panel, .tile = 16, .kStep = 32, .kPack = 2};
  case MatrixISA::ARM_NEON_BF16:
  case MatrixISA::ARM_SVE_BF16:
    return {.panel = panel, .tile = panel, .kStep = 4, .kPack = 4};
  }
  __builtin_unreachable();
}

static bool isNeon(MatrixISA isa) {
  return isa == MatrixISA::ARM_NEON_F32 || isa == MatrixISA::ARM_NEON_DOTPROD ||
         isa == MatrixISA::ARM_NEON_I8MM || isa == MatrixISA::ARM_NEON_BF16;
}

/// Whether registers have 256 bits.
static bool isAVX2(MatrixISA isa) {
  return isa == MatrixISA::X86_AVX2_F32 || isa == MatrixISA::X86_AVX2_INT8 ||
         isa == MatrixISA::X86_AVX_VNNI;
}

bool sandwich::canPackInput(MatrixISA isa) {
  return hasTiles(isa) || isNeon(isa) || isa == MatrixISA::ARM_SVE_BF16 ||
         multipliesIntegers(isa);
}

int64_t sandwich::packedLength(MatrixISA isa, int64_t group, int64_t k) {
  if (!multipliesIntegers(isa))
    return k;
  return divideUp(k, group) * packedGroupLength(group);
}

Packing sandwich::packingOf(MatrixISA isa) {
  // As wide as the micro-kernel of few rows: one that takes half of a panel
  // reads every other line, and all of it twice. On AVX2 that took 20 to 30%
  // longer for 1 to 6 rows.
  const bool narrow = isNeon(isa) || isAVX2(isa);
  return makePacking(isa, narrow ? 16 : 32);
}

Packing sandwich::integerPacking(int64_t panel) {
  return {.panel = panel, .tile = panel, .kStep = 4, .kPack = 4};
}

Packing sandwich::packingOf(MatrixISA isa, const StorageFormat &storage) {
  const Packing packing = packingOf(isa);
  return storage.isQuantized() ? integerPacking(packing.panel) : packing;
}

Packing sandwich::multipliedPacking(MatrixISA isa, const Packing &packing,
                                    const StorageFormat &storage) {
  return unpacksWeights(isa, storage) ? makePacking(isa, packing.panel)
                                      : packing;
}

std::vector<Packing> sandwich::packingsOf(MatrixISA isa) {
  std::vector<Packing> packings;
  if (isNeon(isa))
    for (int64_t panel : {8, 12, 16, 24, 32})
      packings.push_back(makePacking(isa, panel));
  else
    for (int64_t panel : {16, 32, 48, 64})
      packings.push_back(makePacking(isa, panel));
  // Integers take whole panels, which AVX2 has no registers for if they are
  // wide.
  if (multipliesIntegers(isa))
    std::erase_if(packings, [&](const Packing &packing) {
      return !verify(MicroKernel{isa, registerFileOf(isa).rows, packing.panel});
    });
  return packings;
}

/// Whether a vector of 64 bytes holds numbers of one k step.
static bool isIntegerPacking(const Packing &packing) {
  return packing.panel % 16 == 0 && packing == integerPacking(packing.panel);
}

std::vector<Packing> sandwich::packingsOf(MatrixISA isa,
                                          const StorageFormat &storage) {
  std::vector<Packing> packings = packingsOf(isa);
  if (!storage.isQuantized())
    return packings;
  for (Packing &packing : packings)
    packing = integerPacking(packing.panel);
  std::erase_if(packings, std::not_fn(isIntegerPacking));
  return packings;
}

bool sandwich::reads(const MicroKernel &kernel, const Packing &packing,
                     const StorageFormat &storage) {
  if (storage.isQuantized() && !isIntegerPacking(packing))
    return false;
  const std::vector<Packing> packings = packingsOf(kernel.isa);
  const Packing multiplied = multipliedPacking(kernel.isa, packing, storage);
  const bool readsParts = !multipliesIntegers(kernel.isa);
  return std::ranges::find(packings, multiplied) != packings.end() &&
         ((readsParts && packing.panel % kernel.columns == 0) ||
          kernel.columns % packing.panel == 0);
}

bool sandwich::multiplies(MatrixISA isa, const StorageFormat &storage) {
  if (hasIntegerTiles(isa))
    return storage.hasIntegers() && storage.offset != GroupOffset::Minimum &&
           (storage.number == NumberFormat::Int4 ||
            kOfIntegerTiles(storage.groupSize) > 0);
  // Steps of K are whole groups or parts of one.
  if (storage.isQuantized())
    return (storage.hasIntegers() || !multipliesIntegers(isa)) &&
           storage.groupSize % packingOf(isa).kStep == 0;
  return elementOf(isa) == MatrixElement::F32 ||
         (multipliesBF16(isa) && storage.number == NumberFormat::BF16);
}

std::optional<MatrixISA> sandwich::instructionsFor(const MatmulShape &shape,
                                                   const Target &target) {
  std::optional<MatrixISA> chosen;
  for (MatrixISA isa : target.matrixISAs) {
    if (!multiplies(isa, shape.storage) ||
        shape.k % packingOf(isa).kStep != 0 ||
        (multipliesIntegers(isa) && !shape.roundsInput) || hasIntegerTiles(isa))
      continue;
    if (!chosen || multipliesIntegers(isa) || !multipliesIntegers(*chosen))
      chosen = isa;
  }
  return chosen;
}

int64_t sandwich::mostRowsOfIntegerTiles(const MatmulShape &shape) {
  constexpr MatrixISA isa = MatrixISA::X86_AMX_INT8;
  if (!multiplies(isa, shape.storage) ||
      !verifyRegrouping({.microKernel = {isa}}, shape))
    return 0;
  // To scale the sums of a group takes as long as to multiply 128 k, and half
  // of a tile's rows as long as whole ones. Of few rows that is less than
  // unpacking takes, which all rows share: about as many as a group has k.
  constexpr int64_t fewestK = 128;
  const int64_t group = shape.storage.groupOf(shape.k);
  return group >= fewestK && !halvesInputTiles(isa, group) ? INT64_MAX : group;
}

/// Whether slices of `shape` can be copied to the groups that `isa` wants.
static bool regroups(MatrixISA isa, const MatmulShape &shape) {
  const Schedule copied{.microKernel = {isa},
                        .groupK = longGroupOf(isa, shape.k)};
  return multiplies(isa, shape.storage) && verifyRegrouping(copied, shape);
}

/// Whether many rows of floats take less time than those of integers: scaling
/// the sums of each group takes most of what tiles of integers would gain, and
/// where only AVX2 multiplies integers, registers of floats are twice as long.
static bool gainsByFloats(MatrixISA integers, MatrixISA floats) {
  return hasTiles(floats) || (integers == MatrixISA::X86_AVX2_INT8 &&
                              floats == MatrixISA::X86_AVX512_F32);
}

std::vector<MatrixISA> sandwich::allInstructionsFor(const MatmulShape &shape,
                                                    const Target &target) {
  const std::optional<MatrixISA> chosen = instructionsFor(shape, target);
  if (!chosen)
    return {};
  std::vector<MatrixISA> all = {*chosen};
  // One row would fill half of each register.
  if (*chosen == MatrixISA::ARM_NEON_I8MM)
    all.push_back(MatrixISA::ARM_NEON_DOTPROD);
  // Of few rows vectors widen what is unpacked for tiles.
  if (*chosen == MatrixISA::X86_AMX_BF16 &&
      unpacksWeights(*chosen, shape.storage) && !shape.deterministic)
    all.push_back(MatrixISA::X86_AVX512_BF16);
  const bool hasIntegerTiles =
      std::ranges::any_of(target.matrixISAs, [](MatrixISA isa) {
        return sandwich::hasIntegerTiles(isa);
      });
  if (!multipliesIntegers(*chosen))
    return all;
  const int64_t rowsOfTiles =
      hasIntegerTiles ? mostRowsOfIntegerTiles(shape) : 0;
  if (rowsOfTiles > 0 ||
      (hasIntegerTiles && regroups(MatrixISA::X86_AMX_INT8, shape)))
    all.push_back(MatrixISA::X86_AMX_INT8);
  if (rowsOfTiles < INT64_MAX && !shape.deterministic) {
    MatmulShape exact = shape;
    exact.roundsInput = false;
    const std::optional<MatrixISA> floats = instructionsFor(exact, target);
    if (floats && gainsByFloats(*chosen, *floats))
      all.push_back(*floats);
  }
  return all;
}

bool sandwich::hasWholeGroups(MatrixISA isa, const StorageFormat &storage,
                              int64_t k, int64_t sliceK) {
  const int64_t group = storage.groupOf(k);
  return sliceK >= k || sliceK % group == 0 ||
         (unpacksWeights(isa, storage) && group % sliceK == 0 &&
          sliceK % smallestGroup == 0);
}

bool sandwich::unpacksWeights(MatrixISA isa, const StorageFormat &storage) {
  return storage.isQuantized() && !multipliesIntegers(isa);
}

StorageFormat sandwich::multipliedStorage(const Schedule &schedule,
                                          const StorageFormat &storage) {
  if (schedule.groupK == 0)
    return storage;
  return {.number = NumberFormat::Int8,
          .groupSize = schedule.groupK,
          .scale = ScaleFormat::F32};
}

bool sandwich::hasTilesForSums(const MicroKernel &kernel, int64_t group) {
  constexpr int64_t mostSums = 4;
  const RegisterFile file = registerFileOf(kernel.isa);
  return !halvesInputTiles(kernel.isa, group) ||
         kernel.rows / file.rows * (kernel.columns / file.columns) <= mostSums;
}

Status sandwich::verifyRegrouping(const Schedule &schedule,
                                  const MatmulShape &shape) {
  if (const StorageFormat storage = multipliedStorage(schedule, shape.storage);
      hasIntegerTiles(schedule.microKernel.isa) &&
      (storage.number != NumberFormat::Int8 ||
       kOfIntegerTiles(storage.groupOf(shape.k)) == 0))
    return makeError(schedule.microKernel.name(),
                     " multiplies numbers of 8 bits in groups of a multiple of "
                     "32 k, or those of 4 bits copied to such, not ",
                     storage.name(), " of ", shape.k, " k");
  if (!hasTilesForSums(
          schedule.microKernel,
          multipliedStorage(schedule, shape.storage).groupOf(shape.k)))
    return makeError(schedule.microKernel.name(),
                     " has more than four tiles of sums, which inputs of 32 k "
                     "leave");
  if (schedule.groupK == 0)
    return {};
  if (!multipliesIntegers(schedule.microKernel.isa) ||
      shape.storage.number != NumberFormat::Int4)
    return makeError("groups of ", schedule.groupK,
                     " k are for weights of 4 bits that are multiplied as "
                     "integers, not for ",
                     shape.storage.name(), " by ", schedule.microKernel.name());
  const int64_t group = shape.storage.groupOf(shape.k);
  if (schedule.groupK <= group || schedule.groupK % group != 0 ||
      schedule.groupK > longestRegrouped || shape.k % schedule.groupK != 0)
    return makeError("groups of ", schedule.groupK,
                     " k must be several of the weight's ", group, ", at most ",
                     longestRegrouped, " k, and divide K = ", shape.k);
  if (schedule.threads[2] != 1)
    return makeError(schedule.threads[2], " threads share K, of groups of ",
                     schedule.groupK, " k");
  if (shape.deterministic)
    return makeError("groups of ", schedule.groupK,
                     " k, where sums must not depend on the number of tokens");
  return {};
}

int64_t sandwich::stepsOfAheadRound(const Schedule &schedule, int64_t k,
                                    int64_t strips) {
  const int64_t chunk = schedule.chunkK > 0 ? std::min(schedule.chunkK, k) : k;
  int64_t steps = 8;
  while (steps > 1 && (steps > strips || chunk % (steps * kOfAheadRound) != 0 ||
                       k % chunk % (steps * kOfAheadRound) != 0))
    steps /= 2;
  return steps;
}

Status sandwich::verifyCopiesAhead(const Schedule &schedule,
                                   const MatmulShape &shape) {
  if (!schedule.copiesAhead)
    return {};
  const MicroKernel &kernel = schedule.microKernel;
  const Packing packing = packingFor(shape, kernel.isa);
  if (kernel.isa != MatrixISA::X86_AMX_BF16 ||
      !unpacksWeights(schedule, shape) ||
      shape.storage.groupOf(shape.k) % kOfAheadRound != 0 ||
      packing.panel != kernel.columns || packing.panel % columnsAhead != 0 ||
      schedule.threads[2] != 1 || schedule.slice[2] < shape.k)
    return makeError("only panels of a multiple of ", columnsAhead,
                     " columns, as many as the micro-kernel has, are unpacked "
                     "ahead, for ",
                     name(MatrixISA::X86_AMX_BF16),
                     ", in groups of a multiple "
                     "of ",
                     kOfAheadRound,
                     " k, and with a slice of all of K that no threads share");
  return {};
}

/// Whether there are micro-kernels that widen numbers for `isa`.
static bool hasGroupWidening(MatrixISA isa) {
  return isa == MatrixISA::X86_AVX2_F32 || isa == MatrixISA::X86_AVX512_F32 ||
         isa == MatrixISA::X86_AVX512_BF16 || isa == MatrixISA::ARM_NEON_F32;
}

bool sandwich::widensGroups(const Schedule &schedule,
                            const MatmulShape &shape) {
  const MicroKernel &kernel = schedule.microKernel;
  const StorageFormat &storage = shape.storage;
  if (!unpacksWeights(kernel.isa, storage) || !hasGroupWidening(kernel.isa) ||
      shape.deterministic || schedule.packsInput ||
      schedule.slice[0] > kernel.rows ||
      kernel.columns % packingFor(shape, kernel.isa).panel != 0)
    return false;
  const int64_t group = storage.groupOf(shape.k);
  // What a row's values add up to, for minima, is not in a loop.
  constexpr int64_t longestWithMinima = 256;
  if (storage.offset == GroupOffset::Minimum && group > longestWithMinima)
    return false;
  if (schedule.chunkK % group != 0 ||
      (schedule.slice[2] < shape.k && schedule.slice[2] % group != 0))
    return false;
  // Sums of a group, lines of numbers, the operands of rows or of columns and
  // one of the others, and what numbers are taken out with.
  const RegisterFile file = registerFileOf(kernel.isa);
  const int64_t columns = kernel.columns / file.columns;
  const int64_t digits =
      multipliesBF16(kernel.isa) && storage.number == NumberFormat::Int8 ? 2
                                                                         : 1;
  // NEON's shuffles have their orders in registers, and what makes bf16 of
  // E4M3 its masks.
  const bool makesBF16 =
      multipliesBF16(kernel.isa) && storage.number == NumberFormat::FP8;
  const int64_t others = isNeon(kernel.isa) || makesBF16          ? 9
                         : storage.offset == GroupOffset::Minimum ? 7
                                                                  : 4;
  // Sums of more rows take more addresses than there are registers for, and
  // gain nothing: unpacking is shared by as many.
  constexpr int64_t mostRows = 8;
  return kernel.rows <= mostRows &&
         kernel.rows * columns + columns +
                 (columns < kernel.rows ? columns * digits : kernel.rows) +
                 others <=
             file.registers;
}

bool sandwich::widensWeights(MatrixISA isa, const StorageFormat &storage) {
  return elementOf(isa) == MatrixElement::F32 &&
         storage.number == NumberFormat::BF16;
}

Packing sandwich::packingFor(const MatmulShape &shape, MatrixISA isa) {
  return shape.packing ? *shape.packing : packingOf(isa, shape.storage);
}

int64_t sandwich::rowStride(int64_t channels, int64_t elementBytes) {
  int64_t line = cacheLineBytes / elementBytes;
  return (divideUp(channels, line) + 1) * line;
}

std::string_view sandwich::name(LoopOrder order) {
  switch (order) {
  case LoopOrder::RowsOuter:
    return "rows_outer";
  case LoopOrder::ColumnsOuter:
    return "columns_outer";
  }
  __builtin_unreachable();
}

std::optional<LoopOrder> sandwich::loopOrderNamed(std::string_view text) {
  for (LoopOrder order : {LoopOrder::RowsOuter, LoopOrder::ColumnsOuter})
    if (name(order) == text)
      return order;
  return std::nullopt;
}

std::string_view sandwich::name(PrefetchHint hint) {
  switch (hint) {
  case PrefetchHint::L1:
    return "l1";
  case PrefetchHint::L2:
    return "l2";
  case PrefetchHint::NonTemporal:
    return "non_temporal";
  }
  __builtin_unreachable();
}

std::optional<PrefetchHint> sandwich::prefetchHintNamed(std::string_view text) {
  for (PrefetchHint hint :
       {PrefetchHint::L1, PrefetchHint::L2, PrefetchHint::NonTemporal})
    if (name(hint) == text)
      return hint;
  return std::nullopt;
}

std::string_view sandwich::name(StoreKind stores) {
  switch (stores) {
  case StoreKind::Cached:
    return "cached";
  case StoreKind::NonTemporal:
    return "non_temporal";
  }
  __builtin_unreachable();
}

std::optional<StoreKind> sandwich::storeKindNamed(std::string_view text) {
  for (StoreKind stores : {StoreKind::Cached, StoreKind::NonTemporal})
    if (name(stores) == text)
      return stores;
  return std::nullopt;
}

std::string_view sandwich::name(StreamedOperands operands) {
  switch (operands) {
  case StreamedOperands::None:
    return "none";
  case StreamedOperands::Input:
    return "input";
  case StreamedOperands::Weight:
    return "weight";
  case StreamedOperands::Both:
    return "both";
  }
  __builtin_unreachable();
}

std::optional<StreamedOperands>
sandwich::streamedOperandsNamed(std::string_view text) {
  for (StreamedOperands operands :
       {StreamedOperands::None, StreamedOperands::Input,
        StreamedOperands::Weight, StreamedOperands::Both})
    if (name(operands) == text)
      return operands;
  return std::nullopt;
}

namespace {

/// K of a chunk of 32 columns in two thirds of the L1 of 48 KB that all CPUs
/// with tiles have.
constexpr int64_t tileChunkK = 512;

/// K in equal parts of at most `most`, in whole steps.
int64_t equalParts(int64_t k, int64_t most, int64_t step) {
  return roundUp(divideUp(k, divideUp(k, most)), step);
}

/// What tiles want, found by hand on two cores of a Granite Rapids: few rows
/// wait for memory, and every operand passes by once; from three strips on a
/// chunk of the weight in L1 is read by all of them.
void completeTiles(Schedule &schedule, const MatmulShape &shape,
                   int64_t strips) {
  const int64_t k = std::min(schedule.slice[2], shape.k);
  const int64_t step = packingOf(schedule.microKernel.isa).kStep;
  schedule.prefetchHint = PrefetchHint::L2;
  schedule.chunkK = 0;
  if (schedule.copiesAhead) {
    // Two chunks are in L1 or near it.
    schedule = prefetchGroups(schedule, shape, strips);
    schedule.streamed = StreamedOperands::Input;
    schedule.chunkK = tileChunkK < k ? tileChunkK : 0;
    return;
  }
  if (strips == 1 &&
      schedule.microKernel.rows == rowUnitOf(schedule.microKernel.isa)) {
    // Two panels beside each other are twice as many lines.
    schedule.prefetchDistance = 768;
    schedule.streamed = StreamedOperands::Weight;
    return;
  }
  schedule.streamed = StreamedOperands::Both;
  if (strips == 1) {
    schedule.prefetchDistance = 3072;
    schedule.chunkK = tileChunkK;
  } else if (strips == 2) {
    constexpr int64_t mostSteps = 64, mostStepsOfPart = 58;
    if (k > mostSteps * step)
      schedule.chunkK = equalParts(k, mostStepsOfPart * step, step);
  } else {
    schedule.streamed = StreamedOperands::Input;
    schedule.chunkK = tileChunkK;
  }
  if (strips > 1)
    schedule.prefetchStreams = strips < 8 ? 8 : 4;
  if (schedule.chunkK >= k)
    schedule.chunkK = 0;
}

} // namespace

Schedule sandwich::completeByRule(Schedule schedule, const MatmulShape &shape,
                                  int64_t rows) {
  const MicroKernel &kernel = schedule.microKernel;
  Packing packing = packingFor(shape, kernel.isa);
  // The lines that four packed steps of all panels of a call hold, and the
  // calls of a narrow micro-kernel for each panel.
  int64_t width = std::max(packing.panel, kernel.columns);
  int64_t lines = std::max<int64_t>(
      4 * packing.kPack * width * shape.storage.bits() / 8 / cacheLineBytes, 1);
  int64_t parts = std::max<int64_t>(packing.panel / kernel.columns, 1);
  int64_t strips = stripsOfBlock(schedule, rows);
  schedule.prefetchStreams = 1;
  schedule.packsInput |= multipliesIntegers(kernel.isa);
  if (shape.storage.isQuantized()) {
    // See `prefetchGroups`.
    schedule.prefetchLines = schedule.prefetchDistance = 0;
  } else if (strips == 1) {
    schedule.prefetchLines = lines;
    schedule.prefetchDistance = 8192;
  } else {
    // Where a third of the lines is missing, so is a third of the speed.
    schedule.prefetchLines = divideUp(lines, strips * parts);
    schedule.prefetchDistance = 0;
  }
  // Copies made before would stay for other rows.
  schedule.copiesAhead = schedule.order == LoopOrder::RowsOuter;
  if (!verifyCopiesAhead(schedule, shape))
    schedule.copiesAhead = false;
  if (hasTiles(kernel.isa) && !multipliesIntegers(kernel.isa))
    completeTiles(schedule, shape, strips);
  return schedule;
}

Schedule sandwich::prefetchGroups(Schedule schedule, const MatmulShape &shape,
                                  int64_t strips) {
  const MicroKernel &kernel = schedule.microKernel;
  if (unpacksWeights(schedule, shape)) {
    // What is unpacked ahead comes from memory as one stream, of which hardware
    // prefetches less than of more.
    constexpr int64_t page = 4096;
    schedule.prefetchLines = schedule.prefetchStreams = 1;
    schedule.prefetchDistance = schedule.copiesAhead ? page : 0;
    schedule.prefetchHint = PrefetchHint::L2;
    return schedule;
  }
  // Two groups of 32 k of a panel of 32 columns in 4 bits.
  constexpr int64_t distanceOfStrip = 1152;
  const int64_t lines =
      divideUp(kernel.columns * smallestGroup * shape.storage.bits(),
               8 * cacheLineBytes);
  schedule.prefetchLines = divideUp(lines, strips);
  schedule.prefetchDistance = distanceOfStrip;
  schedule.prefetchHint = PrefetchHint::L1;
  if (strips > 1) {
    const int64_t panel = packingFor(shape, kernel.isa).panel;
    schedule.prefetchDistance =
        kernel.columns / panel * weightBytes(shape.storage, panel, shape.k);
    schedule.prefetchHint = PrefetchHint::L2;
  }
  return schedule;
}

int64_t sandwich::longGroupOf(MatrixISA isa, int64_t k) {
  // Tiles take longer to scale than to multiply groups of 128 k.
  return hasIntegerTiles(isa) && k % longestRegrouped == 0 ? longestRegrouped
                                                           : 128;
}

Schedule sandwich::regroup(Schedule schedule, const MatmulShape &shape) {
  constexpr int64_t chunkK = 512;
  // Weights with minima are chosen for being more exact.
  if (shape.storage.offset == GroupOffset::Minimum)
    return schedule;
  const int64_t longGroup = longGroupOf(schedule.microKernel.isa, shape.k);
  Schedule regrouped = schedule;
  regrouped.groupK = longGroup;
  int64_t &sliceK = regrouped.slice[2];
  sliceK = std::min(roundUp(sliceK, longGroup), std::max(shape.k, sliceK));
  regrouped.chunkK = sliceK > chunkK ? chunkK : 0;
  regrouped = prefetchGroups(regrouped, shape, 1);
  const bool suits =
      verify(regrouped, shape) &&
      regrouped.slice[1] <= maxUnpackedWeight / regrouped.slice[2];
  return suits ? regrouped : schedule;
}

Status sandwich::verifyPrefetching(const Schedule &schedule,
                                   const MatmulShape &shape) {
  if (!shape.storage.isQuantized() || schedule.prefetchLines == 0)
    return {};
  if (!unpacksWeights(schedule, shape) && schedule.prefetchDistance == 0)
    return makeError("a quantized weight that micro-kernels read as it is "
                     "stored is prefetched at a distance only");
  if (unpacksWeights(schedule, shape) &&
      (schedule.prefetchLines != 1 || schedule.prefetchStreams != 1 ||
       (schedule.prefetchDistance > 0) != schedule.copiesAhead))
    return makeError("of a quantized weight that is copied the next slice is "
                     "prefetched, as a line at a distance of 0, or, where that "
                     "is done ahead, each line at a greater one");
  return {};
}

Status sandwich::verify(const Schedule &schedule, const MatmulShape &shape) {
  const MicroKernel &kernel = schedule.microKernel;
  SANDWICH_RETURN_IF_ERROR(verify(kernel));
  Packing packing = packingFor(shape, kernel.isa);
  if (!multiplies(kernel.isa, shape.storage))
    return makeError(kernel.name(), " does not multiply weights of ",
                     shape.storage.name());
  SANDWICH_RETURN_IF_ERROR(verify(shape.storage, shape.k));
  int64_t kStep = packingOf(kernel.isa).kStep;
  if (shape.k % kStep != 0)
    return makeError(kernel.name(), " needs K to be a multiple of ", kStep,
                     "; it is ", shape.k);
  if (!reads(kernel, packing, shape.storage))
    return makeError(kernel.name(), " does not read panels of ", packing.panel,
                     " columns, ", packing.tile, " in a tile, with ",
                     packing.kStep, " by ", packing.kPack, " k together");
  for (int64_t size : schedule.slice)
    if (size <= 0 || size > maxSliceSize)
      return makeError("slice sizes must be between 1 and ", maxSliceSize,
                       "; one is ", size);
  for (int64_t threads : schedule.threads)
    if (threads <= 0 || threads > SANDWICH_MAX_THREADS)
      return makeError("thread counts must be between 1 and ",
                       SANDWICH_MAX_THREADS, "; one is ", threads);
  if (schedule.slice[1] % shape.columnUnit != 0)
    return makeError("slice columns ", schedule.slice[1],
                     " must be a multiple of ", shape.columnUnit,
                     ", which the epilogue needs together");
  if (schedule.slice[1] % kernel.columns != 0 ||
      schedule.slice[1] % packing.panel != 0)
    return makeError("slice columns ", schedule.slice[1],
                     " must be a multiple of ", packing.panel,
                     ", a panel, and of the micro-kernel's ", kernel.columns);
  SANDWICH_RETURN_IF_ERROR(verifyRegrouping(schedule, shape));
  const StorageFormat storage = multipliedStorage(schedule, shape.storage);
  const int64_t group = storage.groupOf(shape.k);
  if (!hasWholeGroups(kernel.isa, storage, shape.k, schedule.slice[2])) {
    if (unpacksWeights(kernel.isa, shape.storage))
      return makeError(
          "slice K ", schedule.slice[2], " must be all of K, whole groups of ",
          group, " or an equal part of one, of a multiple of ", smallestGroup);
    return makeError("slice K ", schedule.slice[2],
                     " must be all of K or whole groups of ", group);
  }
  SANDWICH_RETURN_IF_ERROR(verifyPrefetching(schedule, shape));
  SANDWICH_RETURN_IF_ERROR(verifyCopiesAhead(schedule, shape));
  if (multipliesIntegers(kernel.isa) && schedule.chunkK % group != 0)
    return makeError("K of a chunk, ", schedule.chunkK,
                     ", must be whole groups of ", group);
  if (multipliesIntegers(kernel.isa) && !schedule.packsInput)
    return makeError(kernel.name(), " reads packed input only");
  if (schedule.slice[2] % kStep != 0)
    return makeError("slice K ", schedule.slice[2],
                     " must be a multiple of the packing's ", kStep);
  if (schedule.chunkK < 0 || schedule.chunkK > maxSliceSize ||
      schedule.chunkK % kStep != 0)
    return makeError("K of a chunk, ", schedule.chunkK,
                     ", must be a multiple of the packing's ", kStep);
  if (schedule.packsInput && !canPackInput(kernel.isa))
    return makeError(kernel.name(), " does not read packed input");
  if (!hasTiles(kernel.isa) && schedule.streamed != StreamedOperands::None)
    return makeError(kernel.name(), " has no tiles to stream");
  if (shape.deterministic && schedule.threads[2] != 1)
    return makeError(schedule.threads[2],
                     " threads share K, where sums must not depend on the "
                     "number of tokens");
  if (schedule.threads[2] > divideUp(shape.k, kUnitOf(shape, packing)))
    return makeError(schedule.threads[2], " threads cannot share K = ", shape.k,
                     " in steps of ", kUnitOf(shape, packing));
  if (schedule.prefetchLines < 0 || schedule.prefetchLines > 1024 ||
      schedule.prefetchDistance < 0 || schedule.prefetchDistance > maxSliceSize)
    return makeError("prefetch lines must be between 0 and 1024, their "
                     "distance between 0 and ",
                     maxSliceSize);
  if (schedule.prefetchStreams < 1 || schedule.prefetchStreams > 64 ||
      (schedule.prefetchStreams > 1 && schedule.prefetchDistance > 0))
    return makeError("prefetch streams must be between 1 and 64, and 1 where a "
                     "distance is given; they are ",
                     schedule.prefetchStreams);
  return {};
}

const Schedule &sandwich::scheduleFor(const ScheduleTable &table,
                                      int64_t rows) {
  for (const ScheduleTableEntry &entry : table)
    if (rows <= entry.maxRows)
      return entry.schedule;
  return table.back().schedule;
}
