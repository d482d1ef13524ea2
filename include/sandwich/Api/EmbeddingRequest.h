//===- EmbeddingRequest.h - Texts to embed ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// OpenAI's POST /v1/embeddings, and POST /embed and /embed_all of
/// text-embeddings-inference.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_EMBEDDINGREQUEST_H
#define SANDWICH_API_EMBEDDINGREQUEST_H

#include "sandwich/Api/EncoderCapabilities.h"
#include "sandwich/Api/InputTruncation.h"
#include "sandwich/Api/Prompt.h"

#include <string>
#include <string_view>
#include <variant>

namespace sandwich {

/// How an answer writes embeddings.
enum class EmbeddingEncoding {
  Float,  ///< a list of numbers
  Base64, ///< the bytes of little-endian f32
};

struct EmbeddingRequest {
  /// Empty: the only one there is.
  std::string model;
  /// At least one and none of them empty. Tokens are in the vocabulary, and
  /// read as they are, with nothing around them.
  PromptList inputs;
  /// What comes before every text, but before no tokens.
  std::string prefix;
  InputTruncation truncation;
  /// Values of an embedding: as many as the model has, or the first of them.
  uint64_t dimensions = 0;
  /// Embeddings have the length 1, after they are shortened.
  bool normalize = true;
  EmbeddingEncoding encoding = EmbeddingEncoding::Float;
};

/// Of OpenAI, with vLLM's fields `truncate_prompt_tokens` and `truncation_side`
/// and with `normalize` and `prompt_name` of text-embeddings-inference. Errors
/// name the field.
std::variant<EmbeddingRequest, ApiError>
parseEmbeddingRequest(std::string_view body, const EncoderLookup &lookup);

/// POST /embed.
std::variant<EmbeddingRequest, ApiError>
parseTeiEmbedRequest(std::string_view body, const EncoderLookup &lookup);

/// POST /embed_all: an embedding of every token, as the model has it.
std::variant<EmbeddingRequest, ApiError>
parseTeiEmbedAllRequest(std::string_view body, const EncoderLookup &lookup);

} // namespace sandwich

#endif // SANDWICH_API_EMBEDDINGREQUEST_H
