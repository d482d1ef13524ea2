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

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sandwich::tokenizer {

/// What a special token that is written out in a text is.
enum class SpecialTokens {
  Found, ///< that token
  Text,  ///< characters, from which no special token is made
};

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

/// How a file lists the tokens of a model.
enum class VocabularyForm {
  Ids,    ///< an object of tokens and their ids
  Scores, ///< a list of tokens and their scores, in the order of their ids
};

/// The model's own vocabulary and the added tokens. An id is smaller than the
/// number of tokens in the files. Moves, never copies.
class Vocabulary {
public:
  Vocabulary() = default;
  Vocabulary(Vocabulary &&) = default;
  Vocabulary &operator=(Vocabulary &&) = default;

  /// Reads `model.vocab` and `added_tokens` (may be absent) of a
  /// tokenizer.json. Of equal tokens in a list the last counts. Errors: ids
  /// that are not whole numbers, are beyond the vocabulary, or stand for two
  /// tokens; a token with two ids.
  static Result<Vocabulary> read(const JsonField &modelVocabulary,
                                 VocabularyForm form,
                                 const std::optional<JsonField> &addedTokens);

  /// Adds the tokens of `added_tokens_decoder` of a tokenizer_config.json; of a
  /// token that is added already, its properties win. Errors: a token with two
  /// ids, an id of two tokens, or one that does not follow the others, which
  /// Hugging Face's library would not give the token.
  Status readAddedTokensDecoder(const JsonField &field);

  /// Makes the token that `field` names, a string or an object with `content`,
  /// an added and special one if it is not added yet, and gives one that is not
  /// known the next id, as Hugging Face's library does with what
  /// tokenizer_config.json calls `unk_token`, `pad_token` and so on.
  Status addSpecialToken(const JsonField &field);

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
    auto position = addedTokenOf.find(token);
    return position == addedTokenOf.end() ? idInModel(token)
                                          : position->second->id;
  }

  bool isSpecial(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() &&
           special[static_cast<size_t>(id)];
  }

  const std::deque<AddedToken> &addedTokens() const { return added; }

  /// The ids of the model's own tokens, in the order of the file.
  const std::vector<int32_t> &modelTokenIds() const { return modelTokens; }

  /// The ids of the model's tokens that stand for bytes, written `<0x0A>`; -1
  /// for bytes that have none.
  std::array<int32_t, 256> byteTokenIds() const;

private:
  Vocabulary(const Vocabulary &) = delete;

  Status readModelTokens(const JsonField &field);
  Status readScoredTokens(const JsonField &field);

  /// Gives the model the token `token` with `id`. Errors as `assign`.
  Status addToModel(int32_t id, std::string_view token, const JsonField &field);

  Status readAddedTokens(const JsonField &field);

  /// Gives `id` the text `token`. Errors: it has another.
  Status assign(int32_t id, std::string_view token, const std::string &path);

  /// Adds `token`, or gives an added one its properties. Errors as `assign`, or
  /// the token has another id.
  Status add(AddedToken token, const JsonField &field);

  /// The id that Hugging Face's library gives a new token.
  int32_t nextId() const;

  std::vector<char> characters; ///< of the model's tokens, one after the other
  std::vector<std::string_view> tokens;
  std::vector<int32_t> modelTokens;
  TokenIndex modelIds;
  std::deque<AddedToken> added; ///< never moved, as others point to them
  std::unordered_map<std::string_view, AddedToken *> addedTokenOf;
  std::vector<bool> special;
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_VOCABULARY_H
