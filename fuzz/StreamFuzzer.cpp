//===- StreamFuzzer.cpp - Any bytes as a streamed answer ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/ServerSentEvents.h"
#include "sandwich/LoadTest/StreamChunk.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace sandwich;

static constexpr size_t mostBytes = 4096;

/// Types and data of all events; the last entry tells whether it was refused.
static std::vector<std::string> readInPieces(std::string_view text,
                                             size_t pieceBytes) {
  ServerSentEvents events(mostBytes);
  std::vector<std::string> found;
  bool refused = false;
  while (!text.empty() && !refused) {
    const Status status = events.read(
        text.substr(0, pieceBytes), [&](const ServerSentEvent &event) {
          if (event.type.size() > mostBytes || event.data.size() > mostBytes)
            std::abort();
          found.emplace_back(event.type);
          found.emplace_back(event.data);
        });
    if (!status && status.error().message.empty())
      std::abort();
    refused = !status;
    text.remove_prefix(std::min(pieceBytes, text.size()));
  }
  found.emplace_back(refused ? "refused" : "read");
  return found;
}

/// However a stream is cut, it has the same events, none of which is larger
/// than allowed, and each of which is read or refused for a reason.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char *>(data) + 1,
                              size - 1);
  const std::vector<std::string> whole = readInPieces(text, size);
  if (readInPieces(text, 1) != whole ||
      readInPieces(text, 1 + data[0]) != whole)
    std::abort();
  for (const std::string &event : whole)
    if (const Result<StreamChunk> chunk = parseStreamChunk(event);
        !chunk && chunk.error().message.empty())
      std::abort();
  if (const Result<StreamChunk> chunk = parseStreamChunk(text);
      chunk && chunk->outputTokens.value_or(0) > uint64_t{1} << 40)
    std::abort();
  return 0;
}
