//===- TokenVocabulary.h - What bytes a model's tokens are ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_GRAMMAR_TOKENVOCABULARY_H
#define SANDWICH_GRAMMAR_TOKENVOCABULARY_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// The tokens of a model as grammars see them, and what has been computed of
/// masks, for all grammars of the model. Immutable but for that; may be used by
/// any number of threads.
class TokenVocabulary {
public:
  /// What masks may occupy by default.
  static constexpr size_t usualMaskBytes = size_t(256) << 20;

  /// `tokens[i]` are the bytes that token i adds to a text, none for one that
  /// no grammar may use, such as a special token; `endTokens` end a text,
  /// whatever their bytes are. The model has `modelTokens` tokens, at least as
  /// many as `tokens`; those beyond are never allowed. Masks that have been
  /// computed are kept in at most `maskBytes`. Errors (`InvalidArgument`): no
  /// end token, one that the model does not have, fewer `modelTokens` than
  /// `tokens`, or a token of more than 65,535 bytes.
  static Result<std::shared_ptr<const TokenVocabulary>>
  create(std::vector<std::string> tokens, std::vector<int32_t> endTokens,
         size_t modelTokens, size_t maskBytes = usualMaskBytes);

  ~TokenVocabulary();

  /// Of the model.
  size_t size() const;

  /// What `token` adds to a text; nothing for one that no grammar may spell.
  std::string_view bytesOf(int32_t token) const;

  /// For this room.
  struct Index;
  const Index &index() const { return *contents; }

private:
  explicit TokenVocabulary(std::unique_ptr<const Index> contents);
  std::unique_ptr<const Index> contents;
};

} // namespace sandwich

#endif // SANDWICH_GRAMMAR_TOKENVOCABULARY_H
