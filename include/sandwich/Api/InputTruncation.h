//===- InputTruncation.h - Inputs that are too long -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How much of an input is read, given how many tokens it has. Whoever
/// tokenizes asks, and then cuts the texts, never the tokens around them.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_INPUTTRUNCATION_H
#define SANDWICH_API_INPUTTRUNCATION_H

#include "sandwich/Api/EncoderCapabilities.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace sandwich {

/// The end that is cut off.
enum class TruncationDirection { Left, Right };

/// What becomes of inputs that are too long.
struct InputTruncation {
  /// They are cut; otherwise they are refused, for a cut input has another
  /// meaning.
  bool allowed = false;
  TruncationDirection direction = TruncationDirection::Right;
  /// The request's own limit, which is not above the model's.
  std::optional<uint64_t> maxTokens = {};
};

/// The tokens to read of an input that has `count`, with those around it; the
/// input of a reranker is a pair. One without any, or with too many, is an
/// error of `param`, with both numbers.
std::variant<uint64_t, ApiError>
tokensToRead(uint64_t count, const EncoderCapabilities &capabilities,
             const InputTruncation &truncation, const std::string &param);

} // namespace sandwich

#endif // SANDWICH_API_INPUTTRUNCATION_H
