//===- Device.cpp - What computes embeddings ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Device.h"

#include <bit>
#include <utility>

using namespace sandwich;

std::string_view sandwich::nameOf(DeviceErrorKind kind) {
  switch (kind) {
  case DeviceErrorKind::Busy:
    return "busy";
  case DeviceErrorKind::Rejected:
    return "rejected";
  case DeviceErrorKind::Unreachable:
    return "unreachable";
  case DeviceErrorKind::TimedOut:
    return "timed out";
  case DeviceErrorKind::WrongAnswer:
    return "wrong answer";
  case DeviceErrorKind::Failed:
    return "failed";
  }
  return "failed";
}

Status DeviceFacts::validate() const {
  if (name.empty())
    return makeError(ErrorKind::InvalidArgument, "a device has no name");
  const auto fail = [this](const auto &...parts) {
    return makeError(ErrorKind::InvalidArgument, "device '", name, "' ",
                     parts...);
  };
  if (dimensions < 1 || dimensions > maxEmbeddingDimensions)
    return fail("has embeddings of ", dimensions,
                " numbers; these must be 1 to ", maxEmbeddingDimensions);
  if (batchTokens < 1)
    return fail("has batches of no tokens");
  if (batchQueries < 1 || batchQueries > maxQueueDepth)
    return fail("has batches of ", batchQueries,
                " queries; these must be 1 to ", maxQueueDepth);
  if (queryTokens < 1)
    return fail("takes no query of any length");
  return {};
}

/// Whether one of `numbers` is infinite or none. All are looked at, without a
/// branch, so that it is vector code: each answer passes here.
static bool hasNonFinite(std::span<const float> numbers) {
  constexpr uint32_t exponent = 0x7F800000;
  uint32_t found = 0;
  for (const float number : numbers)
    found |= (std::bit_cast<uint32_t>(number) & exponent) == exponent;
  return found != 0;
}

std::optional<DeviceError>
sandwich::checkEmbeddings(std::span<const Embedding> embeddings, size_t queries,
                          uint32_t dimensions) {
  const auto fail = [](const auto &...parts) {
    return DeviceError{DeviceErrorKind::WrongAnswer,
                       makeError(parts...).message};
  };
  if (embeddings.size() != queries)
    return fail("there are ", embeddings.size(), " embeddings of ", queries,
                " queries");
  for (size_t i = 0; i < queries; ++i) {
    if (embeddings[i].size() != dimensions)
      return fail("embedding ", i, " has ", embeddings[i].size(),
                  " numbers instead of ", dimensions);
    if (hasNonFinite(embeddings[i]))
      return fail("embedding ", i, " has a number that is not finite");
  }
  return std::nullopt;
}
