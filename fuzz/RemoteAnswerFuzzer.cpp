//===- RemoteAnswerFuzzer.cpp - Any bytes of a server ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Remote/EmbeddingProtocol.h"

#include <cstdlib>
#include <string_view>

using namespace sandwich;

/// Whatever is accepted is what was asked for. The first two bytes are the API
/// and the queries with the dimensions.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const EmbeddingApi api = data[0] % 2 == 0
                               ? EmbeddingApi::OpenAI
                               : EmbeddingApi::TextEmbeddingsInference;
  const size_t queries = 1 + data[1] % 4;
  const uint32_t dimensions = 1 + data[1] / 4 % 4;
  const std::string_view text(reinterpret_cast<const char *>(data) + 2,
                              size - 2);
  const auto embeddings = parseEmbeddings(api, text, queries, dimensions);
  if (!embeddings) {
    if (embeddings.error().message.empty())
      std::abort();
  } else if (checkEmbeddings(*embeddings, queries, dimensions)) {
    std::abort();
  }
  if (const auto seconds = parseRetryAfter(text);
      seconds && !(*seconds >= 0 && *seconds <= 1e6))
    std::abort();
  return 0;
}
