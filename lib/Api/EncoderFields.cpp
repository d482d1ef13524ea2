//===- EncoderFields.cpp - Fields of encoders' requests -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderFields.h"

#include "sandwich/Api/GenerationParameters.h"

using namespace sandwich;

const EncoderCapabilities *sandwich::readModel(ObjectReader &reader,
                                               const EncoderLookup &lookup,
                                               EncoderCapabilities::Kind kind,
                                               std::string &model) {
  model = reader.string("model", GenerationParameters::nameBytes).value_or("");
  if (reader.hasError())
    return nullptr;
  auto found = lookup(model);
  if (auto *error = std::get_if<ApiError>(&found)) {
    reader.refuse(std::move(*error));
    return nullptr;
  }
  const auto *encoder = std::get<const EncoderCapabilities *>(found);
  if (encoder->kind == kind)
    return encoder;
  reader.refuse("model", kind == EncoderCapabilities::Kind::Embedding
                             ? "this model is a reranker, and has no "
                               "embeddings; /rerank and /v1/rerank are for it"
                             : "this model is no reranker; /embed and "
                               "/v1/embeddings are for it");
  return nullptr;
}

static void readDirection(ObjectReader &reader, std::string_view name,
                          InputTruncation &truncation) {
  const Json *value = reader.find(name);
  if (!value)
    return;
  // text-embeddings-inference knows both spellings.
  if (*value == "left" || *value == "Left")
    truncation.direction = TruncationDirection::Left;
  else if (*value != "right" && *value != "Right")
    reader.refuseValue(name, *value, "\"left\" or \"right\"");
}

void sandwich::readTruncation(ObjectReader &reader,
                              InputTruncation &truncation) {
  truncation.allowed = reader.boolean("truncate").value_or(false);
  readDirection(reader, "truncation_direction", truncation);
}

void sandwich::readPromptTruncation(ObjectReader &reader,
                                    const EncoderCapabilities &capabilities,
                                    InputTruncation &truncation) {
  const std::string_view name = "truncate_prompt_tokens";
  // -1 stands for the model's limit.
  if (auto tokens = reader.integer(
          name, -1, static_cast<int64_t>(capabilities.maxInputTokens))) {
    truncation.allowed = true;
    if (*tokens == 0)
      reader.refuse(name,
                    reader.pathOf(name) + " is 0; it must be -1 or above 0");
    else if (*tokens > 0)
      truncation.maxTokens = static_cast<uint64_t>(*tokens);
  }
  readDirection(reader, "truncation_side", truncation);
}

/// A few of the names, as a message can hold no more.
static std::string namesOf(const EncoderCapabilities &capabilities) {
  constexpr size_t most = 8;
  std::string names;
  size_t count = 0;
  for (const auto &[name, text] : capabilities.prompts) {
    if (count++ == most)
      return names + ", ...";
    names += (names.empty() ? "" : ", ") + excerpt(Json(name));
  }
  return names.empty() ? "none" : names;
}

std::string
sandwich::readPromptPrefix(ObjectReader &reader,
                           const EncoderCapabilities &capabilities) {
  const Json *name = reader.find("prompt_name");
  if (name && !name->is_string()) {
    reader.refuseValue("prompt_name", *name, "a string");
    return "";
  }
  if (!name && capabilities.defaultPrompt.empty())
    return "";
  const auto prompt = capabilities.prompts.find(
      name ? name->get_ref<const std::string &>() : capabilities.defaultPrompt);
  if (prompt != capabilities.prompts.end())
    return prompt->second;
  if (name)
    reader.refuseValue("prompt_name", *name,
                       "the name of a prompt of this model, which has " +
                           namesOf(capabilities));
  return "";
}

std::string sandwich::readText(ObjectReader &reader, std::string_view name) {
  const Json *value = reader.find(name);
  if (!value)
    reader.refuse(name, reader.pathOf(name) + " is missing");
  else if (!value->is_string())
    reader.refuseValue(name, *value, "a string");
  else if (value->get_ref<const std::string &>().empty())
    reader.refuse(ApiError::emptyInput(reader.pathOf(name)));
  else
    return value->get<std::string>();
  return "";
}

const Json *sandwich::readNonEmptyList(ObjectReader &reader,
                                       std::string_view name, uint64_t most) {
  const Json *list = reader.list(name);
  if (!list)
    reader.refuse(name, reader.pathOf(name) + " is missing");
  else if (list->empty())
    reader.refuse(ApiError::emptyInput(reader.pathOf(name)));
  else if (list->size() > most)
    reader.refuse(
        ApiError::tooManyInputs(reader.pathOf(name), list->size(), most));
  else
    return list;
  return nullptr;
}

std::vector<std::string> sandwich::readTexts(ObjectReader &reader,
                                             std::string_view name,
                                             uint64_t most) {
  std::vector<std::string> texts;
  const Json *list = readNonEmptyList(reader, name, most);
  for (size_t i = 0; list && i < list->size(); ++i) {
    if (!(*list)[i].is_string()) {
      reader.refuseValue(indexed(name, i), (*list)[i], "a string");
      break;
    }
    texts.push_back((*list)[i].get<std::string>());
  }
  return texts;
}

void sandwich::ignoreCaller(ObjectReader &reader) {
  reader.ignore({"user", "metadata", "request_id", "safety_identifier"});
}
