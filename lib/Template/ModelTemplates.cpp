//===- ModelTemplates.cpp - The chat templates of a checkpoint ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Template/ModelTemplates.h"

#include <algorithm>

using namespace sandwich;

static constexpr const char *configurationName = "tokenizer_config.json";

/// A special token as a string, of a string or an object with `content`; null
/// gives nothing. Error: anything else.
static Result<std::optional<std::string>> readToken(const std::string &name,
                                                    const Json &token) {
  if (token.is_null())
    return std::optional<std::string>();
  if (token.is_string())
    return std::optional(token.get<std::string>());
  if (token.is_object())
    if (auto content = token.find("content");
        content != token.end() && content->is_string())
      return std::optional(content->get<std::string>());
  return makeError(configurationName, ": ", name,
                   ": must be a string or an object with content");
}

/// The special tokens, which transformers gives to templates by these names.
static Result<Json> readSpecialTokens(const Json &configuration) {
  Json tokens = Json::object();
  for (const char *name : {"bos_token", "eos_token", "unk_token", "sep_token",
                           "pad_token", "cls_token", "mask_token"}) {
    auto found = configuration.find(name);
    if (found == configuration.end())
      continue;
    SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> token,
                              readToken(name, *found));
    if (token)
      tokens[name] = *std::move(token);
  }
  const std::string additional = "additional_special_tokens";
  auto found = configuration.find(additional);
  if (found == configuration.end() || found->is_null())
    return tokens;
  if (!found->is_array())
    return makeError(configurationName, ": ", additional, ": must be a list");
  tokens[additional] = Json::array();
  for (const Json &each : *found) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> token,
                              readToken(additional, each));
    if (token)
      tokens[additional].push_back(*std::move(token));
  }
  return tokens;
}

Status ModelTemplates::add(std::string name, std::string_view source,
                           const TemplateLimits &limits) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, limits);
  if (!parsed)
    parsed = parsed.error().inContext("the chat template '" + name + "'");
  if (!parsed && name == "default")
    return parsed.error();
  if (find(name))
    return makeError("there are two chat templates named '", name, "'");
  templates.push_back(
      {std::move(name), std::string(source), std::move(parsed)});
  return {};
}

/// The templates of the field `chat_template`, by name.
static Result<std::vector<std::pair<std::string, std::string>>>
readTemplateField(const Json &field) {
  std::vector<std::pair<std::string, std::string>> sources;
  if (field.is_null())
    return sources;
  if (field.is_string()) {
    sources.emplace_back("default", field.get<std::string>());
    return sources;
  }
  const Error wrong = makeError(configurationName,
                                ": chat_template: must be a template or a list "
                                "of objects with name and template");
  if (!field.is_array())
    return wrong;
  for (const Json &each : field) {
    if (!each.is_object())
      return wrong;
    auto name = each.find("name"), source = each.find("template");
    if (name == each.end() || source == each.end() || !name->is_string() ||
        !source->is_string())
      return wrong;
    sources.emplace_back(name->get<std::string>(), source->get<std::string>());
  }
  return sources;
}

Result<ModelTemplates>
ModelTemplates::read(std::string_view configurationText,
                     std::optional<std::string_view> templateText,
                     const TemplateLimits &limits) {
  Result<Json> configuration = parseJson(configurationText);
  if (!configuration)
    return configuration.error().inContext(configurationName);
  if (!configuration->is_object())
    return makeError(configurationName, ": must be an object");
  ModelTemplates result;
  SANDWICH_ASSIGN_OR_RETURN(result.tokens, readSpecialTokens(*configuration));
  if (templateText)
    SANDWICH_RETURN_IF_ERROR(result.add("default", *templateText, limits));
  auto field = configuration->find("chat_template");
  if (field == configuration->end())
    return result;
  SANDWICH_ASSIGN_OR_RETURN(auto sources, readTemplateField(*field));
  for (auto &[name, source] : sources)
    if (name != "default" || !templateText)
      SANDWICH_RETURN_IF_ERROR(result.add(name, source, limits));
  return result;
}

std::vector<std::string> ModelTemplates::names() const {
  std::vector<std::string> names;
  for (const Named &each : templates)
    names.push_back(each.name);
  return names;
}

const ModelTemplates::Named *ModelTemplates::find(std::string_view name) const {
  const auto found = std::ranges::find(templates, name, &Named::name);
  return found == templates.end() ? nullptr : &*found;
}

const ModelTemplates::Named *ModelTemplates::findFor(bool withTools) const {
  const Named *forTools = withTools ? find("tool_use") : nullptr;
  return forTools ? forTools : find("default");
}

Result<ChatTemplate> ModelTemplates::named(std::string_view name) const {
  if (const Named *found = find(name))
    return found->parsed;
  return makeError("the model has no chat template named '", name, "'");
}

Result<ChatTemplate> ModelTemplates::choose(bool withTools) const {
  if (templates.empty())
    return makeError("the model has no chat template");
  if (const Named *found = findFor(withTools))
    return found->parsed;
  return named("default");
}

std::string_view ModelTemplates::sourceFor(bool withTools) const {
  const Named *found = findFor(withTools);
  return found ? std::string_view(found->source) : std::string_view();
}
