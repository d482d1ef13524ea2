//===- PostProcessor.cpp - Special tokens around a sequence ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PostProcessor.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

/// Appends to `ids` those that `special_tokens` of the template `field` gives
/// the token `name`.
static Status readTemplateToken(const JsonField &field, const std::string &name,
                                const Vocabulary &vocabulary,
                                std::vector<int32_t> &ids) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField tokens, field.member("special_tokens"));
  SANDWICH_ASSIGN_OR_RETURN(JsonField token, tokens.member(name));
  SANDWICH_ASSIGN_OR_RETURN(JsonField list, token.member("ids"));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
  for (const JsonField &element : elements) {
    SANDWICH_ASSIGN_OR_RETURN(int32_t id, element.tokenId(vocabulary.size()));
    if (!vocabulary.tokenOf(id))
      return element.error("no token has the id ", id);
    ids.push_back(id);
  }
  return {};
}

static Result<PostProcessor> readTemplate(const JsonField &field,
                                          const Vocabulary &vocabulary) {
  PostProcessor read;
  SANDWICH_ASSIGN_OR_RETURN(JsonField single, field.member("single"));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, single.elements());
  bool hasText = false;
  for (const JsonField &element : elements) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> sequence,
                              element.optionalMember("Sequence"));
    if (sequence) {
      SANDWICH_ASSIGN_OR_RETURN(std::string id, sequence->stringMember("id"));
      if (id != "A" || hasText)
        return sequence->error("the text ", inQuotes(id),
                               " in this place is not supported");
      hasText = true;
      continue;
    }
    SANDWICH_ASSIGN_OR_RETURN(JsonField token, element.member("SpecialToken"));
    SANDWICH_ASSIGN_OR_RETURN(std::string name, token.stringMember("id"));
    SANDWICH_RETURN_IF_ERROR(readTemplateToken(
        field, name, vocabulary, hasText ? read.suffix : read.prefix));
  }
  if (!hasText)
    return single.error("has no place for the text");
  return read;
}

Result<PostProcessor> PostProcessor::read(const JsonField &field,
                                          const Vocabulary &vocabulary) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField typeField, field.member("type"));
  SANDWICH_ASSIGN_OR_RETURN(std::string type, typeField.string());
  if (type == "TemplateProcessing")
    return readTemplate(field, vocabulary);
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
    all.prefix.insert(all.prefix.begin(), next.prefix.begin(),
                      next.prefix.end());
    all.suffix.insert(all.suffix.end(), next.suffix.begin(), next.suffix.end());
  }
  return all;
}
