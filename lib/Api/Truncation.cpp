//===- Truncation.cpp - Inputs that are too long --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/Truncation.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;

static ApiError tooLong(const std::string &param, uint64_t count,
                        const EncoderCapabilities &capabilities) {
  ApiError error =
      ApiError::contextLength(param + " has " + std::to_string(count) +
                              " tokens; this model reads at most " +
                              std::to_string(capabilities.maxInputTokens) +
                              ", and the request does not ask to truncate it");
  error.param = param;
  return error;
}

/// Where inputs are cut.
static uint64_t limitOf(const EncoderCapabilities &capabilities,
                        const Truncation &truncation) {
  return std::min(capabilities.maxInputTokens,
                  truncation.maxTokens.value_or(capabilities.maxInputTokens));
}

std::variant<uint64_t, ApiError>
sandwich::tokensToRead(uint64_t count, const EncoderCapabilities &capabilities,
                       const Truncation &truncation, const std::string &param) {
  if (count == 0)
    return ApiError::emptyInput(param);
  if (truncation.allowed)
    return std::min(count, limitOf(capabilities, truncation));
  if (count > capabilities.maxInputTokens)
    return tooLong(param, count, capabilities);
  return count;
}

std::variant<PairTokens, ApiError>
sandwich::pairTokensToRead(PairTokens counts, uint64_t specialTokens,
                           const EncoderCapabilities &capabilities,
                           const Truncation &truncation,
                           const std::string &param) {
  if (truncation.maxDocumentTokens)
    counts.document = std::min(counts.document, *truncation.maxDocumentTokens);
  auto total = checkedAdd(counts.query, counts.document);
  if (total)
    total = checkedAdd(*total, specialTokens);
  const auto wanted =
      tokensToRead(total.value_or(UINT64_MAX), capabilities, truncation, param);
  if (const auto *error = std::get_if<ApiError>(&wanted))
    return *error;
  const uint64_t limit = std::get<uint64_t>(wanted);
  if (limit == total)
    return counts;
  if (limit <= specialTokens)
    return ApiError::ofField(
        param, param + " is cut at " + std::to_string(limit) +
                   " tokens, which leaves none of its text: " +
                   std::to_string(specialTokens) + " are around it");
  const uint64_t room = limit - specialTokens;
  const auto [shorter, longer] = std::minmax(counts.query, counts.document);
  const bool queryIsLonger = counts.query > counts.document;
  // Both are cut where the shorter one has more than its half.
  const uint64_t ofShorter = std::min(shorter, room / 2);
  const uint64_t ofLonger = std::min(longer, room - ofShorter);
  return queryIsLonger ? PairTokens{ofLonger, ofShorter}
                       : PairTokens{ofShorter, ofLonger};
}
