//===- GenerationParameters.h - How a text is to be made --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_GENERATIONPARAMETERS_H
#define SANDWICH_API_GENERATIONPARAMETERS_H

#include "sandwich/Api/ObjectReader.h"
#include "sandwich/Sampling/SamplingOptions.h"
#include "sandwich/Sampling/StopConditions.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// What a text must be like.
struct OutputFormat {
  enum class Kind { Text, JsonObject, JsonSchema, RegularExpression, Choice };

  Kind kind = Kind::Text;
  /// JsonSchema.
  Json schema = {};
  /// RegularExpression.
  std::string pattern = {};
  /// Choice.
  std::vector<std::string> choices = {};
  /// The field that said so, for errors of the compiled schema.
  std::string param = {};
};

/// What completions and chats have in common, within the ranges that the
/// sampler takes.
struct GenerationParameters {
  /// Texts of one request at most, all prompts together.
  static constexpr int64_t mostTexts = 1024;
  static constexpr int64_t mostTokens = int64_t{1} << 40;
  static constexpr size_t nameBytes = 1024;
  /// Tokens that `logit_bias` may name; each text keeps them.
  static constexpr size_t mostBiases = 1024;

  /// Empty: the only one there is.
  std::string model;
  /// Nothing: as many as there is room for, or as the endpoint has it.
  std::optional<uint64_t> maxTokens;
  uint32_t continuations = 1;
  /// Without a seed that the request did not choose.
  SamplingOptions sampling;
  bool hasSeed = false;
  StopOptions stop;
  bool skipSpecialTokens = true;
  bool stream = false;
  /// The usage in a last chunk, and in every one.
  bool includeUsage = false;
  bool continuousUsage = false;
  /// The scheduler's: the higher comes first.
  uint32_t priority = 0;
  /// Requests with other salts share no prefix with this one.
  std::string cacheSalt;
  OutputFormat format;
};

/// Reads the fields that completions and chats have in common.
GenerationParameters readGenerationParameters(ObjectReader &reader);

} // namespace sandwich

#endif // SANDWICH_API_GENERATIONPARAMETERS_H
