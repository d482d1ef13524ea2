//===- GenerationSetup.h - From a request to what is generated --*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_GENERATIONSETUP_H
#define SANDWICH_LIB_SERVER_GENERATIONSETUP_H

#include "Endpoints.h"

#include <variant>

namespace sandwich {

/// What `parameters` want of the service, but for the prompt. Errors name the
/// field.
std::variant<GenerationRequest, ApiError>
toGenerationRequest(const GenerationParameters &parameters,
                    const LoadedModel &model);

/// Error: one of the `tokens` of the field `name` is none of the `vocabulary`.
std::optional<ApiError> checkTokens(const std::string &name,
                                    std::span<const int32_t> tokens,
                                    uint64_t vocabulary);

/// Tokens of a text behind a prompt of so many: what was asked for, or else
/// `usual`, or all that there is room for. Error: `context_length_exceeded`,
/// with both numbers.
std::variant<uint64_t, ApiError>
chooseMaxTokens(const LoadedModel &model, uint64_t promptTokens,
                const std::optional<uint64_t> &wanted,
                const std::optional<uint64_t> &usual);

/// What an endpoint makes of a request.
struct PreparedGeneration {
  std::vector<GenerationAnswer::Prompt> prompts = {};
  /// For the log.
  std::optional<std::string> promptText = {};
  ToolCallOptions toolCalls = {};
};

/// How the answers of an endpoint look.
struct AnswerKind {
  const char *idPrefix;
  std::unique_ptr<AnswerShape> (*makeShape)(AnswerShape::Identity,
                                            std::optional<Tokenizer>);
};

/// Has the model that `parameters` name generate what `prepare` makes of the
/// request, and answers `call`; what cannot be is refused.
void generate(const Call &call, const EndpointContext &context,
              const GenerationParameters &parameters, AnswerKind kind,
              const std::function<std::variant<PreparedGeneration, ApiError>(
                  const LoadedModel &)> &prepare);

/// Answers a request for texts that is wrong, and tells of it. `model` is the
/// one that it names, if that is known.
void refuse(const Call &call, const EndpointContext &context,
            const std::string &model, const ApiError &error);

/// Tells of a request for texts that nothing was generated for.
void tellUnserved(const Call &call, const EndpointContext &context,
                  const std::string &model, unsigned status,
                  const std::string &reason);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_GENERATIONSETUP_H
