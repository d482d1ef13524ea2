//===- RankMessages.h - What rank 0 tells the others ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_RANKS_RANKMESSAGES_H
#define SANDWICH_LIB_RUNTIME_RANKS_RANKMESSAGES_H

#include "sandwich/Runtime/Communication/Communicator.h"
#include "sandwich/Runtime/Ranks/RankGroup.h"

#include <optional>

namespace sandwich {

/// Both sides call the same functions in the same order; rank 0 gives what the
/// others get. What arrives after a failure of the group is nothing. Errors of
/// those who get: what was told is not within the limits of this rank.
void giveSetup(Communicator &ranks, const RankSetup &setup,
               uint64_t manifestChecksum);
/// Error: `artifact` is not the one rank 0 has; or the group failed.
Result<RankSetup> getSetup(Communicator &ranks, const Artifact &artifact);

/// Where the threads of all ranks are, to be called by all once they have
/// loaded.
Result<std::vector<RankPlacement>> exchangePlacement(Communicator &ranks,
                                                     PhaseExecutor &executor);

/// The warnings of each rank; those of this one are `own`. To be called by all.
Result<std::vector<std::vector<std::string>>>
exchangeWarnings(Communicator &ranks, const std::vector<std::string> &own);

void giveStep(Communicator &ranks, PhaseKind phase, const StepInput &input);
void giveEnd(Communicator &ranks);
/// The phase of the next step, which is stored; nothing at the end. Error: it
/// is larger than `limits`; what is in it is for `StepArrangement` to check.
Result<std::optional<PhaseKind>>
getStep(Communicator &ranks, const PhaseLimits &limits, StepInput &input);

/// Tells rank 0's artifact from one that was compiled again meanwhile.
uint64_t checksumOf(const Artifact &artifact);

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_RANKS_RANKMESSAGES_H
