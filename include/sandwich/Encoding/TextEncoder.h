//===- TextEncoder.h - From texts to what a model encodes -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What becomes of a text before the model sees it, and of its vector after: a
/// prompt in front, tokens, truncation; fewer dimensions, length one.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ENCODING_TEXTENCODER_H
#define SANDWICH_ENCODING_TEXTENCODER_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/Result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

struct TextOptions {
  /// The name of the prompt that stands in front; nothing: the model's default
  /// one, if it has one. Empty: none.
  std::optional<std::string> prompt = {};
  /// Shortens what is longer than the model's context, or than `maxTokens`,
  /// instead of refusing it.
  bool truncate = false;
  /// Less than the model's context.
  std::optional<uint64_t> maxTokens = {};
  /// Takes tokens away at the beginning of a text rather than at its end.
  bool truncateLeft = false;
};

/// Copies share one description; all members may be called from several threads
/// at once.
class TextEncoder {
public:
  /// Of an artifact of `ModelUse::Encode`. Error: it has no tokenizer, or one
  /// that cannot be read, whose tokens are not all in the model's vocabulary.
  static Result<TextEncoder> create(const Artifact &artifact);

  /// Of the tokenizer and the manifest of such an artifact.
  TextEncoder(Tokenizer tokenizer, const proto::Manifest &manifest)
      : textTokenizer(std::move(tokenizer)), encoding(manifest.encoding()),
        contextLength(manifest.model().context_length()) {}

  const Tokenizer &tokenizer() const { return textTokenizer; }

  /// The tokens of `first`, or of a pair. Errors: InvalidArgument for a prompt
  /// that the model does not have, for a prompt of a pair, and for what the
  /// tokenizer refuses; ContextExceeded, with both numbers, for more tokens
  /// than the model's context where nobody asked for truncation.
  Result<TypedIds> encode(std::string_view first,
                          std::optional<std::string_view> second,
                          const TextOptions &options) const;

  /// The same without a prompt, however many tokens there are.
  Result<TypedIds> encodeWhole(std::string_view first,
                               std::optional<std::string_view> second) const;

  /// The beginning of `text` that has at most `tokens` tokens.
  Result<std::string> cutText(std::string_view text, uint64_t tokens) const;

private:
  Result<std::string_view> promptOf(const TextOptions &options) const;

  Tokenizer textTokenizer;
  proto::Encoding encoding;
  uint64_t contextLength;
};

/// Makes `vector` one of length one, unless it is shorter than 1e-12.
void normalizeLength(std::span<float> vector);

} // namespace sandwich

#endif // SANDWICH_ENCODING_TEXTENCODER_H
