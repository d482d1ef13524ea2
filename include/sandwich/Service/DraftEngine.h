//===- DraftEngine.h - The smaller model that proposes tokens ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVICE_DRAFTENGINE_H
#define SANDWICH_SERVICE_DRAFTENGINE_H

#include "sandwich/Runtime/Engine/Engine.h"

#include <cstdint>

namespace sandwich {

/// How the engine of a smaller model is created that proposes tokens for one
/// of `target`: where that one is, with room for as many tokens, and for
/// `proposedTokens` more of each text.
EngineOptions draftEngineOptions(const EngineOptions &target,
                                 uint64_t proposedTokens);

} // namespace sandwich

#endif // SANDWICH_SERVICE_DRAFTENGINE_H
