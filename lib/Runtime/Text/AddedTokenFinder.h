//===- AddedTokenFinder.h - Added tokens found in a text --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_ADDEDTOKENFINDER_H
#define SANDWICH_LIB_RUNTIME_TEXT_ADDEDTOKENFINDER_H

#include "Pattern.h"
#include "Vocabulary.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::tokenizer {

/// A part of a text: an added token, or text between two of them.
struct TextPart {
  TextRange range;
  int32_t tokenId; ///< -1 for text between tokens
};

/// Finds a set of added tokens in texts, the leftmost first and of those the
/// longest.
class AddedTokenFinder {
public:
  /// Adds a token to look for, written `content` in the texts. The token must
  /// outlive this.
  void add(const AddedToken &token, std::string content);

  /// Sorts what was added; call it once before `split`.
  void finish();

  /// Cuts `text`, valid UTF-8, into tokens and what lies between them. Where
  /// special tokens are text, nothing shorter is found in them.
  std::vector<TextPart> split(std::string_view text,
                              SpecialTokens specialTokens) const;

private:
  /// The length of the longest token at the beginning of `text`, and which it
  /// is, or null.
  const std::pair<std::string, const AddedToken *> *
  longestAt(std::string_view text) const;

  std::vector<std::pair<std::string, const AddedToken *>> tokens; ///< sorted
  std::array<bool, 256> beginsToken{};
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_ADDEDTOKENFINDER_H
