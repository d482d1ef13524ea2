//===- EncoderCapabilities.h - What an encoder takes ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_ENCODERCAPABILITIES_H
#define SANDWICH_API_ENCODERCAPABILITIES_H

#include "sandwich/Api/ApiError.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>

namespace sandwich {

/// What may be asked of a model that embeds or ranks texts. Requests are read
/// against it, so that those that are taken can be computed.
struct EncoderCapabilities {
  enum class Kind {
    Embedding, ///< a vector for each text
    Reranker,  ///< a score for each pair of a query and a text
  };

  Kind kind = Kind::Embedding;
  /// Tokens of one input, with those that the tokenizer puts around it; of a
  /// reranker, of a pair.
  uint64_t maxInputTokens = 0;
  uint64_t vocabularySize = 0;
  /// Values of an embedding. A reranker has none.
  uint64_t dimensions = 0;
  /// The first values of an embedding are an embedding too, as of models that
  /// were trained so (Kusupati et al., Matryoshka Representation Learning,
  /// 2022).
  bool isMatryoshka = false;
  /// Inputs of one request.
  uint64_t maxInputs = 0;
  /// What comes before texts that are for a purpose, by its name, as
  /// sentence-transformers has it: "query" -> "query: ".
  std::map<std::string, std::string, std::less<>> prompts = {};
  /// The prompt's name where a request has none; empty: no prompt.
  std::string defaultPrompt = {};

  /// Whether there are requests that these allow.
  Status validate() const;
};

/// Finds the model that a request names, which is empty where it names none.
/// What it gives is valid, and lives as long as the request is read.
using EncoderLookup =
    std::function<std::variant<const EncoderCapabilities *, ApiError>(
        const std::string &model)>;

} // namespace sandwich

#endif // SANDWICH_API_ENCODERCAPABILITIES_H
