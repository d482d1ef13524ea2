//===- RankMessagesTest.cpp - What ranks are told -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/Ranks/RankMessages.h"

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

using namespace sandwich;

/// Two tokens of one sequence that has two blocks, one of which is a copy.
static StepArguments makeStep() {
  return {.tokenIds = {5, 6},
          .positions = {16, 17},
          .sequences = {0, 0},
          .blockTables = {3, 4},
          .logitRows = {1},
          .blockCopies = {{2, 4}},
          .sequenceCount = 1,
          .blocksPerSequence = 2};
}

/// What rank 1 says of the step `arguments`.
static std::string receive(const StepArguments &arguments) {
  const StepLimits limits = {.tokens = 2,
                             .logitRows = 1,
                             .vocabSize = 7,
                             .contextLength = 40,
                             .kvBlocks = 5};
  auto segment = *SharedMemorySegment::create(2, 1);
  auto first = *SharedMemoryCommunicator::create(segment, 0);
  auto second = *SharedMemoryCommunicator::create(segment, 1);
  std::thread teller([&] { giveStep(*first, PhaseKind::Prefill, arguments); });
  StepArguments received;
  auto phase = getStep(*second, {limits, limits}, received);
  // Nobody takes the rest of what was refused.
  if (!phase)
    segment->abort(1, "failed");
  teller.join();
  if (!phase)
    return phase.error().message;
  EXPECT_EQ(*phase, PhaseKind::Prefill);
  EXPECT_EQ(received.tokenIds, arguments.tokenIds);
  EXPECT_EQ(received.blockTables, arguments.blockTables);
  return "";
}

TEST(RankMessages, StepsWithinTheLimitsArrive) {
  EXPECT_EQ(receive(makeStep()), "");
}

TEST(RankMessages, StepsBeyondTheLimitsAreRefused) {
  struct {
    const char *expected;
    void (*spoil)(StepArguments &);
  } const cases[] = {
      {"was told a number of tokens 3, which is not from 1 to 2",
       [](StepArguments &s) {
         for (auto *part : {&s.tokenIds, &s.positions, &s.sequences})
           part->push_back(0);
       }},
      {"was told a number of tokens 0, which is not from 1 to 2",
       [](StepArguments &s) { s.tokenIds.clear(); }},
      {"was told a number of sequences -1, which is not from 1 to 2",
       [](StepArguments &s) { s.sequenceCount = -1; }},
      {"was told a number of sequences 1099511627776, which is not from 1 to "
       "2",
       [](StepArguments &s) { s.sequenceCount = int64_t{1} << 40; }},
      {"was told a number of blocks 4, which is not from 1 to 3",
       [](StepArguments &s) { s.blocksPerSequence = 4; }},
      {"was told a number of rows of logits 2, which is not from 0 to 1",
       [](StepArguments &s) { s.logitRows.push_back(0); }},
      {"was told a number of copies 6, which is not from 0 to 5",
       [](StepArguments &s) { s.blockCopies.resize(6); }},
      {"was told token id 7 of 7", [](StepArguments &s) { s.tokenIds[1] = 7; }},
      {"was told token id -1 of 7",
       [](StepArguments &s) { s.tokenIds[0] = -1; }},
      {"was told position 32 of 32",
       [](StepArguments &s) { s.positions[1] = 32; }},
      {"was told sequence 1 of 1",
       [](StepArguments &s) { s.sequences[0] = 1; }},
      {"was told block 5 of 5", [](StepArguments &s) { s.blockTables[0] = 5; }},
      {"was told row of logits 2 of 2",
       [](StepArguments &s) { s.logitRows[0] = 2; }},
      {"was told block 9 of 5",
       [](StepArguments &s) { s.blockCopies[0].to = 9; }},
  };
  for (const auto &each : cases) {
    StepArguments step = makeStep();
    each.spoil(step);
    EXPECT_EQ(receive(step), each.expected);
  }
}
