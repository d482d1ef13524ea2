//===- LiveRequest.cpp - A request that a service has taken ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LiveRequest.h"

#include <exception>
#include <utility>

using namespace sandwich;

static Sampler makeSampler(const GenerationRequest &request, uint32_t index,
                           const StopConditions &stop) {
  SamplingOptions options = request.sampling;
  options.seed += index;
  Sampler sampler(options, stop.endingTokens());
  sampler.observePrompt(request.prompt);
  return sampler;
}

LiveText::LiveText(const GenerationRequest &request, uint32_t index,
                   const StopConditions &stop,
                   const std::optional<Tokenizer> &tokenizer)
    : index(index), ownSampler(makeSampler(request, index, stop)), stop(stop) {
  if (request.constraint)
    constraint = request.constraint->clone();
  if (!tokenizer)
    return;
  decoder.emplace(*tokenizer, request.skipSpecialTokens);
  decoder->skip(request.prompt);
}

/// What `use` returns, which uses a constraint: whatever that throws ends its
/// own request, and no other.
template <typename Use> static auto guarded(const Use &use) -> decltype(use()) {
  try {
    return use();
  } catch (const std::exception &exception) {
    return makeError(ErrorKind::Internal,
                     "the constraint failed: ", exception.what());
  }
}

Result<std::span<const uint64_t>> LiveText::allowedTokens() {
  using Allowed = std::span<const uint64_t>;
  if (!constraint)
    return Allowed();
  return guarded([&]() -> Result<Allowed> {
    const Allowed allowed = constraint->allowedTokens();
    if (allowed.empty())
      return makeError(ErrorKind::Internal, "the constraint allows no token");
    return allowed;
  });
}

Result<GeneratedToken> LiveText::follow(SampledToken sampled) {
  const int32_t token = sampled.token;
  ownSampler.accept(token);
  if (constraint)
    SANDWICH_RETURN_IF_ERROR(guarded([&]() -> Status {
      if (constraint->accept(token))
        return {};
      return makeError(ErrorKind::Internal, "the constraint refuses token ",
                       token, ", which it had allowed");
    }));
  GeneratedToken generated{index, std::move(sampled), {}, {}};
  StopConditions::Step step =
      stop.addToken(token, decoder ? decoder->decode(token) : std::string());
  generated.piece = std::move(step.text);
  if (step.stopped)
    generated.finish = *step.stopped == StopCause::EndToken
                           ? FinishReason::EndOfText
                           : FinishReason::Stopped;
  return generated;
}

void LiveText::finishPiece(FinishReason reason, std::string &piece) {
  // What follows a stop string is not told.
  if (reason == FinishReason::Stopped)
    return;
  if (reason != FinishReason::EndOfText)
    piece += stop.flush();
  if (decoder)
    piece += decoder->flush();
}
