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
static StepInput makeStep() {
  return {.tokenIds = {5, 6},
          .segments = {{0, 2, 16}},
          .logitRows = {1},
          .tableChanges = {{0, 0, 3}, {0, 1, 4}},
          .blockCopies = {{2, 4}}};
}

/// What rank 1 says of the step `input`.
static std::string receive(const StepInput &input) {
  const StepLimits limits = {.tokens = 2,
                             .logitRows = 1,
                             .vocabSize = 7,
                             .contextLength = 40,
                             .kvBlocks = 5};
  auto segment = *SharedMemorySegment::create(2, 1);
  auto first = *SharedMemoryCommunicator::create(segment, 0);
  auto second = *SharedMemoryCommunicator::create(segment, 1);
  std::thread teller([&] { giveStep(*first, PhaseKind::Prefill, input); });
  StepInput received;
  auto phase = getStep(*second, {limits, limits}, received);
  // Nobody takes the rest of what was refused.
  if (!phase)
    segment->abort(1, "failed");
  teller.join();
  if (!phase)
    return phase.error().message;
  EXPECT_EQ(*phase, PhaseKind::Prefill);
  EXPECT_EQ(received.tokenIds, input.tokenIds);
  EXPECT_EQ(received.segments, input.segments);
  EXPECT_EQ(received.logitRows, input.logitRows);
  EXPECT_EQ(received.tableChanges, input.tableChanges);
  EXPECT_EQ(received.blockCopies, input.blockCopies);
  StepArrangement arrangement;
  if (Status status = arrangement.arrange(received, limits); !status)
    return status.error().message;
  return "";
}

TEST(RankMessages, StepsWithinTheLimitsArrive) {
  EXPECT_EQ(receive(makeStep()), "");
}

TEST(RankMessages, StepsBeyondTheLimitsAreRefused) {
  struct {
    const char *expected;
    void (*spoil)(StepInput &);
  } const cases[] = {
      {"was told a number of tokens 3, which is not from 1 to 2",
       [](StepInput &s) { s.tokenIds.push_back(0); }},
      {"was told a number of tokens 0, which is not from 1 to 2",
       [](StepInput &s) { s.tokenIds.clear(); }},
      {"was told a number of segments 0, which is not from 1 to 2",
       [](StepInput &s) { s.segments.clear(); }},
      {"was told a number of segments 3, which is not from 1 to 2",
       [](StepInput &s) { s.segments.resize(3); }},
      {"was told a number of changes 7, which is not from 0 to 6",
       [](StepInput &s) { s.tableChanges.resize(7); }},
      {"was told a number of rows of logits 2, which is not from 0 to 1",
       [](StepInput &s) { s.logitRows.push_back(0); }},
      {"was told a number of copies 1048577, which is not from 0 to 1048576",
       [](StepInput &s) { s.blockCopies.resize(BlockPool::maxNumbers + 1); }},
      {"was told token id 7 of 7", [](StepInput &s) { s.tokenIds[1] = 7; }},
      {"was told token id -1 of 7", [](StepInput &s) { s.tokenIds[0] = -1; }},
      {"was told position 32 of 32",
       [](StepInput &s) { s.segments[0].firstPosition = 32; }},
      {"was told 2 tokens from position 31 of 32",
       [](StepInput &s) { s.segments[0].firstPosition = 31; }},
      {"was told 0 tokens from position 16 of 32",
       [](StepInput &s) { s.segments[0].tokens = 0; }},
      {"was told 2 tokens, and 1 in segments",
       [](StepInput &s) { s.segments[0].tokens = 1; }},
      {"was told sequence 1 of 1",
       [](StepInput &s) { s.segments[0].sequence = 1; }},
      {"was told sequence -1 of 1048576",
       [](StepInput &s) { s.tableChanges[0].sequence = -1; }},
      {"was told block number 2 of 2",
       [](StepInput &s) { s.tableChanges[1].index = 2; }},
      {"was told block 5 of 5",
       [](StepInput &s) { s.tableChanges[0].block = 5; }},
      {"was told row of logits 2 of 2",
       [](StepInput &s) { s.logitRows[0] = 2; }},
      {"was told block 9 of 5", [](StepInput &s) { s.blockCopies[0].to = 9; }},
  };
  for (const auto &each : cases) {
    StepInput step = makeStep();
    each.spoil(step);
    EXPECT_EQ(receive(step), each.expected);
  }
}
