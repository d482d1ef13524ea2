//===- LiveRequest.h - A request that a service has taken -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVICE_LIVEREQUEST_H
#define SANDWICH_LIB_SERVICE_LIVEREQUEST_H

#include "sandwich/Service/Service.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// One text of a request: what chooses its tokens, and what becomes of them.
class LiveText {
public:
  /// The text `index` of `request`. `stop` is that of all its texts, at their
  /// beginning.
  LiveText(const GenerationRequest &request, uint32_t index,
           const StopConditions &stop,
           const std::optional<Tokenizer> &tokenizer);

  Sampler &sampler() { return ownSampler; }

  bool isConstrained() const { return constraint != nullptr; }
  /// The tokens that may come next, for `Sampler::sample`: empty where all may.
  /// Error (Internal): the constraint fails or tells of no token.
  Result<std::span<const uint64_t>> allowedTokens();

  /// Goes on with `sampled`, and tells why the text ends with it, if it does
  /// and not because of its length. Error (Internal): the constraint refuses
  /// the token.
  Result<GeneratedToken> follow(SampledToken sampled);

  /// Adds what was held back to `piece`, the text of a token that the text ends
  /// with, as `reason` says.
  void finishPiece(FinishReason reason, std::string &piece);

private:
  uint32_t index;
  Sampler ownSampler;
  StopConditions stop;
  std::optional<StreamingDecoder> decoder;
  std::unique_ptr<TokenConstraint> constraint;
};

struct LiveRequest {
  GenerationCallbacks callbacks;
  std::vector<LiveText> texts;
  /// As `GenerationRequest::promptLogProbabilities`.
  uint32_t promptTop = 0;
  /// Why it ends, where the scheduler does not know.
  Status failure;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVICE_LIVEREQUEST_H
