//===- Calibration.cpp - Which channels matter ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Calibration/Calibration.h"

#include "sandwich/Calibration/FloatModel.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

Result<Tokenizer> sandwich::readTokenizer(const Checkpoint &checkpoint) {
  if (!checkpoint.tokenizer())
    return makeError(checkpoint.path(),
                     ": has no tokenizer.json, so that no text can be read");
  const CompanionText &tokenizer = *checkpoint.tokenizer();
  const std::optional<CompanionText> &config = checkpoint.tokenizerConfig();
  if (!tokenizer.text)
    return Tokenizer::fromFiles(
        tokenizer.path, config ? std::optional(config->path) : std::nullopt);
  Result<Tokenizer> read = Tokenizer::fromText(*tokenizer.text, config->text);
  return read ? read : read.error().inContext(tokenizer.path);
}

Result<std::vector<int32_t>>
sandwich::readTextTokens(const std::string &path, const Tokenizer &tokenizer) {
  SANDWICH_ASSIGN_OR_RETURN(const std::string text,
                            readTextFile(path, Tokenizer::maxTextBytes));
  if (text.empty())
    return makeError(path, ": is empty");
  Result<std::vector<int32_t>> ids = tokenizer.encode(text);
  if (!ids)
    return ids.error().inContext(path);
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<int32_t> added,
                            tokenizer.encode(""));
  if (ids->size() <= added.size())
    return makeError(path, ": has no tokens");
  return ids;
}

/// Of each channel.
static std::vector<float> meanSquares(const MatmulInput &input) {
  const auto channels = static_cast<size_t>(input.channels);
  const size_t rows = input.values.size() / channels;
  std::vector<double> sums(channels);
  for (size_t row = 0; row < rows; ++row)
    for (size_t channel = 0; channel < channels; ++channel) {
      const double value = input.values[row * channels + channel];
      sums[channel] += value * value;
    }
  std::vector<float> means(channels);
  for (size_t channel = 0; channel < channels; ++channel)
    means[channel] =
        static_cast<float>(sums[channel] / static_cast<double>(rows));
  return means;
}

Result<ChannelImportance>
sandwich::calibrate(const Checkpoint &checkpoint,
                    std::span<const int32_t> tokens,
                    const std::function<Status(double done)> &progress) {
  ChannelImportance importance;
  std::string infinite;
  FloatModelOptions options;
  options.progress = progress;
  options.observe = [&](const MatmulInput &input) {
    const std::vector<float> means = meanSquares(input);
    for (const std::string &tensor : input.tensors) {
      if (infinite.empty() && !std::ranges::all_of(means, [](float mean) {
            return std::isfinite(mean);
          }))
        infinite = tensor;
      importance[tensor] = means;
    }
  };
  SANDWICH_RETURN_IF_ERROR(runInFloats(checkpoint, tokens, options));
  if (!infinite.empty())
    return makeError("what tensor ", infinite,
                     " is multiplied with is not finite");
  return importance;
}
