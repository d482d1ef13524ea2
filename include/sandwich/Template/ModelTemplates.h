//===- ModelTemplates.h - The chat templates of a checkpoint ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TEMPLATE_MODELTEMPLATES_H
#define SANDWICH_TEMPLATE_MODELTEMPLATES_H

#include "sandwich/Template/ChatTemplate.h"

#include <optional>
#include <utility>

namespace sandwich {

/// The templates that a checkpoint has, by name, and the variables that go with
/// its tokenizer. Cheap to copy.
class ModelTemplates {
public:
  /// Reads `chat_template` of a tokenizer_config.json, a template or a list of
  /// `name` and `template`, and its special tokens (`bos_token` and so on),
  /// each a string or an object with `content`. Where there is `templateText`,
  /// what a chat_template.jinja holds, it is the template named "default"
  /// instead, as in transformers. Errors name the field, or the template and
  /// its line; the default template must be one that is supported, of the
  /// others only those that are chosen.
  static Result<ModelTemplates>
  read(std::string_view configurationText,
       std::optional<std::string_view> templateText = std::nullopt,
       const TemplateLimits &limits = {});

  /// Whether there is any template.
  bool empty() const { return templates.empty(); }

  /// The names, in the order of the file.
  std::vector<std::string> names() const;

  /// The template that transformers would take: "tool_use" for requests with
  /// tools, where there is one, and else "default". Errors: there is none, or
  /// it is not supported.
  Result<ChatTemplate> choose(bool withTools) const;

  /// The text of the template that `choose` takes; empty where there is none.
  std::string_view sourceFor(bool withTools) const;

  /// The template of this name. Errors: there is none, or it is not supported.
  Result<ChatTemplate> named(std::string_view name) const;

  /// For `RenderOptions::trustedVariables`: the special tokens by their names.
  const Json &specialTokens() const { return tokens; }

private:
  Status add(std::string name, std::string_view source,
             const TemplateLimits &limits);

  struct Named {
    std::string name;
    std::string source;
    Result<ChatTemplate> parsed;
  };
  const Named *find(std::string_view name) const;
  const Named *findFor(bool withTools) const;

  std::vector<Named> templates;
  Json tokens = Json::object();
};

} // namespace sandwich

#endif // SANDWICH_TEMPLATE_MODELTEMPLATES_H
