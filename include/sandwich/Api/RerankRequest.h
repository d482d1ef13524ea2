//===- RerankRequest.h - Texts to rank --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// POST /v1/rerank, which Cohere, Jina and vLLM have, and POST /rerank of
/// text-embeddings-inference.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_RERANKREQUEST_H
#define SANDWICH_API_RERANKREQUEST_H

#include "sandwich/Api/EncoderCapabilities.h"
#include "sandwich/Api/InputTruncation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sandwich {

struct RerankRequest {
  /// Empty: the only one there is.
  std::string model;
  /// Not empty.
  std::string query;
  /// The field that has the documents: "documents" or "texts".
  std::string field;
  /// At least one. One that is empty is ranked as any other.
  std::vector<std::string> documents;
  /// Scores are the model's; otherwise they go through a sigmoid, and are from
  /// 0 to 1.
  bool rawScores = false;
  /// The answer repeats the documents.
  bool returnDocuments = false;
  /// Documents of the answer at most: from 1 to the number of documents.
  size_t top = 0;
  InputTruncation truncation;
  /// Tokens to which each document is cut, whatever else is cut of its pair.
  std::optional<uint64_t> maxDocumentTokens = {};
};

/// Of Cohere, without documents in the answer unless `return_documents` asks
/// for them; a `top_n` of 0 is all, as in vLLM, whose fields `use_activation`,
/// `truncate_prompt_tokens` and `truncation_side` are read. Errors name the
/// field.
std::variant<RerankRequest, ApiError>
parseRerankRequest(std::string_view body, const EncoderLookup &lookup);

/// Of text-embeddings-inference.
std::variant<RerankRequest, ApiError>
parseTeiRerankRequest(std::string_view body, const EncoderLookup &lookup);

} // namespace sandwich

#endif // SANDWICH_API_RERANKREQUEST_H
