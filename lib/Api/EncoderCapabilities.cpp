//===- EncoderCapabilities.cpp - What an encoder takes --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/EncoderCapabilities.h"

#include "sandwich/Support/ModelLimits.h"

using namespace sandwich;

static Status inRange(const char *name, uint64_t value, uint64_t high) {
  if (value >= 1 && value <= high)
    return {};
  return makeError("the encoder's ", name, " is ", value,
                   "; it must be from 1 to ", high);
}

Status EncoderCapabilities::validate() const {
  // More than any body has room for.
  constexpr uint64_t mostInputs = uint64_t{1} << 31;
  SANDWICH_RETURN_IF_ERROR(
      inRange("longest input", maxInputTokens, model_limits::contextLength));
  SANDWICH_RETURN_IF_ERROR(
      inRange("vocabulary", vocabularySize, model_limits::vocabSize));
  SANDWICH_RETURN_IF_ERROR(
      inRange("number of inputs of a request", maxInputs, mostInputs));
  if (kind == Kind::Embedding)
    SANDWICH_RETURN_IF_ERROR(
        inRange("number of dimensions", dimensions, model_limits::hiddenSize));
  if (!defaultPrompt.empty() && !prompts.contains(defaultPrompt))
    return makeError("the encoder's default prompt '", defaultPrompt,
                     "' is not among its prompts");
  return {};
}
