//===- PostProcessor.cpp - Special tokens around a sequence ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostProcessor.h"

#include <algorithm>
#include <limits>

using namespace sandwich;
using namespace sandwich::tokenizer;

using Kind = SequencePart::Kind;

/// The id that `field` holds, of a token that there is.
static Result<int32_t> readTokenId(const JsonField &field,
                                   const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(int32_t id, field.tokenId(vocabulary.size()));
  if (!vocabulary.tokenOf(id))
    return field.error("no token has the id ", id);
  return id;
}

/// The member `type_id`, 0 if it is absent.
static Result<int32_t> readTypeId(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> type,
                            field.optionalMember("type_id"));
  if (!type)
    return 0;
  SANDWICH_ASSIGN_OR_RETURN(uint64_t id, type->unsignedInteger());
  if (id > std::numeric_limits<int32_t>::max())
    return type->unsupported();
  return static_cast<int32_t>(id);
}

/// Reads the list `name` of the template `field`, in which each of the first
/// `textCount` texts stands once.
static Result<std::vector<SequencePart>>
readTemplate(const JsonField &field, const char *name, size_t textCount,
             const Vocabulary &vocabulary) {
  std::vector<SequencePart> parts;
  SANDWICH_ASSIGN_OR_RETURN(JsonField list, field.member(name));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
  bool isThere[2] = {false, false};
  for (const JsonField &element : elements) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> sequence,
                              element.optionalMember("Sequence"));
    if (sequence) {
      SANDWICH_ASSIGN_OR_RETURN(JsonField id, sequence->member("id"));
      const size_t text = id.json() == "A" ? 0 : id.json() == "B" ? 1 : 2;
      if (text >= textCount || isThere[text])
        return sequence->error("the text ", id.json(),
                               " in this place is not supported");
      isThere[text] = true;
      SANDWICH_ASSIGN_OR_RETURN(int32_t type, readTypeId(*sequence));
      parts.push_back({text == 0 ? Kind::First : Kind::Second, type});
      continue;
    }
    SANDWICH_ASSIGN_OR_RETURN(JsonField token, element.member("SpecialToken"));
    SANDWICH_ASSIGN_OR_RETURN(std::string id, token.stringMember("id"));
    SANDWICH_ASSIGN_OR_RETURN(int32_t type, readTypeId(token));
    SANDWICH_ASSIGN_OR_RETURN(JsonField known, field.member("special_tokens"));
    SANDWICH_ASSIGN_OR_RETURN(JsonField entry, known.member(id));
    SANDWICH_ASSIGN_OR_RETURN(JsonField idsField, entry.member("ids"));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> ids, idsField.elements());
    for (const JsonField &each : ids) {
      SANDWICH_ASSIGN_OR_RETURN(int32_t tokenId, readTokenId(each, vocabulary));
      parts.push_back({Kind::SpecialToken, type, tokenId});
    }
  }
  if (!isThere[0] || (textCount == 2 && !isThere[1]))
    return list.error("has no place for ",
                      textCount == 2 ? "both texts" : "the text");
  return parts;
}

static Result<PostProcessor> readTemplates(const JsonField &field,
                                           const Vocabulary &vocabulary) {
  PostProcessor read;
  SANDWICH_ASSIGN_OR_RETURN(read.single,
                            readTemplate(field, "single", 1, vocabulary));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> pair,
                            field.optionalMember("pair"));
  // Files of models that never see a pair have none, or an empty list.
  read.pair.clear();
  if (pair && pair->json() != Json::array()) {
    SANDWICH_ASSIGN_OR_RETURN(read.pair,
                              readTemplate(field, "pair", 2, vocabulary));
  }
  return read;
}

/// The id in the member `name` of `field`, which is a token and its id.
static Result<int32_t> readTokenMember(const JsonField &field, const char *name,
                                       const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField token, field.member(name));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> parts, token.elements());
  if (parts.size() != 2)
    return token.error("must be a token and its id");
  SANDWICH_RETURN_IF_ERROR(parts[0].string());
  return readTokenId(parts[1], vocabulary);
}

/// Reads `BertProcessing` or, with two separators between the texts of a pair
/// and no types, `RobertaProcessing`.
static Result<PostProcessor> readSeparators(const JsonField &field,
                                            bool isRoberta,
                                            const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(int32_t begin,
                            readTokenMember(field, "cls", vocabulary));
  SANDWICH_ASSIGN_OR_RETURN(int32_t end,
                            readTokenMember(field, "sep", vocabulary));
  const int32_t secondType = isRoberta ? 0 : 1;
  PostProcessor read;
  read.single = {{Kind::SpecialToken, 0, begin},
                 {Kind::First},
                 {Kind::SpecialToken, 0, end}};
  read.pair = read.single;
  if (isRoberta)
    read.pair.push_back({Kind::SpecialToken, secondType, end});
  read.pair.push_back({Kind::Second, secondType});
  read.pair.push_back({Kind::SpecialToken, secondType, end});
  return read;
}

Result<PostProcessor> PostProcessor::read(const JsonField &field,
                                          const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField typeField, field.member("type"));
  SANDWICH_ASSIGN_OR_RETURN(std::string type, typeField.string());
  if (type == "TemplateProcessing")
    return readTemplates(field, vocabulary);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return readSeparators(field, type == "RobertaProcessing", vocabulary);
  // It only moves offsets, of which we keep none.
  if (type == "ByteLevel")
    return PostProcessor();
  if (type != "Sequence")
    return typeField.unsupported();
  SANDWICH_ASSIGN_OR_RETURN(JsonField list, field.member("processors"));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
  PostProcessor all;
  for (const JsonField &element : elements) {
    SANDWICH_ASSIGN_OR_RETURN(PostProcessor next,
                              PostProcessor::read(element, vocabulary));
    if (!next.addsTokens())
      continue;
    if (all.addsTokens())
      return element.error("a second step that adds tokens is not supported");
    all = std::move(next);
  }
  return all;
}

void PostProcessor::setPrefix(std::optional<int32_t> id) {
  auto text = std::ranges::find(single, Kind::First, &SequencePart::kind);
  auto rest = single.erase(single.begin(), text);
  if (id)
    single.insert(rest, {Kind::SpecialToken, 0, *id});
  setPairFromSingle();
}

void PostProcessor::setSuffix(std::optional<int32_t> id) {
  auto text = std::ranges::find(single, Kind::First, &SequencePart::kind);
  single.erase(text + 1, single.end());
  if (id)
    single.push_back({Kind::SpecialToken, 0, *id});
  setPairFromSingle();
}

void PostProcessor::setPairFromSingle() {
  pair = single;
  for (SequencePart part : single) {
    if (part.kind == Kind::First)
      part.kind = Kind::Second;
    part.typeId = 1;
    pair.push_back(part);
  }
}
