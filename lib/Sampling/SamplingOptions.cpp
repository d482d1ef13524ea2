//===- SamplingOptions.cpp - How tokens are chosen ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/SamplingOptions.h"

#include <cmath>
#include <limits>

using namespace sandwich;

/// Whether `value` is in [-limit, limit], which NaN is not.
static bool isWithin(float value, float limit) {
  return std::abs(value) <= limit;
}

template <typename Value>
static Error outOfRange(const char *field, Value value, const char *range) {
  return makeError(ErrorKind::InvalidArgument, field, " is ", value,
                   "; it must be ", range);
}

static Status checkLogitBias(const std::map<int32_t, float> &logitBias) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto &[token, bias] : logitBias) {
    if (token < 0)
      return outOfRange("a token of logit-bias", token, "at least 0");
    if (!isWithin(bias, SamplingOptions::maxLogitBias) && bias != -infinity)
      return makeError(ErrorKind::InvalidArgument, "logit-bias of token ",
                       token, " is ", bias,
                       "; it must be from -100 to 100, or minus infinity");
  }
  return {};
}

Status SamplingOptions::validate() const {
  SANDWICH_RETURN_IF_ERROR(checkLogitBias(logitBias));
  if (!(repetitionPenalty > 0) || !std::isfinite(repetitionPenalty))
    return outOfRange("repetition-penalty", repetitionPenalty,
                      "a number above 0");
  if (!isWithin(frequencyPenalty, maxPenalty))
    return outOfRange("frequency-penalty", frequencyPenalty, "from -2 to 2");
  if (!isWithin(presencePenalty, maxPenalty))
    return outOfRange("presence-penalty", presencePenalty, "from -2 to 2");
  if (!(temperature >= 0) || !std::isfinite(temperature))
    return outOfRange("temperature", temperature, "a number of at least 0");
  if (!(minP >= 0 && minP <= 1))
    return outOfRange("min-p", minP, "from 0 to 1");
  if (!(topP > 0 && topP <= 1))
    return outOfRange("top-p", topP, "above 0 and at most 1");
  if (logProbabilities && *logProbabilities > maxLogProbabilities)
    return outOfRange("log-probabilities", *logProbabilities, "from 0 to 20");
  return {};
}

Status SamplingOptions::checkTokens(size_t vocabularySize) const {
  if (!logitBias.empty() &&
      static_cast<size_t>(logitBias.rbegin()->first) >= vocabularySize)
    return makeError(ErrorKind::InvalidArgument, "logit-bias names token ",
                     logitBias.rbegin()->first, "; the model has ",
                     vocabularySize);
  return {};
}
