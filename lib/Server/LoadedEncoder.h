//===- LoadedEncoder.h - A model of texts that is ready ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_LOADEDENCODER_H
#define SANDWICH_LIB_SERVER_LOADEDENCODER_H

#include "sandwich/Api/EncoderCapabilities.h"
#include "sandwich/Encoding/EmbeddingDevices.h"
#include "sandwich/Encoding/EncodingService.h"
#include "sandwich/Encoding/TextEncoder.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sandwich {

/// A model that embeds or ranks texts. Immutable but for its service.
struct LoadedEncoder {
  std::string name;
  /// Seconds since 1970.
  int64_t created = 0;
  /// As of `LoadedModel`.
  std::string fingerprint;
  EncoderCapabilities capabilities;
  std::unique_ptr<EncodingService> service;
  /// Null: there is this CPU alone. End first, as the CPU is one of them.
  std::unique_ptr<EmbeddingDevices> devices = {};
  /// Nothing: it takes tokens only.
  std::optional<TextEncoder> text = {};

  uint64_t contextLength() const { return capabilities.maxInputTokens; }
  const proto::Manifest &manifest() const {
    return service->engine().artifact().manifest();
  }
};

/// What may be asked of the model.
EncoderCapabilities capabilitiesOf(const proto::Manifest &manifest,
                                   uint64_t contextLength);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_LOADEDENCODER_H
