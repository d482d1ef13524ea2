//===- Prompt.cpp - Texts, or their tokens --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/Prompt.h"

using namespace sandwich;

std::string PromptList::nameOf(size_t index) const {
  return isList ? indexed(field, index) : field;
}

static void addPrompt(ObjectReader &reader, const std::string &name,
                      const Json &value, std::vector<Prompt> &prompts) {
  if (value.is_string())
    prompts.emplace_back(value.get<std::string>());
  else if (!value.is_array())
    reader.refuseValue(name, value,
                       "a string, a list of strings, or token ids");
  else
    prompts.emplace_back(reader.tokenIds(name, value));
}

PromptList sandwich::readPrompts(ObjectReader &reader, std::string_view field,
                                 size_t most) {
  PromptList list;
  list.field = field;
  const Json *value = reader.find(field);
  if (!value) {
    reader.refuse(field, reader.pathOf(field) + " is missing");
    return list;
  }
  list.isList =
      value->is_array() && !value->empty() && !value->front().is_number();
  if (!list.isList) {
    addPrompt(reader, list.field, *value, list.prompts);
    return list;
  }
  if (value->size() > most) {
    reader.refuse(
        ApiError::tooManyInputs(reader.pathOf(field), value->size(), most));
    return list;
  }
  for (size_t i = 0; i < value->size() && !reader.hasError(); ++i)
    addPrompt(reader, list.nameOf(i), (*value)[i], list.prompts);
  return list;
}
