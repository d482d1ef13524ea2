//===- AttentionSchedule.cpp - How attention runs -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/AttentionSchedule.h"
#include "sandwich/Support/CheckedMath.h"

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/ModelLimits.h"

#include <algorithm>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static Status verify(const AttentionTile &tile, const char *name) {
  if (tile.rows < 1 || tile.rows > maxAttentionRows)
    return makeError(name, " must have 1 to ", maxAttentionRows, " rows");
  if (tile.keyBlocks < 1 || tile.chunk < 1 || tile.chunk > maxAttentionChunk ||
      tile.chunk % tile.keyBlocks != 0)
    return makeError(name, " must have chunks of 1 to ", maxAttentionChunk,
                     " blocks, a multiple of those multiplied at once");
  if (tile.rows * tile.keyBlocks > maxAttentionSums)
    return makeError(name, " must multiply at most ", maxAttentionSums,
                     " pairs of a row and a block at once");
  return {};
}

static constexpr std::pair<AttentionElement, std::string_view> elementNames[] =
    {{AttentionElement::F32, "f32"},
     {AttentionElement::BF16, "bf16"},
     {AttentionElement::F16, "f16"},
     {AttentionElement::Int8, "int8"}};

std::string_view sandwich::name(AttentionElement element) {
  return elementNames[static_cast<size_t>(element)].second;
}

std::optional<AttentionElement>
sandwich::attentionElementNamed(std::string_view name) {
  for (auto [element, own] : elementNames)
    if (own == name)
      return element;
  return std::nullopt;
}

int64_t sandwich::bytesOfHead(AttentionElement element, int64_t headDim) {
  switch (element) {
  case AttentionElement::F32:
    return 4 * headDim;
  case AttentionElement::BF16:
  case AttentionElement::F16:
    return 2 * headDim;
  case AttentionElement::Int8:
    return headDim + SANDWICH_KV_SCALE_BYTES;
  }
  __builtin_unreachable();
}

/// As wide as the widest panel of keys.
static constexpr int64_t maxKeyBlocksOfMicroKernel = 4;

static MicroKernel scoresMicroKernel(const AttentionSchedule &schedule) {
  return {*schedule.instructions, schedule.prefill.rows,
          schedule.prefill.keyBlocks * SANDWICH_KV_BLOCK_TOKENS};
}

/// Blocks whose positions are one step of K of the instructions, or more.
static int64_t blocksOfStep(MatrixISA isa) {
  return divideUp<int64_t>(packingOf(isa).kStep, SANDWICH_KV_BLOCK_TOKENS);
}

Status sandwich::verify(const AttentionSchedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(::verify(schedule.decode, "decode"));
  SANDWICH_RETURN_IF_ERROR(::verify(schedule.prefill, "prefill"));
  if (schedule.split < 1 || schedule.split > SANDWICH_MAX_THREADS)
    return makeError("split must be 1 to ", SANDWICH_MAX_THREADS);
  if (schedule.tiles < 1 || schedule.tiles > maxAttentionTiles)
    return makeError("tiles must be 1 to ", maxAttentionTiles);
  if (!schedule.instructions)
    return {};
  if (schedule.instructions != MatrixISA::X86_AVX512_BF16 &&
      schedule.instructions != MatrixISA::X86_AMX_BF16)
    return makeError("prefill multiplies by ", name(MatrixISA::X86_AVX512_BF16),
                     ", by ", name(MatrixISA::X86_AMX_BF16), ", or by FMA");
  if (schedule.prefill.keyBlocks > maxKeyBlocksOfMicroKernel)
    return makeError("micro-kernels multiply at most ",
                     maxKeyBlocksOfMicroKernel, " blocks of keys at once");
  const int64_t blocks = blocksOfStep(*schedule.instructions);
  if (schedule.prefill.chunk % blocks != 0)
    return makeError(name(*schedule.instructions),
                     " needs chunks of a multiple of ", blocks, " blocks");
  return verify(scoresMicroKernel(schedule));
}

Status sandwich::verify(const AttentionSchedule &schedule,
                        const AttentionShape &shape) {
  if (shape.group % schedule.decode.rows != 0)
    return makeError("rows of decode must divide the ", shape.group,
                     " query heads of each of the cache's, got ",
                     schedule.decode.rows);
  if (!schedule.instructions)
    return {};
  const std::string_view isa = name(*schedule.instructions);
  if (shape.cache != AttentionElement::BF16 &&
      shape.cache != AttentionElement::Int8)
    return makeError(isa, " needs a cache of bf16 or int8");
  const int64_t channels =
      SANDWICH_KV_BLOCK_TOKENS * blocksOfStep(*schedule.instructions);
  if (shape.headDim % channels != 0)
    return makeError(isa, " needs heads of a multiple of ", channels,
                     " channels, got ", shape.headDim);
  return {};
}

Status sandwich::verify(const AttentionTable &table) {
  if (table.size() > maxAttentionEntries)
    return makeError("a table must have at most ", maxAttentionEntries,
                     " entries");
  for (size_t i = 0; i < table.size(); ++i) {
    const AttentionTableEntry &entry = table[i];
    SANDWICH_RETURN_IF_ERROR(verify(entry.schedule));
    if (entry.maxSegments < 1 || entry.maxPositions < 1)
      return makeError("numbers of segments and positions must be positive");
    for (size_t earlier = 0; earlier < i; ++earlier)
      if (table[earlier].maxSegments >= entry.maxSegments &&
          table[earlier].maxPositions >= entry.maxPositions)
        return makeError("entry ", i, " serves nothing that entry ", earlier,
                         " does not");
  }
  constexpr int64_t unlimited = AttentionTableEntry::unlimited;
  if (table.empty() || table.back().maxSegments != unlimited ||
      table.back().maxPositions != unlimited)
    return makeError("the last entry must be for all: [?, ?]");
  return {};
}

/// Where an FMA's result is needed again only after so many others, its latency
/// is hidden.
static constexpr int64_t independentSums = 8;

int64_t sandwich::scoreParts(const AttentionTile &tile, int64_t headDim,
                             int64_t vectorsOfSums) {
  const int64_t scores = tile.rows * tile.keyBlocks;
  int64_t parts = 1;
  while (parts * scores < independentSums &&
         2 * parts * scores <= vectorsOfSums && headDim % (2 * parts) == 0)
    parts *= 2;
  return parts;
}

/// Whatever the head is.
static bool sumsInParts(const AttentionTile &tile, const Target &target) {
  return scoreParts(tile, 2, vectorsOfSums(target)) > 1;
}

Status sandwich::verifyDeterministic(const AttentionTable &table, int64_t chunk,
                                     const Target &target) {
  for (size_t i = 0; i < table.size(); ++i) {
    const AttentionSchedule &schedule = table[i].schedule;
    if (schedule.split != 1)
      return makeError("entry ", i, " splits contexts");
    if (schedule.instructions)
      return makeError("entry ", i, " multiplies prompts by ",
                       name(*schedule.instructions),
                       ", and single tokens by FMA");
    if (schedule.decode.chunk != chunk || schedule.prefill.chunk != chunk)
      return makeError("entry ", i, " has other chunks than of ", chunk,
                       " blocks");
    if (sumsInParts(schedule.decode, target))
      return makeError("entry ", i,
                       " sums the scores of one token in parts, as its rows "
                       "times its key blocks are so few");
  }
  return {};
}

PrefillPieces sandwich::prefillPieces(const AttentionSchedule &schedule,
                                      const AttentionShape &shape) {
  const int64_t tileRows = schedule.prefill.rows;
  const auto rowsOf = [&](int64_t tokens) {
    return roundUp(tokens * shape.group, tileRows);
  };
  // One row in sixteen may be computed for nothing; a unit has whole tiles at
  // the latest where it has as many tokens as a tile rows. More than a small
  // part of the caches is not worth it.
  constexpr uint64_t mostBytes = model_limits::maxAttentionTileBytes / 8;
  const int64_t kept = tileRows * schedule.tiles;
  PrefillPieces pieces;
  for (int64_t unit = 1; unit <= tileRows; ++unit) {
    const int64_t rows = rowsOf(unit);
    if (rows > kept &&
        model_limits::attentionStackBytes(rows, shape.headDim) > mostBytes)
      break;
    if (16 * (rows - unit * shape.group) <= unit * shape.group) {
      pieces.unit = unit;
      break;
    }
  }
  pieces.tokens =
      std::max<int64_t>(1, kept / shape.group / pieces.unit) * pieces.unit;
  pieces.rows = rowsOf(pieces.tokens);
  return pieces;
}

uint64_t sandwich::prefillStackBytes(const AttentionSchedule &schedule,
                                     const AttentionShape &shape) {
  const int64_t headDim = shape.headDim;
  const auto &[rows, keyBlocks, chunk] = schedule.prefill;
  const int64_t kept = prefillPieces(schedule, shape).rows;
  const uint64_t scores = model_limits::attentionScoreBytes(rows, chunk);
  if (!schedule.instructions)
    return model_limits::attentionStackBytes(kept, headDim) + scores;
  return model_limits::attentionMatrixBytes(kept, headDim) + scores +
         model_limits::attentionPackedBytes(rows, chunk, headDim);
}

bool sandwich::fitsStack(const AttentionSchedule &schedule,
                         const AttentionShape &shape) {
  return prefillStackBytes(schedule, shape) <=
         model_limits::maxAttentionTileBytes / 4 * 3;
}

//===----------------------------------------------------------------------===//
// The untuned rule
//===----------------------------------------------------------------------===//

int64_t sandwich::vectorsOfSums(const Target &target) {
  const RegisterFile file = target.vectorRegisters();
  return file.registers * file.columns * 3 / 4 / vectorWidth;
}

static int64_t largestDivisor(int64_t number, int64_t limit) {
  int64_t divisor = std::min(number, limit);
  while (number % divisor != 0)
    --divisor;
  return divisor;
}

/// The share of the time in which threads have something to do where `items`
/// equal ones are dealt to `threads`.
static double occupation(int64_t items, int64_t threads) {
  const int64_t rounds = (items + threads - 1) / threads;
  return static_cast<double>(items) / static_cast<double>(rounds * threads);
}

/// The fewest parts of contexts with which `segments` segments of one token, or
/// fewer, but more than half of them, keep the threads busy.
static int64_t fewestParts(const AttentionShape &shape, int64_t segments,
                           int64_t threads) {
  constexpr double enough = 0.9;
  const int64_t most = std::min<int64_t>(2 * threads, SANDWICH_MAX_THREADS);
  int64_t best = 1;
  double bestOccupation = 0;
  for (int64_t split = 1; split <= most; ++split) {
    double worst = 1;
    for (int64_t count = segments / 2 + 1; count <= segments; ++count)
      worst = std::min(worst,
                       occupation(count * shape.cacheHeads * split, threads));
    if (worst > bestOccupation) {
      best = split;
      bestOccupation = worst;
    }
    if (worst >= enough)
      break;
  }
  return best;
}

std::optional<MatrixISA> sandwich::attentionInstructions(const Target &target) {
  // On CPUs with AMX, vdpbf16ps multiplies no faster than FMA does
  // (docs/RationaleLM.md), and tiles do.
  const MatrixISA best = target.matrixISAs.back();
  if (hasTiles(best) || best == MatrixISA::X86_AVX512_BF16)
    return best;
  return std::nullopt;
}

/// Gives prompts what multiplies them fastest, if it can, with as many tiles
/// and as long chunks as leave a quarter of the room on the stack: what is
/// packed is used by all tiles, and states are loaded once for each chunk. More
/// blocks meet in the same places of a cache, as they lie whole models apart.
static void chooseInstructions(AttentionSchedule &schedule,
                               const AttentionShape &shape,
                               const Target &target) {
  const std::optional<MatrixISA> best = attentionInstructions(target);
  if (!best)
    return;
  const bool tiles = hasTiles(*best);
  // What is not rounded in the end is not rounded in between.
  if (shape.result != AttentionElement::BF16)
    return;
  AttentionSchedule faster = schedule;
  faster.instructions = best;
  // A tile of rows by four of keys, as many as there are for sums.
  faster.prefill = tiles
                       ? AttentionTile{.rows = 16, .keyBlocks = 4, .chunk = 16}
                       : AttentionTile{.rows = 12, .keyBlocks = 2, .chunk = 12};
  faster.tiles = maxAttentionTiles;
  if (!verify(faster, shape))
    return;
  auto fits = [&] { return fitsStack(faster, shape); };
  while (!fits() && faster.tiles > 1)
    --faster.tiles;
  while (!fits() && faster.prefill.chunk > faster.prefill.keyBlocks)
    faster.prefill.chunk -= faster.prefill.keyBlocks;
  if (fits())
    schedule = faster;
}

AttentionTable sandwich::chooseUntuned(const AttentionShape &shape,
                                       const Target &target, int64_t threads,
                                       bool deterministic) {
  const int64_t sums = vectorsOfSums(target);
  AttentionSchedule schedule;
  schedule.decode.rows =
      largestDivisor(shape.group, std::min(independentSums, sums));
  schedule.decode.keyBlocks = 2 * schedule.decode.rows <= sums ? 2 : 1;
  schedule.decode.chunk = 2;
  schedule.prefill.keyBlocks = sums >= 16 ? 2 : 1;
  schedule.prefill.rows =
      std::clamp<int64_t>(sums / schedule.prefill.keyBlocks, 1, 12);
  schedule.prefill.chunk = 8;
  if (deterministic) {
    while (sumsInParts(schedule.decode, target))
      schedule.decode.keyBlocks *= 2;
    schedule.decode.chunk = schedule.prefill.chunk;
    return {{.schedule = schedule}};
  }
  chooseInstructions(schedule, shape, target);

  // Shorter parts are not worth the time in which threads wait for each other.
  constexpr int64_t positionsOfPart = 128;
  AttentionTable table;
  for (int64_t segments = 1; segments < 2 * threads; segments *= 2) {
    AttentionTableEntry entry{.maxSegments = segments, .schedule = schedule};
    entry.schedule.split = fewestParts(shape, segments, threads);
    if (entry.schedule.split > 1)
      table.push_back({.maxSegments = segments,
                       .maxPositions = positionsOfPart,
                       .schedule = schedule});
    table.push_back(entry);
  }
  table.push_back({.schedule = schedule});
  // Entries that the next ones serve as well.
  for (size_t i = table.size() - 1; i-- > 0;)
    if (table[i].schedule == table[i + 1].schedule &&
        table[i].maxPositions <= table[i + 1].maxPositions)
      table.erase(table.begin() + static_cast<std::ptrdiff_t>(i));
  return table;
}
