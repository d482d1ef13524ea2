//===- DraftEngine.cpp - The smaller model that proposes tokens -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/DraftEngine.h"

#include "sandwich/Support/CheckedMath.h"

using namespace sandwich;

EngineOptions sandwich::draftEngineOptions(const EngineOptions &target,
                                           uint64_t proposedTokens) {
  EngineOptions draft;
  // Texts with what is proposed for them.
  const uint64_t proposed =
      checkedMultiply<uint64_t>(target.maxSequences, proposedTokens)
          .value_or(0);
  if (target.kvCacheTokens > 0)
    draft.kvCacheTokens = checkedAdd<uint64_t>(target.kvCacheTokens, proposed)
                              .value_or(target.kvCacheTokens);
  draft.maxSequences = target.maxSequences;
  draft.prefixCache = target.prefixCache;
  draft.weightPlacement = target.weightPlacement;
  draft.verifyWeights = target.verifyWeights;
  draft.numaNode = target.numaNode;
  draft.memoryLedger = target.memoryLedger;
  draft.coreArbiter = target.coreArbiter;
  draft.log = target.log;
  return draft;
}
