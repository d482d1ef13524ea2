//===- Truncation.h - Inputs that are too long ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// How much of an input is read, given how many tokens it has. Whoever
/// tokenizes asks, and cuts the text's tokens, never those around it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_TRUNCATION_H
#define SANDWICH_API_TRUNCATION_H

#include "sandwich/Api/EncoderCapabilities.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace sandwich {

/// The end that is cut off.
enum class TruncationDirection { Left, Right };

/// What becomes of inputs that are too long.
struct Truncation {
  /// They are cut; otherwise they are refused, for a cut input has another
  /// meaning.
  bool allowed = false;
  TruncationDirection direction = TruncationDirection::Right;
  /// The request's own limit, which is not above the model's.
  std::optional<uint64_t> maxTokens = {};
  /// Of a pair: tokens of its document, which is cut there in any case.
  std::optional<uint64_t> maxDocumentTokens = {};
};

/// The tokens to read of an input that has `count`, with those around it. An
/// input without any, or with too many, is an error of `param`, with both
/// numbers.
std::variant<uint64_t, ApiError>
tokensToRead(uint64_t count, const EncoderCapabilities &capabilities,
             const Truncation &truncation, const std::string &param);

/// The tokens of a query and a document, without those around them.
struct PairTokens {
  uint64_t query = 0;
  uint64_t document = 0;

  bool operator==(const PairTokens &) const = default;
};

/// The same of a pair with `specialTokens` around its texts. The longer text is
/// cut first, until both are of one length, as Hugging Face's tokenizers do.
std::variant<PairTokens, ApiError>
pairTokensToRead(PairTokens counts, uint64_t specialTokens,
                 const EncoderCapabilities &capabilities,
                 const Truncation &truncation, const std::string &param);

} // namespace sandwich

#endif // SANDWICH_API_TRUNCATION_H
