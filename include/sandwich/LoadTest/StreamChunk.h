//===- StreamChunk.h - A piece of a streamed answer -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LOADTEST_STREAMCHUNK_H
#define SANDWICH_LOADTEST_STREAMCHUNK_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// Of an object that a server streams for a completion or a chat, what a load
/// test looks at.
struct StreamChunk {
  /// One of its choices has some of the answer: text, reasoning, a refusal in
  /// words or a part of a tool call.
  bool hasText = false;
  /// One of its choices ends.
  bool finishes = false;
  /// Of its usage.
  std::optional<uint64_t> promptTokens = {};
  std::optional<uint64_t> outputTokens = {};
  std::optional<uint64_t> cachedPromptTokens = {};
  /// What it says of an error in place of an answer.
  std::optional<std::string> error = {};
};

/// Reads the data of an event, in one pass that keeps nothing, as there may be
/// tens of thousands a second; whole answers that are not streamed have the
/// same members. Unknown members are skipped. Errors: invalid JSON, anything
/// but an object, nesting deeper than `maxJsonDepth`, usage of more than
/// 2^40 tokens.
Result<StreamChunk> parseStreamChunk(std::string_view data);

} // namespace sandwich

#endif // SANDWICH_LOADTEST_STREAMCHUNK_H
