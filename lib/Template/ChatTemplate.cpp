//===- ChatTemplate.cpp - Conversations to prompts ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Template/ChatTemplate.h"

#include "Evaluator.h"
#include "Parser.h"

using namespace sandwich;
using namespace sandwich::jinja;

struct ChatTemplate::Description {
  Syntax syntax;
  TemplateLimits limits;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Description> description)
    : description(std::move(description)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source,
                                         const TemplateLimits &limits) {
  auto description = std::make_shared<Description>();
  description->limits = limits;
  SANDWICH_ASSIGN_OR_RETURN(description->syntax, parseTemplate(source, limits));
  return ChatTemplate(std::move(description));
}

Result<RenderedText> ChatTemplate::render(const Json &variables,
                                          const RenderOptions &options) const {
  RenderState state(description->limits, options);
  return Evaluator(description->syntax, state).run(variables);
}
