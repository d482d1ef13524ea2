//===- TextEncoder.cpp - From texts to what a model encodes ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/TextEncoder.h"

#include "sandwich/Runtime/Text/ArtifactTokenizer.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

Result<TextEncoder> TextEncoder::create(const Artifact &artifact) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<Tokenizer> tokenizer,
                            loadTokenizer(artifact));
  if (!tokenizer)
    return makeError(
        artifact.path(),
        ": has no tokenizer; compile a checkpoint that has one, or "
        "give token ids");
  return TextEncoder(*std::move(tokenizer), artifact.manifest());
}

/// The text that stands in front.
Result<std::string_view>
TextEncoder::promptOf(const TextOptions &options) const {
  const std::string &name =
      options.prompt ? *options.prompt : encoding.default_prompt();
  if (name.empty())
    return std::string_view();
  auto found =
      std::ranges::find(encoding.prompts(), name, &proto::Prompt::name);
  if (found != encoding.prompts().end())
    return std::string_view(found->text());
  std::string known;
  for (const proto::Prompt &prompt : encoding.prompts())
    known += (known.empty() ? "" : ", ") + prompt.name();
  return makeError(ErrorKind::InvalidArgument, "the model has no prompt \"",
                   name, "\"; it has ", known.empty() ? "none" : known);
}

Result<TypedIds> TextEncoder::encode(std::string_view first,
                                     std::optional<std::string_view> second,
                                     const TextOptions &options) const {
  EncodingOptions encodingOptions;
  encodingOptions.addSpecialTokens = true;
  if (options.truncate)
    encodingOptions.truncation = Truncation{
        .maxTokens =
            std::min(options.maxTokens.value_or(contextLength), contextLength),
        .strategy = Truncation::Strategy::LongestFirst,
        .fromLeft = options.truncateLeft};
  std::string prompted;
  // Pairs are of models that score, which have no prompts.
  if (!second) {
    SANDWICH_ASSIGN_OR_RETURN(std::string_view prompt, promptOf(options));
    if (!prompt.empty()) {
      prompted = std::string(prompt) + std::string(first);
      first = prompted;
    }
  } else if (options.prompt && !options.prompt->empty()) {
    return makeError(ErrorKind::InvalidArgument,
                     "a pair of texts takes no prompt");
  }
  Result<TypedIds> ids =
      textTokenizer.encodeWithTypes(first, second, encodingOptions);
  if (!ids)
    return makeError(ErrorKind::InvalidArgument, ids.error().message);
  if (ids->ids.empty())
    return makeError(ErrorKind::InvalidArgument, "the text has no tokens");
  // What the model does not tell apart.
  if (encoding.token_types() < 2)
    std::ranges::fill(ids->typeIds, 0);
  if (ids->ids.size() > contextLength)
    return makeError(ErrorKind::ContextExceeded, "the text has ",
                     ids->ids.size(), " tokens, more than the model's ",
                     contextLength, "; shorten it, or have it truncated");
  return ids;
}

Result<TypedIds>
TextEncoder::encodeWhole(std::string_view first,
                         std::optional<std::string_view> second) const {
  Result<TypedIds> ids =
      textTokenizer.encodeWithTypes(first, second, {.addSpecialTokens = true});
  if (ids && encoding.token_types() < 2)
    std::ranges::fill(ids->typeIds, 0);
  return ids;
}

Result<std::string> TextEncoder::cutText(std::string_view text,
                                         uint64_t tokens) const {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            textTokenizer.encode(text));
  if (ids.size() <= tokens)
    return std::string(text);
  ids.resize(tokens);
  return textTokenizer.decode(ids, /*skipSpecialTokens=*/false);
}

void sandwich::normalizeLength(std::span<float> vector) {
  double squares = 0;
  for (float value : vector)
    squares += double(value) * value;
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (float &value : vector)
    value = static_cast<float>(value / length);
}
