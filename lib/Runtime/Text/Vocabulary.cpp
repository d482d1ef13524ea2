//===- Vocabulary.cpp - Tokens by id and ids by token ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vocabulary.h"

#include <bit>
#include <functional>
#include <limits>

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
Vocabulary::read(const JsonField &modelVocabulary,
                 const std::optional<JsonField> &addedTokens) {
  if (!modelVocabulary.json().is_object())
    return modelVocabulary.error("must be an object of tokens and their ids");
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
  SANDWICH_RETURN_IF_ERROR(vocabulary.readModelTokens(modelVocabulary));
  if (addedTokens)
    SANDWICH_RETURN_IF_ERROR(vocabulary.readAddedTokens(*addedTokens));
  while (!vocabulary.tokens.empty() && !vocabulary.tokens.back().data())
    vocabulary.tokens.pop_back();
  vocabulary.special.resize(vocabulary.tokens.size());
  for (const AddedToken &token : vocabulary.added)
    vocabulary.special[static_cast<size_t>(token.id)] = token.special;
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

Status Vocabulary::readModelTokens(const JsonField &field) {
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
    auto id = static_cast<int32_t>(value.get<uint64_t>());
    const char *begin = characters.data() + characters.size();
    characters.insert(characters.end(), token.begin(), token.end());
    std::string_view stored(begin, token.size());
    SANDWICH_RETURN_IF_ERROR(assign(id, stored, field.path()));
    modelIds.insert(id, tokens);
    modelTokens.push_back(id);
  }
  return {};
}

Status Vocabulary::readAddedTokens(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.elements());
  // The views below need the tokens to stay where they are.
  added.reserve(elements.size());
  for (const JsonField &element : elements) {
    AddedToken token;
    SANDWICH_ASSIGN_OR_RETURN(JsonField idField, element.member("id"));
    SANDWICH_ASSIGN_OR_RETURN(token.id, idField.tokenId(tokens.size()));
    SANDWICH_ASSIGN_OR_RETURN(token.content, element.stringMember("content"));
    SANDWICH_ASSIGN_OR_RETURN(token.special, element.booleanMember("special"));
    SANDWICH_ASSIGN_OR_RETURN(token.singleWord,
                              element.booleanMember("single_word", false));
    SANDWICH_ASSIGN_OR_RETURN(token.leftStrip,
                              element.booleanMember("lstrip", false));
    SANDWICH_ASSIGN_OR_RETURN(token.rightStrip,
                              element.booleanMember("rstrip", false));
    SANDWICH_ASSIGN_OR_RETURN(
        token.normalized, element.booleanMember("normalized", !token.special));
    if (token.content.empty())
      return element.error("has empty content");
    int32_t known = idOf(token.content);
    if (known >= 0 && known != token.id)
      return element.error("token ", inQuotes(token.content), " has id ",
                           token.id, " here and id ", known, " elsewhere");
    bool repeated = addedIds.contains(token.content);
    AddedToken &kept = added.emplace_back(std::move(token));
    SANDWICH_RETURN_IF_ERROR(assign(kept.id, kept.content, element.path()));
    if (repeated)
      return element.error("token ", inQuotes(kept.content), " is added twice");
    addedIds.emplace(kept.content, kept.id);
  }
  return {};
}
