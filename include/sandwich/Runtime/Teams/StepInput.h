//===- StepInput.h - What a step is about -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A step as all ranks know it, and how one makes of it what compiled code
/// takes. Block tables are long and change by a block now and then: a rank
/// keeps them from step to step, and is told only what has changed.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_STEPINPUT_H
#define SANDWICH_RUNTIME_TEAMS_STEPINPUT_H

#include "sandwich/Runtime/Memory/BlockPool.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sandwich {

enum class PhaseKind : uint32_t { Prefill, Decode };

/// A step, the same on every rank.
struct StepInput {
  /// Tokens that follow each other in one sequence.
  struct Segment {
    /// `Sequence::number`
    int32_t sequence;
    int32_t tokens;
    /// Of the first one in its sequence.
    int32_t firstPosition;
    bool operator==(const Segment &) const = default;
  };
  /// `block` is where the positions from index * SANDWICH_KV_BLOCK_TOKENS on
  /// lie now.
  struct TableChange {
    int32_t sequence;
    int32_t index;
    int32_t block;
    bool operator==(const TableChange &) const = default;
  };

  /// Of all segments, one after another.
  std::vector<int32_t> tokenIds;
  std::vector<Segment> segments;
  /// Indexes of the tokens whose logits are wanted.
  std::vector<int32_t> logitRows;
  /// Of all tables since the last step.
  std::vector<TableChange> tableChanges;
  /// Made before the step, in this order.
  std::vector<BlockCopy> blockCopies;

  void clear();
};

/// What a step of a phase may have at most.
struct StepLimits {
  /// A segment has one at least.
  uint64_t tokens = 0;
  uint64_t logitRows = 0;
  /// Beyond all token ids, positions and KV cache blocks.
  uint64_t vocabSize = 0;
  uint64_t contextLength = 0;
  uint64_t kvBlocks = 0;
};

/// Of both phases.
struct PhaseLimits {
  StepLimits prefill, decode;
  const StepLimits &of(PhaseKind phase) const {
    return phase == PhaseKind::Prefill ? prefill : decode;
  }
};

/// The steps of one rank, in the form that compiled code takes.
class StepArrangement {
public:
  /// Adds what the first `positions` positions of `sequence` need to be told.
  void addChanges(const Sequence &sequence, uint64_t positions,
                  std::vector<StepInput::TableChange> &changes) const;

  /// Forgets all tables, so that they are told anew: a step that was arranged
  /// was not announced.
  void forgetTables() { tables.clear(); }

  /// Follows the changes and arranges the step. Error: what is not within
  /// `limits`, or was never told.
  Status arrange(const StepInput &input, const StepLimits &limits);

  /// Sets the fields of `step` that tell of the step arranged last, whose
  /// `input` it was; valid until both change.
  void describe(const StepInput &input, SandwichStep &step) const;

private:
  Status change(const StepInput::TableChange &change, const StepLimits &limits);
  Status addSegment(const StepInput::Segment &segment,
                    const StepLimits &limits);

  /// [sequence number][block of the sequence]
  std::vector<std::vector<int32_t>> tables;
  /// As in `SandwichStep`.
  std::vector<int32_t> positions;
  std::vector<int32_t> slots;
  std::vector<SandwichSegment> segments;
  std::vector<int32_t> blocks;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_STEPINPUT_H
