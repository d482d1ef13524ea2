//===- AttentionScheduleTest.cpp - How attention runs --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/AttentionSchedule.h"

#include "sandwich/Support/ModelLimits.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

using namespace sandwich;

namespace {

constexpr int64_t unlimited = AttentionTableEntry::unlimited;

std::string reasonOf(const Status &status) {
  return status ? "" : status.error().message;
}

std::string reasonOf(AttentionTile decode, int64_t split = 1,
                     AttentionTile prefill = {}) {
  return reasonOf(
      verify({.decode = decode, .split = split, .prefill = prefill}));
}

TEST(AttentionSchedule, AcceptsAllSizesUpToTheLargest) {
  EXPECT_EQ(reasonOf(verify(AttentionSchedule())), "");
  EXPECT_EQ(reasonOf({16, 4, 64}, 1024, {1, 64, 64}), "");
  EXPECT_EQ(reasonOf({3, 5, 35}, 7, {11, 2, 6}), "");
}

TEST(AttentionSchedule, RefusesSizesOutOfRange) {
  for (int64_t rows : {INT64_MIN, int64_t(-1), int64_t(0), int64_t(17)}) {
    EXPECT_EQ(reasonOf({rows, 1, 1}), "decode must have 1 to 16 rows");
    EXPECT_EQ(reasonOf({}, 1, {rows, 1, 1}), "prefill must have 1 to 16 rows");
  }
  const std::string chunks = " must have chunks of 1 to 64 blocks, a multiple "
                             "of those multiplied at once";
  for (AttentionTile tile :
       {AttentionTile{1, 0, 1}, AttentionTile{1, -1, 1}, AttentionTile{1, 1, 0},
        AttentionTile{1, 1, 65}, AttentionTile{1, 2, 1}, AttentionTile{1, 2, 3},
        AttentionTile{1, -1, INT64_MIN}, AttentionTile{1, INT64_MAX, 1}}) {
    EXPECT_EQ(reasonOf(tile), "decode" + chunks);
    EXPECT_EQ(reasonOf({}, 1, tile), "prefill" + chunks);
  }
  EXPECT_EQ(
      reasonOf({13, 5, 5}),
      "decode must multiply at most 64 pairs of a row and a block at once");
  for (int64_t split : {INT64_MIN, int64_t(0), int64_t(1025), INT64_MAX})
    EXPECT_EQ(reasonOf({}, split), "split must be 1 to 1024");
}

AttentionSchedule byMicroKernels(AttentionTile prefill, int64_t tiles = 1) {
  return {.prefill = prefill,
          .tiles = tiles,
          .instructions = MatrixISA::X86_AVX512_BF16};
}

TEST(AttentionSchedule, MultipliesByInstructionsThatThereAre) {
  EXPECT_EQ(reasonOf(verify(byMicroKernels({12, 2, 64}, 64))), "");
  EXPECT_EQ(reasonOf(verify(byMicroKernels({1, 4, 4}))), "");
  for (int64_t tiles : {INT64_MIN, int64_t(0), int64_t(65), INT64_MAX})
    EXPECT_EQ(reasonOf(verify(byMicroKernels({1, 1, 1}, tiles))),
              "tiles must be 1 to 64");
  EXPECT_EQ(reasonOf(verify(byMicroKernels({1, 5, 5}))),
            "micro-kernels multiply at most 4 blocks of keys at once");
  // More sums than there are registers.
  EXPECT_NE(reasonOf(verify(byMicroKernels({16, 2, 2}))), "");
  for (MatrixISA isa : allMatrixISAs()) {
    const bool tiles = isa == MatrixISA::X86_AMX_BF16;
    AttentionSchedule schedule =
        byMicroKernels({tiles ? 16 : 1, 1, tiles ? 2 : 1});
    schedule.instructions = isa;
    EXPECT_EQ(static_cast<bool>(verify(schedule)),
              isa == MatrixISA::X86_AVX512_BF16 || tiles)
        << name(isa);
  }
  // Tiles are whole, and a step of theirs is two blocks.
  AttentionSchedule tiles = byMicroKernels({16, 1, 3});
  tiles.instructions = MatrixISA::X86_AMX_BF16;
  EXPECT_EQ(reasonOf(verify(tiles)),
            "X86_AMX_BF16 needs chunks of a multiple of 2 blocks");
  tiles.prefill = {12, 2, 4};
  EXPECT_EQ(reasonOf(verify(tiles)),
            "X86_AMX_BF16_12x32 needs a multiple of 16 rows");
}

TEST(AttentionSchedule, HeadsHaveBytes) {
  EXPECT_EQ(bytesOfHead(AttentionElement::F32, 80), 320);
  EXPECT_EQ(bytesOfHead(AttentionElement::BF16, 80), 160);
  EXPECT_EQ(bytesOfHead(AttentionElement::F16, 80), 160);
  // With a scale in f32.
  EXPECT_EQ(bytesOfHead(AttentionElement::Int8, 80), 84);
}

TEST(AttentionSchedule, FitsItsOperation) {
  AttentionShape shape{.cacheHeads = 2,
                       .group = 6,
                       .headDim = 48,
                       .cache = AttentionElement::BF16};
  const AttentionSchedule schedule = byMicroKernels({12, 4, 4});
  EXPECT_EQ(reasonOf(verify(schedule, shape)), "");

  shape.headDim = 40;
  EXPECT_EQ(reasonOf(verify(schedule, shape)),
            "X86_AVX512_BF16 needs heads of a multiple of 16 channels, got 40");
  EXPECT_EQ(reasonOf(verify(AttentionSchedule(), shape)), "");
  shape.cache = AttentionElement::F16;
  EXPECT_EQ(reasonOf(verify(schedule, shape)),
            "X86_AVX512_BF16 needs a cache of bf16 or int8");
  shape.cache = AttentionElement::Int8;
  shape.headDim = 48;
  EXPECT_EQ(reasonOf(verify(schedule, shape)), "");
  AttentionSchedule rows;
  rows.decode.rows = 4;
  EXPECT_EQ(reasonOf(verify(rows, shape)),
            "rows of decode must divide the 6 query heads of each of the "
            "cache's, got 4");
}

AttentionTableEntry entryFor(int64_t segments, int64_t positions) {
  return {.maxSegments = segments, .maxPositions = positions, .schedule = {}};
}

TEST(AttentionTable, AcceptsEntriesThatEachServeSomething) {
  EXPECT_EQ(reasonOf(verify({entryFor(unlimited, unlimited)})), "");
  EXPECT_EQ(reasonOf(verify({entryFor(4, 8), entryFor(2, 16), entryFor(1, 32),
                             entryFor(4, unlimited), entryFor(unlimited, 1),
                             entryFor(unlimited, unlimited)})),
            "");
}

TEST(AttentionTable, RefusesOthers) {
  const std::string last = "the last entry must be for all: [?, ?]";
  EXPECT_EQ(reasonOf(verify(AttentionTable())), last);
  EXPECT_EQ(reasonOf(verify({entryFor(1, unlimited)})), last);
  EXPECT_EQ(reasonOf(verify({entryFor(unlimited, 1)})), last);

  const AttentionTableEntry all = entryFor(unlimited, unlimited);
  for (int64_t number : {INT64_MIN, int64_t(-1), int64_t(0)}) {
    const std::string positive =
        "numbers of segments and positions must be positive";
    EXPECT_EQ(reasonOf(verify({entryFor(number, 1), all})), positive);
    EXPECT_EQ(reasonOf(verify({entryFor(1, number), all})), positive);
  }
  EXPECT_EQ(reasonOf(verify({all, all})),
            "entry 1 serves nothing that entry 0 does not");
  EXPECT_EQ(
      reasonOf(verify({entryFor(1, 9), entryFor(2, 8), entryFor(2, 7), all})),
      "entry 2 serves nothing that entry 1 does not");

  AttentionTableEntry wrong = all;
  wrong.schedule.split = 0;
  EXPECT_EQ(reasonOf(verify({entryFor(1, 1), wrong})),
            "split must be 1 to 1024");
}

//===----------------------------------------------------------------------===//
// The untuned rule
//===----------------------------------------------------------------------===//

const AttentionSchedule &scheduleFor(const AttentionTable &table,
                                     int64_t segments, int64_t positions) {
  return std::ranges::find_if(table,
                              [&](const AttentionTableEntry &entry) {
                                return segments <= entry.maxSegments &&
                                       positions <= entry.maxPositions;
                              })
      ->schedule;
}

/// The share of the time in which threads are busy, at its lowest where as many
/// segments as `segments`, or fewer but more than half of them, are divided.
double worstOccupation(int64_t segments, int64_t heads, int64_t split,
                       int64_t threads) {
  double worst = 1;
  for (int64_t count = segments / 2 + 1; count <= segments; ++count) {
    const int64_t items = count * heads * split;
    const int64_t longest = (items + threads - 1) / threads;
    worst = std::min(worst, double(items) / double(longest * threads));
  }
  return worst;
}

/// All numbers of heads and threads that are looked at.
template <typename Body> void forTeams(Body body) {
  const Target target = *getTarget("x86-64-avx512-bf16");
  for (int64_t heads = 1; heads <= 16; ++heads)
    for (int64_t threads = 1; threads <= 64; ++threads) {
      SCOPED_TRACE(testing::Message()
                   << heads << " heads, " << threads << " threads");
      body(heads, threads,
           chooseUntuned({.cacheHeads = heads, .group = 4}, target, threads));
    }
}

TEST(UntunedAttention, IsValidAndServesAll) {
  forTeams([](int64_t, int64_t, const AttentionTable &table) {
    EXPECT_EQ(reasonOf(verify(table)), "");
    EXPECT_EQ(table.back().schedule.split, 1);
    // What is the same is said once.
    for (size_t i = 1; i < table.size(); ++i)
      EXPECT_TRUE(table[i - 1].schedule != table[i].schedule ||
                  table[i - 1].maxPositions > table[i].maxPositions);
  });
}

TEST(UntunedAttention, KeepsThreadsBusyOrDoesItsBest) {
  forTeams([](int64_t heads, int64_t threads, const AttentionTable &table) {
    for (int64_t segments = 1; segments < 2 * threads; segments *= 2) {
      const int64_t split = scheduleFor(table, segments, 4096).split;
      const double busy = worstOccupation(segments, heads, split, threads);
      ASSERT_LE(split, 2 * threads);
      for (int64_t other = 1; other <= 2 * threads; ++other) {
        const double otherBusy =
            worstOccupation(segments, heads, other, threads);
        if (busy < 0.9) {
          EXPECT_LE(otherBusy, busy) << "better in " << other << " parts";
        } else if (other < split) {
          EXPECT_LT(otherBusy, 0.9) << other << " parts would be enough";
        }
      }
      // So it is for all numbers that the entry is for.
      for (int64_t count = segments / 2 + 1; count <= segments; ++count)
        EXPECT_EQ(scheduleFor(table, count, 4096).split, split);
    }
  });
}

TEST(UntunedAttention, SplitsNothingWhereHeadsSuffice) {
  forTeams([](int64_t heads, int64_t threads, const AttentionTable &table) {
    if (heads % threads == 0) {
      EXPECT_EQ(table.size(), 1u);
    }
    // Nor where there are many more segments than threads.
    EXPECT_EQ(scheduleFor(table, 2 * threads, 1 << 20).split, 1);
    for (int64_t segments = 1; segments <= threads; segments *= 2)
      if (worstOccupation(segments, heads, 1, threads) >= 0.9) {
        EXPECT_EQ(scheduleFor(table, segments, 1 << 20).split, 1);
      }
  });
}

TEST(UntunedAttention, SplitsNoShortContext) {
  forTeams([](int64_t, int64_t threads, const AttentionTable &table) {
    for (int64_t segments = 1; segments <= threads; ++segments)
      for (int64_t positions : {1, 16, 128})
        EXPECT_EQ(scheduleFor(table, segments, positions).split, 1);
  });
}

TEST(UntunedAttention, FillsRegistersWithRowsThatDivideTheGroup) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512", "x86-64-amx"}) {
    const Target target = *getTarget(name);
    const int64_t sums = vectorsOfSums(target);
    for (int64_t group = 1; group <= 64; ++group) {
      SCOPED_TRACE(testing::Message() << name << ", " << group << " heads");
      const AttentionTable table =
          chooseUntuned({.cacheHeads = 2, .group = group}, target, 8);
      EXPECT_EQ(reasonOf(verify(table)), "");
      for (const AttentionTableEntry &entry : table) {
        const auto &[decode, split, prefill, tiles, instructions] =
            entry.schedule;
        EXPECT_EQ(group % decode.rows, 0);
        EXPECT_LE(decode.rows * decode.keyBlocks, sums);
        EXPECT_LE(prefill.rows * prefill.keyBlocks, sums);
        // No other divisor that fits is larger.
        for (int64_t rows = decode.rows + 1; rows <= std::min<int64_t>(8, sums);
             ++rows)
          EXPECT_NE(group % rows, 0);
      }
    }
  }
}

TEST(UntunedAttention, MultipliesPromptsByInstructionsWhereTheyAreFaster) {
  constexpr AttentionElement bf16 = AttentionElement::BF16;
  for (const char *name :
       {"x86-64-avx2", "x86-64-avx512", "x86-64-avx512-bf16", "x86-64-amx"})
    for (int64_t headDim : {16, 40, 64, 80, 128, 256, 1024, 4096})
      for (AttentionElement cache : {AttentionElement::F16, bf16})
        for (AttentionElement result : {AttentionElement::F32, bf16}) {
          SCOPED_TRACE(testing::Message() << name << ", head of " << headDim);
          const AttentionShape shape{.cacheHeads = 2,
                                     .group = 4,
                                     .headDim = headDim,
                                     .cache = cache,
                                     .result = result};
          const AttentionTable table =
              chooseUntuned(shape, *getTarget(name), 8);
          const bool can =
              cache == bf16 && result == bf16 &&
              ((name == std::string("x86-64-avx512-bf16") &&
                headDim % 16 == 0) ||
               (name == std::string("x86-64-amx") && headDim % 32 == 0));
          for (const AttentionTableEntry &entry : table) {
            EXPECT_EQ(reasonOf(verify(entry.schedule, shape)), "");
            EXPECT_LE(prefillStackBytes(entry.schedule, shape),
                      model_limits::maxAttentionTileBytes);
            // The longest heads leave no room for what is packed.
            if (headDim <= 1024) {
              EXPECT_EQ(entry.schedule.instructions.has_value(), can);
            }
          }
        }
}

TEST(PrefillPieces, WasteFewRows) {
  for (int64_t rows = 1; rows <= maxAttentionRows; ++rows)
    for (int64_t group : {1, 2, 3, 4, 5, 7, 8, 12, 64})
      for (int64_t tiles : {1, 3, 64}) {
        SCOPED_TRACE(testing::Message() << rows << " rows of " << group
                                        << " heads, " << tiles << " tiles");
        const AttentionSchedule schedule{.prefill = {.rows = rows},
                                         .tiles = tiles};
        const PrefillPieces pieces =
            prefillPieces(schedule, {.group = group, .headDim = 16});
        EXPECT_EQ(pieces.tokens % pieces.unit, 0);
        EXPECT_EQ(pieces.rows % rows, 0);
        EXPECT_GE(pieces.rows, pieces.tokens * group);
        EXPECT_LE(16 * pieces.rows, 17 * pieces.tokens * group);
        // No more than asked for, unless a unit has more.
        EXPECT_TRUE(pieces.tokens * group <= rows * tiles ||
                    pieces.tokens == pieces.unit);
      }
  // Where heads are that large, rows are computed for nothing instead.
  const PrefillPieces pieces =
      prefillPieces({.prefill = {.rows = 6}}, {.group = 4, .headDim = 4096});
  EXPECT_EQ(pieces.tokens, 1);
  EXPECT_EQ(pieces.rows, 6);
}

TEST(UntunedAttention, DeterministicTilesAddInOneOrder) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512", "x86-64-amx"}) {
    const Target target = *getTarget(name);
    for (int64_t group = 1; group <= 64; ++group)
      for (int64_t threads : {1, 2, 48}) {
        SCOPED_TRACE(testing::Message() << name << ", " << group << " heads");
        const AttentionShape shape{.cacheHeads = 1, .group = group};
        const AttentionTable table =
            chooseUntuned(shape, target, threads, /*deterministic=*/true);
        EXPECT_EQ(reasonOf(verify(table)), "");
        EXPECT_EQ(reasonOf(verifyDeterministic(table, 8, target)), "");
        // Nothing depends on the team.
        EXPECT_EQ(table, chooseUntuned(shape, target, 1, true));
        for (int64_t headDim : {16, 64, 80, 128})
          EXPECT_EQ(scoreParts(table.front().schedule.decode, headDim,
                               vectorsOfSums(target)),
                    1);
      }
  }
}

TEST(DeterministicAttention, RefusesWhatChangesTheOrder) {
  const Target target = *getTarget("x86-64-avx512");
  const AttentionTable good = chooseUntuned({}, target, 4, true);
  auto reason = [&](auto change) {
    AttentionTable table = good;
    change(table.front().schedule);
    return reasonOf(verifyDeterministic(table, 8, target));
  };
  EXPECT_EQ(reason([](AttentionSchedule &) {}), "");
  EXPECT_EQ(reason([](AttentionSchedule &schedule) { schedule.split = 2; }),
            "entry 0 splits contexts");
  EXPECT_EQ(
      reason([](AttentionSchedule &schedule) { schedule.prefill.chunk = 4; }),
      "entry 0 has other chunks than of 8 blocks");
  EXPECT_EQ(
      reason([](AttentionSchedule &schedule) { schedule.decode.chunk = 16; }),
      "entry 0 has other chunks than of 8 blocks");
  EXPECT_EQ(reason([](AttentionSchedule &schedule) {
              schedule.instructions = MatrixISA::X86_AVX512_BF16;
            }),
            "entry 0 multiplies prompts by X86_AVX512_BF16, and single tokens "
            "by FMA");
  EXPECT_EQ(
      reason(
          [](AttentionSchedule &schedule) { schedule.decode.keyBlocks = 2; }),
      "entry 0 sums the scores of one token in parts, as its rows times its "
      "key blocks are so few");
}

} // namespace
