//===- AttentionSearch.cpp - Attention tuned by measuring -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/AttentionSearch.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;

namespace {

/// What is faster by less may be noise.
constexpr double plainlyFaster = 0.98;
/// Steps that a climb takes at most.
constexpr int mostSteps = 8;

using Schedules = std::vector<AttentionSchedule>;

class AttentionSearch {
public:
  AttentionSearch(const AttentionShape &shape, const Target &target,
                  int64_t threads, int64_t maxTokens,
                  AttentionEvaluator &evaluator,
                  const std::function<bool()> &ended)
      : shape(shape), target(target), threads(threads),
        payloads(AttentionPayloads::of(shape, threads, maxTokens)),
        evaluator(evaluator), ended(ended) {}

  Result<TunedAttention> run();

private:
  using Neighbours =
      Schedules (AttentionSearch::*)(const AttentionSchedule &) const;

  /// Without what cannot run.
  Schedules withTiles(const AttentionSchedule &schedule,
                      AttentionTile AttentionSchedule::*place,
                      const std::vector<AttentionTile> &tiles) const;
  Schedules decodeNeighbours(const AttentionSchedule &schedule) const;
  Schedules prefillNeighbours(const AttentionSchedule &schedule) const;
  Schedules otherSplits(const AttentionSchedule &schedule) const;
  /// What multiplies by other instructions.
  Schedules otherArithmetics(const AttentionSchedule &schedule) const;
  /// The fastest of `schedules`, the first unless another is plainly faster.
  Result<AttentionSchedule> fastest(const AttentionPayload &payload,
                                    Schedules schedules);
  Result<AttentionSchedule> climb(const AttentionPayload &payload,
                                  AttentionSchedule schedule,
                                  Neighbours neighbours);
  Status tuneSplits(AttentionTable &table);

  const AttentionShape &shape;
  const Target &target;
  const int64_t threads;
  const AttentionPayloads payloads;
  AttentionEvaluator &evaluator;
  const std::function<bool()> &ended;
  int64_t measurements = 0;
  bool complete = true;
};

} // namespace

AttentionPayloads AttentionPayloads::of(const AttentionShape &shape,
                                        int64_t threads, int64_t maxTokens) {
  // Enough that each thread reads some heads, and that contexts come from
  // memory, as those of all layers do.
  constexpr int64_t fewestSegments = 4, context = 1024, piece = 256;
  AttentionPayloads payloads;
  payloads.decode = {
      .segments =
          std::min(maxTokens, std::max(fewestSegments,
                                       divideUp(threads, shape.cacheHeads))),
      .positions = context};
  payloads.prefill = {.tokens = std::min(maxTokens, piece),
                      .positions = context};
  return payloads;
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

/// `tile` with more and fewer of everything. Chunks stay multiples.
static std::vector<AttentionTile> neighbours(const AttentionTile &tile,
                                             int64_t rowsStep) {
  std::vector<AttentionTile> tiles;
  auto add = [&](int64_t rows, int64_t keyBlocks, int64_t chunk) {
    tiles.push_back({.rows = rows,
                     .keyBlocks = keyBlocks,
                     .chunk = roundUp(std::max(chunk, keyBlocks), keyBlocks)});
  };
  for (int64_t step : {-rowsStep, rowsStep})
    if (tile.rows + step > 0)
      add(tile.rows + step, tile.keyBlocks, tile.chunk);
  for (int64_t step : {-1, 1})
    if (tile.keyBlocks + step > 0)
      add(tile.rows, tile.keyBlocks + step, tile.chunk);
  for (int64_t chunk : {tile.chunk / 2, tile.chunk * 2})
    add(tile.rows, tile.keyBlocks, chunk);
  return tiles;
}

Schedules
AttentionSearch::withTiles(const AttentionSchedule &schedule,
                           AttentionTile AttentionSchedule::*place,
                           const std::vector<AttentionTile> &tiles) const {
  Schedules result;
  for (const AttentionTile &tile : tiles) {
    AttentionSchedule changed = schedule;
    changed.*place = tile;
    // Sums that registers do not hold are spilled.
    const bool byFMA =
        place == &AttentionSchedule::decode || !schedule.instructions;
    if (byFMA && tile.rows * tile.keyBlocks > vectorsOfSums(target))
      continue;
    result.push_back(changed);
  }
  return result;
}

Schedules
AttentionSearch::decodeNeighbours(const AttentionSchedule &schedule) const {
  std::vector<AttentionTile> tiles = neighbours(schedule.decode, 1);
  // Rows divide a group: those of its next divisors.
  for (int64_t step : {-1, 1}) {
    AttentionTile tile = schedule.decode;
    do
      tile.rows += step;
    while (tile.rows > 0 && tile.rows < shape.group &&
           shape.group % tile.rows != 0);
    if (tile.rows > 0 && tile.rows <= shape.group)
      tiles.push_back(tile);
  }
  return withTiles(schedule, &AttentionSchedule::decode, tiles);
}

Schedules
AttentionSearch::prefillNeighbours(const AttentionSchedule &schedule) const {
  Schedules result = withTiles(schedule, &AttentionSchedule::prefill,
                               neighbours(schedule.prefill, 2));
  for (int64_t tiles : {schedule.tiles / 2, schedule.tiles * 2}) {
    AttentionSchedule changed = schedule;
    changed.tiles = tiles;
    result.push_back(changed);
  }
  return result;
}

Schedules
AttentionSearch::otherSplits(const AttentionSchedule &schedule) const {
  Schedules result;
  for (int64_t split : {schedule.split / 2, schedule.split * 2})
    if (split <= 2 * threads) {
      AttentionSchedule changed = schedule;
      changed.split = split;
      result.push_back(changed);
    }
  return result;
}

Schedules
AttentionSearch::otherArithmetics(const AttentionSchedule &schedule) const {
  // What is not rounded in the end is not rounded in between.
  if (shape.result != AttentionElement::BF16)
    return {};
  Schedules result;
  auto add = [&](std::optional<MatrixISA> instructions) {
    if (instructions == schedule.instructions)
      return;
    AttentionSchedule changed = schedule;
    changed.instructions = instructions;
    if (!schedule.instructions) {
      // Enough tiles that packing is worth it.
      changed.prefill = {.rows = 12, .keyBlocks = 2, .chunk = 8};
      changed.tiles = 16;
    }
    if (instructions && hasTiles(*instructions))
      changed.prefill = {.rows = registerFileOf(*instructions).rows,
                         .keyBlocks = 4,
                         .chunk = 16};
    else if (schedule.instructions && hasTiles(*schedule.instructions))
      changed.prefill = {.rows = 12, .keyBlocks = 2, .chunk = 8};
    result.push_back(changed);
  };
  add(std::nullopt);
  for (MatrixISA isa : target.matrixISAs)
    if (multipliesBF16(isa))
      add(isa);
  return result;
}

//===----------------------------------------------------------------------===//
// Climbing
//===----------------------------------------------------------------------===//

Result<AttentionSchedule>
AttentionSearch::fastest(const AttentionPayload &payload, Schedules schedules) {
  const AttentionSchedule first = schedules.front();
  if (ended()) {
    complete = false;
    return first;
  }
  std::erase_if(schedules, [&](const AttentionSchedule &schedule) {
    return !verify(schedule) || !verify(schedule, shape) ||
           !fitsStack(schedule, shape);
  });
  if (schedules.empty() || schedules.front() != first || schedules.size() == 1)
    return first;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<double> times,
                            evaluator.compare(payload, schedules));
  measurements += static_cast<int64_t>(schedules.size());
  const auto best = std::ranges::min_element(times);
  return *best < plainlyFaster ? schedules[best - times.begin()] : first;
}

Result<AttentionSchedule>
AttentionSearch::climb(const AttentionPayload &payload,
                       AttentionSchedule schedule, Neighbours neighbours) {
  const AttentionSchedule first = schedule;
  Schedules known;
  for (int step = 0; step < mostSteps; ++step) {
    known.push_back(schedule);
    Schedules candidates = {schedule};
    for (const AttentionSchedule &neighbour : (this->*neighbours)(schedule))
      if (std::ranges::find(known, neighbour) == known.end()) {
        candidates.push_back(neighbour);
        known.push_back(neighbour);
      }
    SANDWICH_ASSIGN_OR_RETURN(AttentionSchedule next,
                              fastest(payload, candidates));
    if (next == schedule)
      break;
    schedule = next;
  }
  if (schedule == first)
    return first;
  // Of many comparisons the best is more luck than speed.
  return fastest(payload, {first, schedule});
}

Status AttentionSearch::tuneSplits(AttentionTable &table) {
  for (AttentionTableEntry &entry : table) {
    AttentionSchedule &schedule = entry.schedule;
    if (entry.maxSegments == AttentionTableEntry::unlimited)
      continue;
    AttentionPayload payload = payloads.decode;
    payload.segments = std::min(payload.segments, entry.maxSegments);
    payload.positions = std::min(payload.positions, entry.maxPositions);
    // Of more, the rule knows as much.
    if (payload.segments < entry.maxSegments)
      continue;
    SANDWICH_ASSIGN_OR_RETURN(
        schedule, climb(payload, schedule, &AttentionSearch::otherSplits));
  }
  return {};
}

Result<TunedAttention> AttentionSearch::run() {
  AttentionTable table = chooseUntuned(shape, target, threads);
  AttentionSchedule best = table.back().schedule;
  SANDWICH_ASSIGN_OR_RETURN(
      best, climb(payloads.decode, best, &AttentionSearch::decodeNeighbours));
  SANDWICH_ASSIGN_OR_RETURN(
      best, climb(payloads.prefill, best, &AttentionSearch::prefillNeighbours));
  Schedules arithmetics = {best};
  for (const AttentionSchedule &other : otherArithmetics(best)) {
    if (!verify(other) || !verify(other, shape))
      continue;
    SANDWICH_ASSIGN_OR_RETURN(
        AttentionSchedule climbed,
        climb(payloads.prefill, other, &AttentionSearch::prefillNeighbours));
    arithmetics.push_back(climbed);
  }
  SANDWICH_ASSIGN_OR_RETURN(best, fastest(payloads.prefill, arithmetics));
  for (AttentionTableEntry &entry : table) {
    const int64_t split = entry.schedule.split;
    entry.schedule = best;
    entry.schedule.split = split;
  }
  SANDWICH_RETURN_IF_ERROR(tuneSplits(table));
  return TunedAttention{std::move(table), complete, measurements};
}

Result<TunedAttention>
sandwich::tuneAttention(const AttentionShape &shape, const Target &target,
                        int64_t threads, int64_t maxTokens,
                        AttentionEvaluator &evaluator,
                        const std::function<bool()> &ended) {
  return AttentionSearch(shape, target, threads, maxTokens, evaluator, ended)
      .run();
}
