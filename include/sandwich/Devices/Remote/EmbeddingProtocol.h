//===- EmbeddingProtocol.h - What servers are asked -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Requests for embeddings of token ids, and the answers, of two kinds of
/// servers: OpenAI's `/v1/embeddings` and `/embed` of Text Embeddings
/// Inference. Answers are not trusted: whatever they hold, they are the
/// embeddings that were asked for, or refused.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_REMOTE_EMBEDDINGPROTOCOL_H
#define SANDWICH_DEVICES_REMOTE_EMBEDDINGPROTOCOL_H

#include "sandwich/Devices/Device.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// What a server understands.
enum class EmbeddingApi {
  /// POST /v1/embeddings
  OpenAI,
  /// POST /embed
  TextEmbeddingsInference,
};

/// How the numbers of an answer are asked for; OpenAI's only. Servers may
/// answer the other way, and are understood.
enum class RemoteEncoding {
  Float,
  /// Of little-endian 32-bit floats: a third of the bytes, and exact.
  Base64,
};

/// "/v1/embeddings" or "/embed".
std::string_view pathOf(EmbeddingApi api);

/// The body of the request; `model` is OpenAI's only.
std::string makeEmbeddingRequest(EmbeddingApi api, RemoteEncoding encoding,
                                 std::string_view model,
                                 std::span<const DeviceQuery> batch);

/// The longest answer of `queries` embeddings of `dimensions` numbers that is
/// taken, in bytes. Nothing: the size overflows.
std::optional<size_t> mostAnswerBytes(size_t queries, uint32_t dimensions);

/// The embeddings in the order of the queries. Errors: what is no JSON, or not
/// of the API's shape; another count or dimension; an index that is absent,
/// twice or out of range; numbers that are not finite as `float`; base64 with
/// anything but its alphabet and its padding.
Result<std::vector<Embedding>> parseEmbeddings(EmbeddingApi api,
                                               std::string_view json,
                                               size_t queries,
                                               uint32_t dimensions);

/// The seconds of a Retry-After header. Nothing: it is a date, or nothing at
/// all.
std::optional<double> parseRetryAfter(std::string_view value);

} // namespace sandwich

#endif // SANDWICH_DEVICES_REMOTE_EMBEDDINGPROTOCOL_H
