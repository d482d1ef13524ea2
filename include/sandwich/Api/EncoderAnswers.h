//===- EncoderAnswers.h - Embeddings and scores -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the endpoints of encoders answer, as text. Numbers are the shortest
/// that read back as the same f32. A number that is none, which JSON has no
/// word for, is an error of the kind `Internal`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_ENCODERANSWERS_H
#define SANDWICH_API_ENCODERANSWERS_H

#include "sandwich/Api/EmbeddingRequest.h"
#include "sandwich/Api/RerankRequest.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// POST /v1/embeddings: {"object", "data": [{"object", "embedding", "index"}],
/// "model", "usage": {"prompt_tokens", "total_tokens"}}.
Result<std::string>
embeddingAnswer(const std::string &model, EmbeddingEncoding encoding,
                std::span<const std::vector<float>> embeddings,
                uint64_t promptTokens);

/// POST /embed: a list of embeddings.
Result<std::string>
teiEmbedAnswer(std::span<const std::vector<float>> embeddings);

/// The embeddings of an input's tokens, one after another.
struct TokenEmbeddings {
  std::vector<float> values;
  /// Values of each; they divide those that there are.
  uint64_t dimensions = 0;
};

/// POST /embed_all: of each input a list of embeddings.
Result<std::string> teiEmbedAllAnswer(std::span<const TokenEmbeddings> inputs);

/// A document by its place in the request.
struct RankedDocument {
  size_t index = 0;
  float score = 0;
};

/// The best documents of a request, the best first, given what the model says
/// of each. Of those with the same score the earlier one is the better.
Result<std::vector<RankedDocument>>
rankDocuments(const RerankRequest &request, std::span<const float> scores);

/// POST /v1/rerank: {"id", "model", "results": [{"index", "relevance_score",
/// "document": {"text"}}], "usage": {"prompt_tokens", "total_tokens"}}; the
/// documents only where they are asked for.
Result<std::string> rerankAnswer(const std::string &id,
                                 const std::string &model,
                                 const RerankRequest &request,
                                 std::span<const RankedDocument> ranks,
                                 uint64_t promptTokens);

/// POST /rerank: [{"index", "text", "score"}], the text only where it is asked
/// for.
Result<std::string> teiRerankAnswer(const RerankRequest &request,
                                    std::span<const RankedDocument> ranks);

/// The cosine of the angle between two embeddings of one length, computed in
/// f64; 0 where one of them has only zeros.
float cosineSimilarity(std::span<const float> left,
                       std::span<const float> right);

/// POST /similarity: a list of cosines.
Result<std::string> teiSimilarityAnswer(std::span<const float> similarities);

/// What GET /info tells of a model and its server besides what the model takes.
struct TeiInfo {
  std::string modelId;
  /// The revision.
  std::optional<std::string> modelSha = {};
  /// "float32", "bfloat16".
  std::string dataType;
  std::string servedModelName;
  /// How token embeddings become one, of models that embed: "cls", "mean",
  /// "last_token".
  std::string pooling = {};
  uint64_t maxConcurrentRequests = 0;
  uint64_t maxBatchTokens = 0;
  uint64_t tokenizationWorkers = 0;
  std::string version;
};

/// GET /info, with all fields that text-embeddings-inference has.
Json teiInfoAnswer(const TeiInfo &info,
                   const EncoderCapabilities &capabilities);

} // namespace sandwich

#endif // SANDWICH_API_ENCODERANSWERS_H
