//===- GenerationOptions.cpp - Requests as C asks for them ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationOptions.h"

#include "Calls.h"

using namespace sandwich;
using namespace sandwich::capi;

static Result<SamplingOptions>
readSampling(const sandwich_sampling_options *options) {
  SANDWICH_ASSIGN_OR_RETURN(const sandwich_sampling_options given,
                            readStructure(options, "sampling options"));
  SANDWICH_RETURN_IF_ERROR(
      requireArray(given.logit_bias, given.logit_bias_count, "logit_bias"));
  SamplingOptions sampling;
  sampling.minTokens = given.min_tokens;
  for (size_t i = 0; i < given.logit_bias_count; ++i) {
    const sandwich_logit_bias &each = given.logit_bias[i];
    if (!sampling.logitBias.emplace(each.token, each.bias).second)
      return makeError(ErrorKind::InvalidArgument, "logit_bias has token ",
                       each.token, " twice");
  }
  if (given.repetition_penalty != 0)
    sampling.repetitionPenalty = given.repetition_penalty;
  sampling.frequencyPenalty = given.frequency_penalty;
  sampling.presencePenalty = given.presence_penalty;
  sampling.temperature = given.temperature;
  sampling.minP = given.min_p;
  sampling.topK = given.top_k;
  if (given.top_p != 0)
    sampling.topP = given.top_p;
  sampling.seed = given.seed;
  if (given.log_probabilities)
    sampling.logProbabilities = given.top_log_probabilities;
  return sampling;
}

static Status readStop(const sandwich_stop_options *options,
                       GenerationRequest &request) {
  SANDWICH_ASSIGN_OR_RETURN(const sandwich_stop_options given,
                            readStructure(options, "stop options"));
  SANDWICH_RETURN_IF_ERROR(
      requireArray(given.strings, given.string_count, "strings"));
  SANDWICH_RETURN_IF_ERROR(
      requireArray(given.tokens, given.token_count, "tokens"));
  // Before they are copied.
  if (given.string_count > StopOptions::maxStrings)
    return makeError(ErrorKind::InvalidArgument, "there are ",
                     given.string_count, " stop strings; at most ",
                     StopOptions::maxStrings, " are taken");
  for (size_t i = 0; i < given.string_count; ++i) {
    SANDWICH_RETURN_IF_ERROR(require(given.strings[i], "a stop string"));
    request.stop.strings.emplace_back(given.strings[i]);
  }
  if (given.token_count > 0)
    request.stop.tokens.assign(given.tokens, given.tokens + given.token_count);
  request.stop.includeInText = given.include_in_text != 0;
  request.sampling.ignoreEndOfText = given.ignore_end_of_text != 0;
  return {};
}

Result<GenerationRequest>
capi::makeRequest(const sandwich_generation_options &options) {
  GenerationRequest request;
  if (options.max_tokens)
    request.maxTokens = options.max_tokens;
  if (options.continuations)
    request.continuations = options.continuations;
  request.priority = options.priority;
  if (options.timeout_seconds != 0)
    request.timeout = options.timeout_seconds;
  request.salt = options.prefix_salt;
  SANDWICH_ASSIGN_OR_RETURN(request.sampling, readSampling(options.sampling));
  SANDWICH_RETURN_IF_ERROR(readStop(options.stop, request));
  return request;
}
