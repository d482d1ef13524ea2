//===- CompletionRequest.h - POST /v1/completions ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_COMPLETIONREQUEST_H
#define SANDWICH_API_COMPLETIONREQUEST_H

#include "sandwich/Api/GenerationParameters.h"
#include "sandwich/Api/Prompt.h"

#include <string>
#include <variant>
#include <vector>

namespace sandwich {

struct CompletionRequest {
  /// Tokens of a text where the request does not say.
  static constexpr uint64_t usualTokens = 16;

  GenerationParameters parameters;
  /// At least one.
  std::vector<Prompt> prompts;
  /// The prompt is a part of the text, with its log-probabilities where those
  /// are asked for.
  bool echo = false;
  /// Whether the tokenizer puts its tokens around a prompt that is a text.
  bool addSpecialTokens = true;
  /// Only so many tokens of the end of a prompt.
  std::optional<uint64_t> truncatePromptTokens = {};
};

/// Errors name the field.
std::variant<CompletionRequest, ApiError>
parseCompletionRequest(std::string_view body);

} // namespace sandwich

#endif // SANDWICH_API_COMPLETIONREQUEST_H
