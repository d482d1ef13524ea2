//===- StepInput.cpp - What a step is about -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Teams/StepInput.h"

#include <algorithm>
#include <limits>

using namespace sandwich;

static constexpr int32_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

void StepInput::clear() {
  tokenIds.clear();
  segments.clear();
  logitRows.clear();
  tableChanges.clear();
  blockCopies.clear();
}

/// Error: `index` is not one of `count` things.
static Status checkIndex(const char *what, int32_t index, uint64_t count) {
  if (index < 0 || static_cast<uint64_t>(index) >= count)
    return makeError(ErrorKind::Internal, "was told ", what, " ", index, " of ",
                     count);
  return {};
}

void StepArrangement::addChanges(
    const Sequence &sequence, uint64_t positions,
    std::vector<StepInput::TableChange> &changes) const {
  const auto number = static_cast<size_t>(sequence.number());
  const std::span<const int32_t> known =
      number < tables.size() ? std::span<const int32_t>(tables[number])
                             : std::span<const int32_t>();
  const std::span<const int32_t> table =
      sequence.blocks().first(BlockPool::blocksFor(positions));
  for (size_t index = 0; index < table.size(); ++index)
    if (index >= known.size() || known[index] != table[index])
      changes.push_back(
          {sequence.number(), static_cast<int32_t>(index), table[index]});
}

Status StepArrangement::change(const StepInput::TableChange &change,
                               const StepLimits &limits) {
  SANDWICH_RETURN_IF_ERROR(
      checkIndex("sequence", change.sequence, BlockPool::maxNumbers));
  SANDWICH_RETURN_IF_ERROR(checkIndex("block", change.block, limits.kvBlocks));
  const auto number = static_cast<size_t>(change.sequence);
  if (number >= tables.size())
    tables.resize(number + 1);
  std::vector<int32_t> &table = tables[number];
  // Those of a sequence are told in order.
  SANDWICH_RETURN_IF_ERROR(checkIndex(
      "block number", change.index,
      std::min<uint64_t>(table.size() + 1,
                         BlockPool::blocksFor(limits.contextLength))));
  const auto index = static_cast<size_t>(change.index);
  if (index == table.size())
    table.push_back(change.block);
  else
    table[index] = change.block;
  return {};
}

Status StepArrangement::addSegment(const StepInput::Segment &segment,
                                   const StepLimits &limits) {
  SANDWICH_RETURN_IF_ERROR(
      checkIndex("sequence", segment.sequence, tables.size()));
  const std::vector<int32_t> &table =
      tables[static_cast<size_t>(segment.sequence)];
  const uint64_t room = std::min<uint64_t>(
      limits.contextLength, table.size() * uint64_t{blockTokens});
  SANDWICH_RETURN_IF_ERROR(checkIndex("position", segment.firstPosition, room));
  if (segment.tokens < 1 ||
      static_cast<uint64_t>(segment.tokens) >
          room - static_cast<uint64_t>(segment.firstPosition))
    return makeError(ErrorKind::Internal, "was told ", segment.tokens,
                     " tokens from position ", segment.firstPosition, " of ",
                     room);
  const int32_t end = segment.firstPosition + segment.tokens;
  const size_t needed = BlockPool::blocksFor(static_cast<uint64_t>(end));
  if (blocks.size() + needed > std::numeric_limits<int32_t>::max())
    return makeError(ErrorKind::InvalidArgument,
                     "the contexts of one step are too long together");
  segments.push_back({.first_token = static_cast<int32_t>(positions.size()),
                      .num_tokens = segment.tokens,
                      .first_position = segment.firstPosition,
                      .first_block = static_cast<int32_t>(blocks.size())});
  for (int32_t position = segment.firstPosition; position < end; ++position) {
    positions.push_back(position);
    slots.push_back(table[static_cast<size_t>(position / blockTokens)] *
                        blockTokens +
                    position % blockTokens);
  }
  blocks.insert(blocks.end(), table.begin(),
                table.begin() + static_cast<std::ptrdiff_t>(needed));
  return {};
}

Status StepArrangement::arrange(const StepInput &input,
                                const StepLimits &limits) {
  for (const StepInput::TableChange &each : input.tableChanges)
    SANDWICH_RETURN_IF_ERROR(change(each, limits));
  for (BlockCopy copy : input.blockCopies)
    for (int32_t block : {copy.from, copy.to})
      SANDWICH_RETURN_IF_ERROR(checkIndex("block", block, limits.kvBlocks));
  positions.clear();
  slots.clear();
  segments.clear();
  blocks.clear();
  for (const StepInput::Segment &segment : input.segments)
    SANDWICH_RETURN_IF_ERROR(addSegment(segment, limits));
  if (positions.size() != input.tokenIds.size())
    return makeError(ErrorKind::Internal, "was told ", input.tokenIds.size(),
                     " tokens, and ", positions.size(), " in segments");
  for (int32_t token : input.tokenIds)
    SANDWICH_RETURN_IF_ERROR(checkIndex("token id", token, limits.vocabSize));
  for (int32_t row : input.logitRows)
    SANDWICH_RETURN_IF_ERROR(
        checkIndex("row of logits", row, input.tokenIds.size()));
  return {};
}

void StepArrangement::describe(const StepInput &input,
                               SandwichStep &step) const {
  step.token_ids = input.tokenIds.data();
  step.positions = positions.data();
  step.cache_slots = slots.data();
  step.segments = segments.data();
  step.block_tables = blocks.data();
  step.logit_rows = input.logitRows.data();
  step.num_tokens = static_cast<int64_t>(positions.size());
  step.num_segments = static_cast<int64_t>(segments.size());
  step.num_blocks = static_cast<int64_t>(blocks.size());
  step.num_logit_rows = static_cast<int64_t>(input.logitRows.size());
}
