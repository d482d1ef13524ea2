//===- EmbeddingProtocol.cpp - What servers are asked ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Remote/EmbeddingProtocol.h"

#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/Json.h"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

using namespace sandwich;

// Numbers of embeddings come as their bytes.
static_assert(std::endian::native == std::endian::little);

/// Of one number in an answer, with what separates it from the next; of what
/// else there is of each embedding; and of all else.
static constexpr size_t numberBytes = 48;
static constexpr size_t entryBytes = 1024;
static constexpr size_t envelopeBytes = 64 << 10;

/// Longer pauses are those of a server that has gone.
static constexpr double mostRetryAfterSeconds = 1e6;

std::string_view sandwich::pathOf(EmbeddingApi api) {
  return api == EmbeddingApi::OpenAI ? "/v1/embeddings" : "/embed";
}

static void appendTokens(std::string &text,
                         std::span<const DeviceQuery> batch) {
  text += '[';
  for (const DeviceQuery &query : batch) {
    text += text.back() == '[' ? "[" : ",[";
    char digits[16];
    for (const int32_t token : *query.tokens) {
      if (text.back() != '[')
        text += ',';
      const auto end = std::to_chars(digits, std::end(digits), token).ptr;
      text.append(digits, end);
    }
    text += ']';
  }
  text += ']';
}

std::string sandwich::makeEmbeddingRequest(EmbeddingApi api,
                                           RemoteEncoding encoding,
                                           std::string_view model,
                                           std::span<const DeviceQuery> batch) {
  std::string text;
  if (api == EmbeddingApi::TextEmbeddingsInference) {
    text = R"({"inputs":)";
    appendTokens(text, batch);
    // An embedding of a part of the text would be a wrong answer.
    return text + R"(,"truncate":false})";
  }
  text =
      R"({"model":)" +
      Json(model).dump(-1, ' ', false, Json::error_handler_t::replace) +
      R"(,"encoding_format":)" +
      (encoding == RemoteEncoding::Base64 ? R"("base64")" : R"("float")") +
      R"(,"input":)";
  appendTokens(text, batch);
  return text + '}';
}

std::optional<size_t> sandwich::mostAnswerBytes(size_t queries,
                                                uint32_t dimensions) {
  const auto numbers = checkedMultiply<size_t>(dimensions, numberBytes);
  if (!numbers)
    return std::nullopt;
  const auto entry = checkedAdd(*numbers, entryBytes);
  if (!entry)
    return std::nullopt;
  const auto entries = checkedMultiply(*entry, queries);
  if (!entries)
    return std::nullopt;
  return checkedAdd(*entries, envelopeBytes);
}

/// Messages name the place; the answer's own words are not repeated.
template <typename... Parts>
static Error wrong(size_t index, const Parts &...parts) {
  return makeError("embedding ", index, " ", parts...);
}

static Result<Embedding> readNumbers(const Json &json, size_t index,
                                     uint32_t dimensions) {
  if (json.size() != dimensions)
    return wrong(index, "has ", json.size(), " numbers instead of ",
                 dimensions);
  Embedding embedding;
  embedding.reserve(dimensions);
  for (const Json &number : json) {
    if (!number.is_number())
      return wrong(index, "holds what is no number");
    const auto wide = number.get<double>();
    // The conversion of larger ones is not defined.
    if (!(std::abs(wide) <= std::numeric_limits<float>::max()))
      return wrong(index, "has a number that is not finite");
    embedding.push_back(static_cast<float>(wide));
  }
  return embedding;
}

static Result<Embedding> readBase64(std::string_view text, size_t index,
                                    uint32_t dimensions) {
  const size_t bytes = size_t{dimensions} * sizeof(float);
  if (text.size() != divideUp<size_t>(bytes, 3) * 4)
    return wrong(index, "has ", text.size(), " characters, which are not ",
                 dimensions, " numbers");
  Embedding embedding(dimensions);
  size_t written = 0;
  const char *end = nullptr;
  const int status = ::sodium_base642bin(
      reinterpret_cast<unsigned char *>(embedding.data()), bytes, text.data(),
      text.size(), nullptr, &written, &end, sodium_base64_VARIANT_ORIGINAL);
  if (status != 0 || written != bytes || end != text.data() + text.size())
    return wrong(index, "is no base64");
  for (const float number : embedding)
    if (!std::isfinite(number))
      return wrong(index, "has a number that is not finite");
  return embedding;
}

static Result<Embedding> readEmbedding(const Json &json, size_t index,
                                       uint32_t dimensions) {
  if (json.is_array())
    return readNumbers(json, index, dimensions);
  if (const auto *text = json.get_ptr<const std::string *>())
    return readBase64(*text, index, dimensions);
  return wrong(index, "is neither a list of numbers nor base64");
}

static Status checkCount(const Json &list, const char *name, size_t queries) {
  if (!list.is_array())
    return makeError(name, " is no list");
  if (list.size() != queries)
    return makeError(name, " has ", list.size(), " embeddings of ", queries,
                     " queries");
  return {};
}

static Result<std::vector<Embedding>>
readOpenAI(const Json &json, size_t queries, uint32_t dimensions) {
  const auto data = json.is_object() ? json.find("data") : json.end();
  if (!json.is_object() || data == json.end())
    return makeError("the answer has no data");
  SANDWICH_RETURN_IF_ERROR(checkCount(*data, "data", queries));
  std::vector<Embedding> embeddings(queries);
  for (const Json &entry : *data) {
    if (!entry.is_object() || !entry.contains("index") ||
        !entry.contains("embedding"))
      return makeError("an entry of data has no index or no embedding");
    const Json &number = entry["index"];
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= queries)
      return makeError("an index of data is no whole number below ", queries);
    const auto index = number.get<size_t>();
    // As many as there are queries, and none twice: none is absent.
    if (!embeddings[index].empty())
      return makeError("index ", index, " of data comes twice");
    SANDWICH_ASSIGN_OR_RETURN(
        embeddings[index],
        readEmbedding(entry["embedding"], index, dimensions));
  }
  return embeddings;
}

static Result<std::vector<Embedding>> readTEI(const Json &json, size_t queries,
                                              uint32_t dimensions) {
  SANDWICH_RETURN_IF_ERROR(checkCount(json, "the answer", queries));
  std::vector<Embedding> embeddings;
  embeddings.reserve(queries);
  for (const Json &entry : json) {
    if (!entry.is_array())
      return wrong(embeddings.size(), "is no list of numbers");
    SANDWICH_ASSIGN_OR_RETURN(
        Embedding embedding, readNumbers(entry, embeddings.size(), dimensions));
    embeddings.push_back(std::move(embedding));
  }
  return embeddings;
}

Result<std::vector<Embedding>> sandwich::parseEmbeddings(EmbeddingApi api,
                                                         std::string_view text,
                                                         size_t queries,
                                                         uint32_t dimensions) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  return api == EmbeddingApi::OpenAI ? readOpenAI(json, queries, dimensions)
                                     : readTEI(json, queries, dimensions);
}

std::optional<double> sandwich::parseRetryAfter(std::string_view value) {
  uint64_t seconds = 0;
  const auto [rest, error] =
      std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || rest != value.data() + value.size())
    return std::nullopt;
  return std::min(static_cast<double>(seconds), mostRetryAfterSeconds);
}
