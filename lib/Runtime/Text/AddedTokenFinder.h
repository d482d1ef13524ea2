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

#include "sandwich/Support/ByteRange.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::tokenizer {

/// A part of a text: an added token, or text between two of them.
struct TextPart {
  TextRange range;
  int32_t tokenId; ///< -1 for text between tokens
};

/// Where in a text special tokens that are written out are those tokens.
class SpecialTokenPlaces {
public:
  static SpecialTokenPlaces everywhere() { return SpecialTokenPlaces(true); }
  static SpecialTokenPlaces nowhere() { return SpecialTokenPlaces(false); }
  /// Within one of `ranges`, which are in order and outlive this.
  static SpecialTokenPlaces within(std::span<const ByteRange> ranges) {
    SpecialTokenPlaces places(false);
    places.ranges = ranges;
    return places;
  }

  /// How far a special token that begins at `offset` may reach; not beyond
  /// `offset` where none may begin.
  size_t reach(size_t offset) const;
  /// Where the next part of the text begins, behind `offset`, that may hold
  /// special tokens.
  size_t nextAfter(size_t offset) const;

private:
  explicit SpecialTokenPlaces(bool isEverywhere) : isEverywhere(isEverywhere) {}

  bool isEverywhere;
  std::span<const ByteRange> ranges;
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

  /// Cuts `text`, valid UTF-8, into tokens and what lies between them. A
  /// special token outside of `places` is text, and nothing shorter is found in
  /// it but what begins in the next of them.
  std::vector<TextPart> split(std::string_view text,
                              const SpecialTokenPlaces &places) const;

  /// Whether any of the tokens is special.
  bool hasSpecialTokens() const;

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
