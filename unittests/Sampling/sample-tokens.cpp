//===- sample-tokens.cpp - The sampler for other programs -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads an array of cases from standard input and writes what the sampler
/// makes of each, both as JSON. reference_test.py says what is in them.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Sampling/Sampler.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

using namespace sandwich;

/// null, which JSON has instead, is minus infinity.
static float readFloat(const Json &value) {
  return value.is_null() ? -std::numeric_limits<float>::infinity()
                         : value.get<float>();
}

static SamplingOptions readOptions(const Json &given) {
  SamplingOptions options;
  options.minTokens = given.value("min_tokens", options.minTokens);
  for (const Json &bias : given.value("logit_bias", Json::array()))
    options.logitBias[bias[0].get<int32_t>()] = readFloat(bias[1]);
  options.repetitionPenalty = given.value("repetition_penalty", 1.0f);
  options.frequencyPenalty = given.value("frequency_penalty", 0.0f);
  options.presencePenalty = given.value("presence_penalty", 0.0f);
  options.temperature = given.value("temperature", 0.0f);
  options.minP = given.value("min_p", 0.0f);
  options.topK = given.value("top_k", 0u);
  options.topP = given.value("top_p", 1.0f);
  options.seed = given.value("seed", uint64_t(0));
  options.logProbabilities = 5;
  return options;
}

static Result<Json> run(const Json &given) {
  const SamplingOptions options = readOptions(given["options"]);
  SANDWICH_RETURN_IF_ERROR(options.validate());
  std::vector<float> logits;
  for (const Json &logit : given["logits"])
    logits.push_back(readFloat(logit));
  Sampler sampler(options, given["end_tokens"].get<std::vector<int32_t>>());
  sampler.observePrompt(given["prompt"].get<std::vector<int32_t>>());
  Json steps = Json::array();
  for (int step = 0; step < given["steps"].get<int>(); ++step) {
    SANDWICH_ASSIGN_OR_RETURN(SampledToken sampled, sampler.sample(logits));
    sampler.accept(sampled.token);
    Json top = Json::array();
    for (const TokenLogProbability &each : sampled.top)
      top.push_back({each.token, each.logProbability});
    steps.push_back({{"token", sampled.token},
                     {"log_probability", *sampled.logProbability},
                     {"top", top}});
  }
  return steps;
}

int main() try {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  Json results = Json::array();
  for (const Json &given : Json::parse(text)) {
    Result<Json> steps = run(given);
    if (!steps) {
      std::fprintf(stderr, "error: %s\n", steps.error().message.c_str());
      return 1;
    }
    results.push_back(*steps);
  }
  return writeStandardOutput(results.dump() + "\n") ? 0 : 1;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
