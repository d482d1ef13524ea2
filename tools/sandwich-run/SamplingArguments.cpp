//===- SamplingArguments.cpp - How tokens are chosen ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamplingArguments.h"

#include "Arguments.h"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

using namespace sandwich;

/// Whether all of `text` is a number, which is then in `number`.
template <typename T>
static bool parseWhole(const std::string &text, T &number) {
  const char *end = text.data() + text.size();
  auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && after == end;
}

/// "15043=-5", where minus infinity is "-inf".
static std::optional<std::pair<int32_t, float>>
parseBias(const std::string &text) {
  const size_t equals = text.find('=');
  if (equals == text.npos)
    return std::nullopt;
  std::pair<int32_t, float> bias;
  if (!parseWhole(text.substr(0, equals), bias.first) ||
      !parseWhole(text.substr(equals + 1), bias.second))
    return std::nullopt;
  return bias;
}

static void addPenalties(CLI::App &command, SamplingOptions &sampling) {
  command
      .add_option("--repetition-penalty", sampling.repetitionPenalty,
                  "Divides logits above 0 of the tokens in prompt and text by "
                  "it, and multiplies the others; 1: none")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", sampling.presencePenalty,
                  "Subtracted from the logits of the tokens in the text")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", sampling.frequencyPenalty,
                  "Subtracted from the logit of a token for each time that it "
                  "is in the text")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option_function<std::vector<std::string>>(
          "--logit-bias",
          [&sampling](const std::vector<std::string> &texts) {
            for (const std::string &text : texts) {
              const auto bias = parseBias(text);
              if (!bias)
                throw CLI::ValidationError(
                    "--logit-bias", "'" + text +
                                        "' is not a token id and a number "
                                        "such as 15043=-5");
              sampling.logitBias[bias->first] = bias->second;
            }
          },
          "Added to the logit of token ID, from -100 to 100; -inf bars the "
          "token. May be given several times")
      ->allow_extra_args(false)
      ->type_name("ID=X");
}

static void addDistribution(CLI::App &command, SamplingOptions &sampling) {
  command
      .add_option("--temperature", sampling.temperature,
                  "0 always takes the most probable token; higher is more "
                  "varied")
      ->type_name("T")
      ->capture_default_str();
  command
      .add_option("--min-p", sampling.minP,
                  "Chooses among tokens at least P times as probable as the "
                  "most probable one; 0: all")
      ->type_name("P")
      ->capture_default_str();
  command
      .add_option("--top-k", sampling.topK,
                  "Chooses among the K most probable tokens; 0: all")
      ->type_name("K")
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.topP,
                  "Chooses among the most probable tokens that together reach "
                  "probability P")
      ->type_name("P")
      ->capture_default_str();
  tool::addSeedOption(command, sampling.seed);
}

static void addStops(CLI::App &command, tool::SamplingArguments &arguments) {
  command
      .add_option("--stop", arguments.stop.strings,
                  "Ends the text before this string. May be given several "
                  "times")
      ->allow_extra_args(false)
      ->type_name("STRING");
  tool::addListOption(command, "--stop-token", arguments.stopTokens, 0,
                      "Tokens that end the text, which is without theirs");
  command
      .add_option("--min-tokens", arguments.sampling.minTokens,
                  "Does not end the text before it has so many tokens")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--ignore-eos", arguments.sampling.ignoreEndOfText,
                   "Goes on when the model ends its text");
}

void tool::addSamplingOptions(CLI::App &command, SamplingArguments &arguments) {
  addDistribution(command, arguments.sampling);
  addPenalties(command, arguments.sampling);
  addStops(command, arguments);
}

void tool::finishSamplingOptions(SamplingArguments &arguments) {
  for (uint64_t token : arguments.stopTokens) {
    if (token > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
      throw CLI::ValidationError("--stop-token",
                                 std::to_string(token) + " is no token id");
    arguments.stop.tokens.push_back(static_cast<int32_t>(token));
  }
  if (Status valid = arguments.sampling.validate(); !valid)
    throw CLI::ValidationError(valid.error().message);
  if (Status valid = arguments.stop.validate(); !valid)
    throw CLI::ValidationError(valid.error().message);
}
