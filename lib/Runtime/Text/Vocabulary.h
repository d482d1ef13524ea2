//===- Vocabulary.h - Tokens by id and ids by token -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_VOCABULARY_H
#define SANDWICH_LIB_RUNTIME_TEXT_VOCABULARY_H

#include "JsonField.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sandwich::tokenizer {

/// A token that is found in the text before the model sees it.
struct AddedToken {
  int32_t id;
  std::string content;
  bool special;
  bool singleWord; ///< only where no word character touches it
  bool leftStrip;  ///< takes the whitespace before it along
  bool rightStrip; ///< takes the whitespace after it along
  bool normalized; ///< looked for in the normalized text
};

/// Ids by token. A flat table of hashes, because reading the merges looks up
/// three tokens for each, and chasing a list's nodes took half the time that
/// loading takes.
class TokenIndex {
public:
  /// Makes room for `count` tokens; call it once before `insert`.
  void reserve(size_t count);

  /// Adds the token `tokens[id]`, which is not there yet.
  void insert(int32_t id, const std::vector<std::string_view> &tokens);

  /// The id of `token`, or -1.
  int32_t find(std::string_view token,
               const std::vector<std::string_view> &tokens) const;

private:
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  std::vector<Slot> slots; ///< a power of two of them, or none
};

/// The model's own vocabulary and the added tokens. An id is smaller than the
/// number of tokens in the file. Moves, never copies.
class Vocabulary {
public:
  Vocabulary() = default;
  Vocabulary(Vocabulary &&) = default;
  Vocabulary &operator=(Vocabulary &&) = default;

  /// Reads `model.vocab` and `added_tokens` (may be absent) of a
  /// tokenizer.json. Errors: ids that are not whole numbers, are beyond the
  /// vocabulary, or stand for two tokens; a token with two ids.
  static Result<Vocabulary> read(const JsonField &modelVocabulary,
                                 const std::optional<JsonField> &addedTokens);

  /// One more than the largest id.
  size_t size() const { return tokens.size(); }

  /// The token with `id`, or nothing.
  std::optional<std::string_view> tokenOf(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= tokens.size() ||
        !tokens[static_cast<size_t>(id)].data())
      return std::nullopt;
    return tokens[static_cast<size_t>(id)];
  }

  /// The id of `token` in the model's own vocabulary, or -1.
  int32_t idInModel(std::string_view token) const {
    return modelIds.find(token, tokens);
  }

  /// The id of `token`, added ones included, or -1.
  int32_t idOf(std::string_view token) const {
    auto position = addedIds.find(token);
    return position == addedIds.end() ? idInModel(token) : position->second;
  }

  bool isSpecial(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() &&
           special[static_cast<size_t>(id)];
  }

  const std::vector<AddedToken> &addedTokens() const { return added; }

  /// The ids of the model's own tokens, in the order of the file.
  const std::vector<int32_t> &modelTokenIds() const { return modelTokens; }

private:
  Vocabulary(const Vocabulary &) = delete;

  Status readModelTokens(const JsonField &field);
  Status readAddedTokens(const JsonField &field);

  /// Gives `id` the text `token`. Errors: it has another.
  Status assign(int32_t id, std::string_view token, const std::string &path);

  std::vector<char> characters; ///< of the model's tokens, one after the other
  std::vector<std::string_view> tokens;
  std::vector<int32_t> modelTokens;
  TokenIndex modelIds;
  std::vector<AddedToken> added;
  std::unordered_map<std::string_view, int32_t> addedIds;
  std::vector<bool> special;
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_VOCABULARY_H
