//===- SimilarityRequest.h - POST /similarity -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_SIMILARITYREQUEST_H
#define SANDWICH_API_SIMILARITYREQUEST_H

#include "sandwich/Api/EncoderCapabilities.h"
#include "sandwich/Api/InputTruncation.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sandwich {

/// How similar sentences are to one, of text-embeddings-inference.
struct SimilarityRequest {
  /// Empty: the only one there is.
  std::string model;
  /// Not empty.
  std::string source;
  /// At least one and none of them empty.
  std::vector<std::string> sentences;
  /// What comes before every text.
  std::string prefix;
  InputTruncation truncation;
};

/// The source counts as an input too. Errors name the field.
std::variant<SimilarityRequest, ApiError>
parseTeiSimilarityRequest(std::string_view body, const EncoderLookup &lookup);

} // namespace sandwich

#endif // SANDWICH_API_SIMILARITYREQUEST_H
