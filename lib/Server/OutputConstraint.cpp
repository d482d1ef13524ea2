//===- OutputConstraint.cpp - What a text must be like, as a constraint ---===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OutputConstraint.h"

using namespace sandwich;

/// `param`: the field that the grammar is of.
static ConstraintOrError compile(const GrammarSource &source,
                                 const std::string &param,
                                 const LoadedModel &model) {
  if (!model.grammars)
    return ApiError::ofField(param, param + " cannot be used with '" +
                                        model.name +
                                        "': " + model.grammarProblem);
  Result<std::shared_ptr<const Grammar>> grammar = model.grammars->find(source);
  if (!grammar)
    return ApiError::ofField(param, param + ": " + grammar.error().message);
  return std::shared_ptr<const TokenConstraint>(
      Grammar::constrain(*std::move(grammar)));
}

/// What contradicts a constraint, which alone says when a text may end.
static std::optional<ApiError>
findContradiction(const GenerationParameters &parameters,
                  const std::string &param) {
  if (parameters.sampling.ignoreEndOfText)
    return ApiError::ofField("ignore_eos", "ignore_eos and " + param +
                                               " contradict each other");
  if (parameters.sampling.minTokens > 0)
    return ApiError::ofField("min_tokens", "min_tokens and " + param +
                                               " contradict each other");
  return std::nullopt;
}

ConstraintOrError
sandwich::constrainFormat(const GenerationParameters &parameters,
                          const LoadedModel &model) {
  const OutputFormat &format = parameters.format;
  if (format.kind == OutputFormat::Kind::Text)
    return std::shared_ptr<const TokenConstraint>();
  if (auto error = findContradiction(parameters, format.param))
    return *std::move(error);
  GrammarSource source;
  switch (format.kind) {
  case OutputFormat::Kind::Text:
  case OutputFormat::Kind::JsonObject:
    source = GrammarSource::jsonObject();
    break;
  case OutputFormat::Kind::JsonSchema:
    source = GrammarSource::jsonSchema(format.schema);
    break;
  case OutputFormat::Kind::RegularExpression:
    source = GrammarSource::regularExpression(format.pattern);
    break;
  case OutputFormat::Kind::Choice:
    source = GrammarSource::oneOf(format.choices);
    break;
  }
  return compile(source, format.param, model);
}

/// A tag around calls: the token of that name, or else its text.
static GrammarSource tagOf(const std::string &tag, const LoadedModel &model) {
  if (auto token = model.tokenizer()->idOf(tag))
    return GrammarSource::tokenOf(*token);
  return GrammarSource::literal(tag);
}

/// A call of the tool `name` as the model would write it.
static GrammarSource callOf(const std::string &name, const Json &parameters,
                            const ToolCallSyntax &syntax,
                            const LoadedModel &model) {
  std::vector<GrammarSource> parts;
  if (!syntax.open.empty())
    parts.push_back(tagOf(syntax.open, model));
  parts.push_back(GrammarSource::literal(
      syntax.padding + (syntax.isList ? "[" : "") + "{\"name\": " +
      Json(name).dump() + ", \"" + syntax.argumentsKey + "\": "));
  parts.push_back(GrammarSource::jsonSchema(parameters));
  parts.push_back(GrammarSource::literal(
      std::string("}") + (syntax.isList ? "]" : "") + syntax.padding));
  if (!syntax.close.empty())
    parts.push_back(tagOf(syntax.close, model));
  return GrammarSource::sequence(std::move(parts));
}

ConstraintOrError sandwich::constrainToolCalls(const ChatRequest &request,
                                               const ToolCallSyntax &syntax,
                                               const LoadedModel &model) {
  if (auto error = findContradiction(request.parameters, "tool_choice"))
    return *std::move(error);
  std::vector<GrammarSource> calls;
  for (const Json &tool : request.tools) {
    const auto name = tool["function"]["name"].get<std::string>();
    if (request.toolChoice.kind == ToolChoice::Kind::Function &&
        name != request.toolChoice.function)
      continue;
    calls.push_back(
        callOf(name, parametersOf(tool["function"]), syntax, model));
  }
  return compile(GrammarSource::alternatives(std::move(calls)), "tools", model);
}
