//===- InputTruncation.cpp - Inputs that are too long ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/InputTruncation.h"

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

std::variant<uint64_t, ApiError>
sandwich::tokensToRead(uint64_t count, const EncoderCapabilities &capabilities,
                       const InputTruncation &truncation,
                       const std::string &param) {
  if (count == 0)
    return ApiError::emptyInput(param);
  if (truncation.allowed)
    return std::min({count, capabilities.maxInputTokens,
                     truncation.maxTokens.value_or(UINT64_MAX)});
  if (count > capabilities.maxInputTokens)
    return tooLong(param, count, capabilities);
  return count;
}
