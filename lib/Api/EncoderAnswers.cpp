//===- EncoderAnswers.cpp - Embeddings and scores -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/EncoderAnswers.h"

#include "sandwich/Support/CheckedMath.h"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

using namespace sandwich;

static_assert(std::endian::native == std::endian::little,
              "base64 has the bytes of embeddings as memory has them");

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static Error noNumber() {
  return makeError(ErrorKind::Internal,
                   "the model computed a value that is not a number");
}

static bool isFinite(std::span<const float> values) {
  return std::ranges::all_of(values,
                             [](float value) { return std::isfinite(value); });
}

/// Appends a finite number.
static void append(std::string &text, float value) {
  char digits[32];
  text.append(digits,
              std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

static void appendList(std::string &text, std::span<const float> values) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0)
      text += ',';
    append(text, values[i]);
  }
  text += ']';
}

static void appendBase64(std::string &text, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL;
  const size_t begin = text.size();
  // It writes a zero behind the text.
  text.resize(begin + sodium_base64_encoded_len(bytes.size(), variant));
  sodium_bin2base64(text.data() + begin, text.size() - begin,
                    reinterpret_cast<const unsigned char *>(bytes.data()),
                    bytes.size(), variant);
  text.pop_back();
}

static void appendString(std::string &text, const std::string &value) {
  text += Json(value).dump();
}

static void appendUsage(std::string &text, uint64_t promptTokens) {
  const std::string tokens = std::to_string(promptTokens);
  text += R"("usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" +
          tokens + "}";
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

/// Makes room for `values` numbers of embeddings: most take about 12 bytes.
static void reserve(std::string &text, size_t values) {
  text.reserve(checkedMultiply<size_t>(values, 13).value_or(0));
}

static size_t countValues(std::span<const std::vector<float>> embeddings) {
  size_t values = 0;
  for (const std::vector<float> &embedding : embeddings)
    values += embedding.size();
  return values;
}

Result<std::string>
sandwich::embeddingAnswer(const std::string &model, EmbeddingEncoding encoding,
                          std::span<const std::vector<float>> embeddings,
                          uint64_t promptTokens) {
  const bool isBase64 = encoding == EmbeddingEncoding::Base64;
  std::string text = R"({"object":"list","data":[)";
  reserve(text, countValues(embeddings) / (isBase64 ? 2 : 1));
  for (size_t i = 0; i < embeddings.size(); ++i) {
    if (!isFinite(embeddings[i]))
      return noNumber();
    text += i > 0 ? "," : "";
    text += R"({"object":"embedding","embedding":)";
    if (isBase64) {
      text += '"';
      appendBase64(text, embeddings[i]);
      text += '"';
    } else {
      appendList(text, embeddings[i]);
    }
    text += R"(,"index":)" + std::to_string(i) + "}";
  }
  text += R"(],"model":)";
  appendString(text, model);
  text += ',';
  appendUsage(text, promptTokens);
  text += '}';
  return text;
}

Result<std::string>
sandwich::teiEmbedAnswer(std::span<const std::vector<float>> embeddings) {
  std::string text = "[";
  reserve(text, countValues(embeddings));
  for (size_t i = 0; i < embeddings.size(); ++i) {
    if (!isFinite(embeddings[i]))
      return noNumber();
    text += i > 0 ? "," : "";
    appendList(text, embeddings[i]);
  }
  text += ']';
  return text;
}

Result<std::string>
sandwich::teiEmbedAllAnswer(std::span<const TokenEmbeddings> inputs) {
  size_t values = 0;
  for (const TokenEmbeddings &input : inputs)
    values += input.values.size();
  std::string text = "[";
  reserve(text, values);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<const float> all = inputs[i].values;
    const uint64_t dimensions = inputs[i].dimensions;
    if (dimensions == 0 || all.size() % dimensions != 0)
      return makeError(ErrorKind::Internal, "an input has ", all.size(),
                       " values, which are no embeddings of ", dimensions);
    if (!isFinite(all))
      return noNumber();
    text += i > 0 ? ",[" : "[";
    for (size_t begin = 0; begin < all.size(); begin += dimensions) {
      text += begin > 0 ? "," : "";
      appendList(text, all.subspan(begin, dimensions));
    }
    text += ']';
  }
  text += ']';
  return text;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

static float sigmoid(float score) {
  return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(score))));
}

Result<std::vector<RankedDocument>>
sandwich::rankDocuments(const RerankRequest &request,
                        std::span<const float> scores) {
  if (scores.size() != request.documents.size())
    return makeError(ErrorKind::Internal, "there are ", scores.size(),
                     " scores of ", request.documents.size(), " documents");
  if (!isFinite(scores))
    return noNumber();
  std::vector<RankedDocument> ranks;
  ranks.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    ranks.push_back({i, scores[i]});
  // Before the sigmoid, which makes high scores the same.
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           &RankedDocument::score);
  ranks.resize(std::min(ranks.size(), request.top));
  if (!request.rawScores)
    for (RankedDocument &rank : ranks)
      rank.score = sigmoid(rank.score);
  return ranks;
}

/// Whether the answer can be written.
static Status check(const RerankRequest &request,
                    std::span<const RankedDocument> ranks) {
  for (const RankedDocument &rank : ranks) {
    if (!std::isfinite(rank.score))
      return noNumber();
    if (rank.index >= request.documents.size())
      return makeError(ErrorKind::Internal, "there is no document ",
                       rank.index);
  }
  return {};
}

Result<std::string>
sandwich::rerankAnswer(const std::string &id, const std::string &model,
                       const RerankRequest &request,
                       std::span<const RankedDocument> ranks,
                       uint64_t promptTokens) {
  SANDWICH_RETURN_IF_ERROR(check(request, ranks));
  std::string text = R"({"id":)";
  appendString(text, id);
  text += R"(,"model":)";
  appendString(text, model);
  text += R"(,"results":[)";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i > 0 ? "," : "";
    text += R"({"index":)" + std::to_string(ranks[i].index) +
            R"(,"relevance_score":)";
    append(text, ranks[i].score);
    if (request.returnDocuments) {
      text += R"(,"document":{"text":)";
      appendString(text, request.documents[ranks[i].index]);
      text += '}';
    }
    text += '}';
  }
  text += "],";
  appendUsage(text, promptTokens);
  text += '}';
  return text;
}

Result<std::string>
sandwich::teiRerankAnswer(const RerankRequest &request,
                          std::span<const RankedDocument> ranks) {
  SANDWICH_RETURN_IF_ERROR(check(request, ranks));
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i > 0 ? "," : "";
    text += R"({"index":)" + std::to_string(ranks[i].index);
    if (request.returnDocuments) {
      text += R"(,"text":)";
      appendString(text, request.documents[ranks[i].index]);
    }
    text += R"(,"score":)";
    append(text, ranks[i].score);
    text += '}';
  }
  text += ']';
  return text;
}

float sandwich::cosineSimilarity(std::span<const float> left,
                                 std::span<const float> right) {
  double product = 0, leftSquares = 0, rightSquares = 0;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const double a = left[i], b = right[i];
    product += a * b;
    leftSquares += a * a;
    rightSquares += b * b;
  }
  const double lengths = std::sqrt(leftSquares) * std::sqrt(rightSquares);
  return lengths == 0 ? 0 : static_cast<float>(product / lengths);
}

Result<std::string>
sandwich::teiSimilarityAnswer(std::span<const float> similarities) {
  if (!isFinite(similarities))
    return noNumber();
  std::string text;
  appendList(text, similarities);
  return text;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

static Json modelType(const TeiInfo &info,
                      const EncoderCapabilities &capabilities) {
  if (capabilities.kind == EncoderCapabilities::Kind::Embedding)
    return {{"embedding", {{"pooling", info.pooling}}}};
  // A reranker is a classifier of one class.
  return {{"reranker",
           {{"id2label", {{"0", "LABEL_0"}}}, {"label2id", {{"LABEL_0", 0}}}}}};
}

Json sandwich::teiInfoAnswer(const TeiInfo &info,
                             const EncoderCapabilities &capabilities) {
  return {{"model_id", info.modelId},
          {"model_sha", info.modelSha ? Json(*info.modelSha) : Json()},
          {"model_dtype", info.dataType},
          {"served_model_name", info.servedModelName},
          {"model_type", modelType(info, capabilities)},
          {"max_concurrent_requests", info.maxConcurrentRequests},
          {"max_input_length", capabilities.maxInputTokens},
          {"max_batch_tokens", info.maxBatchTokens},
          {"max_batch_requests", Json()},
          {"max_client_batch_size", capabilities.maxInputs},
          {"auto_truncate", false},
          {"tokenization_workers", info.tokenizationWorkers},
          {"version", info.version},
          {"sha", Json()},
          {"docker_label", Json()}};
}
