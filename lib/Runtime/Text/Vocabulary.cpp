//===- Vocabulary.cpp - Tokens by id and ids by token ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vocabulary.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <limits>
#include <map>

using namespace sandwich;
using namespace sandwich::tokenizer;

static uint32_t hashOf(std::string_view token) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(token));
}

void TokenIndex::reserve(size_t count) {
  slots.assign(std::bit_ceil(2 * count + 1), Slot());
}

void TokenIndex::insert(int32_t id,
                        const std::vector<std::string_view> &tokens) {
  uint32_t hash = hashOf(tokens[static_cast<size_t>(id)]);
  size_t mask = slots.size() - 1;
  size_t i = hash & mask;
  while (slots[i].id >= 0)
    i = (i + 1) & mask;
  slots[i] = {hash, id};
}

int32_t TokenIndex::find(std::string_view token,
                         const std::vector<std::string_view> &tokens) const {
  if (slots.empty())
    return -1;
  uint32_t hash = hashOf(token);
  size_t mask = slots.size() - 1;
  for (size_t i = hash & mask; slots[i].id >= 0; i = (i + 1) & mask)
    if (slots[i].hash == hash &&
        tokens[static_cast<size_t>(slots[i].id)] == token)
      return slots[i].id;
  return -1;
}

Result<Vocabulary>
Vocabulary::read(const JsonField &modelVocabulary, VocabularyForm form,
                 const std::optional<JsonField> &addedTokens) {
  size_t count = modelVocabulary.json().size();
  if (addedTokens) {
    if (!addedTokens->json().is_array())
      return addedTokens->error("must be a list");
    count += addedTokens->json().size();
  }
  if (count > std::numeric_limits<int32_t>::max())
    return modelVocabulary.error("has ", count, " tokens, more than fit");
  Vocabulary vocabulary;
  vocabulary.tokens.resize(count);
  SANDWICH_RETURN_IF_ERROR(form == VocabularyForm::Scores
                               ? vocabulary.readScoredTokens(modelVocabulary)
                               : vocabulary.readModelTokens(modelVocabulary));
  if (addedTokens)
    SANDWICH_RETURN_IF_ERROR(vocabulary.readAddedTokens(*addedTokens));
  while (!vocabulary.tokens.empty() && !vocabulary.tokens.back().data())
    vocabulary.tokens.pop_back();
  return vocabulary;
}

Status Vocabulary::assign(int32_t id, std::string_view token,
                          const std::string &path) {
  std::string_view &place = tokens[static_cast<size_t>(id)];
  if (place.data() && place != token)
    return makeError(path, ": id ", id, " stands for both ", inQuotes(place),
                     " and ", inQuotes(token));
  place = token;
  return {};
}

Status Vocabulary::addToModel(int32_t id, std::string_view token,
                              const JsonField &field) {
  const char *begin = characters.data() + characters.size();
  characters.insert(characters.end(), token.begin(), token.end());
  std::string_view stored(begin, token.size());
  SANDWICH_RETURN_IF_ERROR(assign(id, stored, field.path()));
  if (idInModel(stored) < 0)
    modelIds.insert(id, tokens);
  modelTokens.push_back(id);
  return {};
}

Status Vocabulary::readScoredTokens(const JsonField &field) {
  if (!field.json().is_array())
    return field.error("must be a list of tokens and their scores");
  const auto &entries = field.json().get_ref<const Json::array_t &>();
  size_t bytes = 0;
  for (size_t i = 0; i != entries.size(); ++i) {
    const Json &entry = entries[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number())
      return makeError(field.path(), "[", i,
                       "]: must be a token and its score");
    bytes += entry[0].get_ref<const std::string &>().size();
  }
  // One more, so that an empty token too points into the storage.
  characters.reserve(bytes + 1);
  modelIds.reserve(entries.size());
  modelTokens.reserve(entries.size());
  for (size_t i = entries.size(); i-- > 0;)
    SANDWICH_RETURN_IF_ERROR(
        addToModel(static_cast<int32_t>(i),
                   entries[i][0].get_ref<const std::string &>(), field));
  std::reverse(modelTokens.begin(), modelTokens.end());
  return {};
}

Status Vocabulary::readModelTokens(const JsonField &field) {
  if (!field.json().is_object())
    return field.error("must be an object of tokens and their ids");
  const auto &members = field.json().get_ref<const Json::object_t &>();
  size_t bytes = 0;
  for (const auto &[token, id] : members)
    bytes += token.size();
  // One more, so that an empty token too points into the storage.
  characters.reserve(bytes + 1);
  modelIds.reserve(members.size());
  modelTokens.reserve(members.size());
  for (const auto &[token, value] : members) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= tokens.size()) {
      JsonField entry(value, field.path() + "[" + inQuotes(token) + "]");
      return entry.tokenId(tokens.size()).error();
    }
    SANDWICH_RETURN_IF_ERROR(
        addToModel(static_cast<int32_t>(value.get<uint64_t>()), token, field));
  }
  return {};
}

/// The properties of the added token that `field` describes; whether it is
/// special is `special` where the file does not say.
static Result<AddedToken> readAddedToken(const JsonField &field,
                                         std::optional<bool> special) {
  AddedToken token;
  SANDWICH_ASSIGN_OR_RETURN(token.content, field.stringMember("content"));
  SANDWICH_ASSIGN_OR_RETURN(token.special,
                            special ? field.booleanMember("special", *special)
                                    : field.booleanMember("special"));
  SANDWICH_ASSIGN_OR_RETURN(token.singleWord,
                            field.booleanMember("single_word", false));
  SANDWICH_ASSIGN_OR_RETURN(token.leftStrip,
                            field.booleanMember("lstrip", false));
  SANDWICH_ASSIGN_OR_RETURN(token.rightStrip,
                            field.booleanMember("rstrip", false));
  SANDWICH_ASSIGN_OR_RETURN(token.normalized,
                            field.booleanMember("normalized", !token.special));
  if (token.content.empty())
    return field.error("has empty content");
  return token;
}

Status Vocabulary::add(AddedToken token, const JsonField &field) {
  int32_t known = idOf(token.content);
  if (known >= 0 && known != token.id)
    return field.error("token ", inQuotes(token.content), " has id ", token.id,
                       " here and id ", known, " elsewhere");
  auto index = static_cast<size_t>(token.id);
  if (index >= tokens.size())
    tokens.resize(index + 1);
  if (index >= special.size())
    special.resize(index + 1);
  special[index] = token.special;
  if (auto position = addedTokenOf.find(token.content);
      position != addedTokenOf.end()) {
    // The content stays where it is, as views point into it.
    AddedToken &kept = *position->second;
    kept.special = token.special;
    kept.singleWord = token.singleWord;
    kept.leftStrip = token.leftStrip;
    kept.rightStrip = token.rightStrip;
    kept.normalized = token.normalized;
    return {};
  }
  AddedToken &kept = added.emplace_back(std::move(token));
  SANDWICH_RETURN_IF_ERROR(assign(kept.id, kept.content, field.path()));
  addedTokenOf.emplace(kept.content, &kept);
  return {};
}

Status Vocabulary::readAddedTokens(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.elements());
  for (const JsonField &element : elements) {
    SANDWICH_ASSIGN_OR_RETURN(JsonField idField, element.member("id"));
    SANDWICH_ASSIGN_OR_RETURN(int32_t id, idField.tokenId(tokens.size()));
    SANDWICH_ASSIGN_OR_RETURN(AddedToken token,
                              readAddedToken(element, std::nullopt));
    token.id = id;
    if (addedTokenOf.contains(token.content) && idOf(token.content) == token.id)
      return element.error("token ", inQuotes(token.content),
                           " is added twice");
    SANDWICH_RETURN_IF_ERROR(add(std::move(token), element));
  }
  return {};
}

std::array<int32_t, 256> Vocabulary::byteTokenIds() const {
  constexpr char digits[] = "0123456789ABCDEF";
  std::array<int32_t, 256> ids;
  for (size_t byte = 0; byte != ids.size(); ++byte) {
    const char token[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15],
                          '>'};
    ids[byte] = idInModel({token, sizeof(token)});
  }
  return ids;
}

int32_t Vocabulary::nextId() const {
  auto next = static_cast<int32_t>(modelTokens.size());
  for (const AddedToken &token : added)
    next = std::max(next, token.id + 1);
  return next;
}

Status Vocabulary::readAddedTokensDecoder(const JsonField &field) {
  if (!field.json().is_object())
    return field.error("must be an object of ids and their tokens");
  std::map<int32_t, const Json *> byId;
  for (const auto &[key, value] : field.json().items()) {
    int32_t id = -1;
    auto [end, failure] =
        std::from_chars(key.data(), key.data() + key.size(), id);
    if (failure != std::errc() || end != key.data() + key.size() || id < 0)
      return field.error(inQuotes(key), " is not a token id");
    byId.emplace(id, &value);
  }
  for (const auto &[id, value] : byId) {
    JsonField entry(*value, field.path() + "[\"" + std::to_string(id) + "\"]");
    SANDWICH_ASSIGN_OR_RETURN(AddedToken token, readAddedToken(entry, false));
    token.id = id;
    if (idOf(token.content) < 0 && !tokenOf(id) && id != nextId())
      return entry.error("token ", inQuotes(token.content),
                         " is not in tokenizer.json, and the next new token "
                         "has id ",
                         nextId());
    SANDWICH_RETURN_IF_ERROR(add(std::move(token), entry));
  }
  return {};
}

Status Vocabulary::addSpecialToken(const JsonField &field) {
  AddedToken token{};
  if (field.json().is_object()) {
    SANDWICH_ASSIGN_OR_RETURN(token, readAddedToken(field, true));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(token.content, field.string());
  }
  token.special = true;
  // Nothing can be written as an empty token.
  if (token.content.empty() || addedTokenOf.contains(token.content))
    return {};
  token.id = idInModel(token.content);
  if (token.id < 0)
    token.id = nextId();
  return add(std::move(token), field);
}
