//===- Grammar.cpp - What texts a request allows --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Grammar/Grammar.h"

#include "CompileBudget.h"
#include "JsonTexts.h"
#include "Matcher.h"
#include "Pattern.h"
#include "SchemaCompiler.h"
#include "SourceText.h"

#include "sandwich/Support/Utf8.h"

#include <limits>
#include <list>
#include <optional>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

GrammarSource GrammarSource::jsonSchema(Json schema) {
  return {.kind = Kind::JsonSchema, .schema = std::move(schema)};
}

GrammarSource GrammarSource::jsonObject() { return {.kind = Kind::JsonObject}; }

GrammarSource GrammarSource::regularExpression(std::string pattern) {
  return {.kind = Kind::RegularExpression, .text = std::move(pattern)};
}

GrammarSource GrammarSource::oneOf(std::vector<std::string> choices) {
  return {.kind = Kind::Choices, .choices = std::move(choices)};
}

GrammarSource GrammarSource::literal(std::string text) {
  return {.kind = Kind::Text, .text = std::move(text)};
}

GrammarSource GrammarSource::tokenOf(int32_t token) {
  return {.kind = Kind::Token, .token = token};
}

GrammarSource GrammarSource::sequence(std::vector<GrammarSource> parts) {
  return {.kind = Kind::Sequence, .parts = std::move(parts)};
}

GrammarSource GrammarSource::alternatives(std::vector<GrammarSource> parts) {
  return {.kind = Kind::Alternatives, .parts = std::move(parts)};
}

namespace {

/// Compiles one source.
class SourceCompiler {
public:
  SourceCompiler(const TokenVocabulary::Index &vocabulary,
                 const GrammarOptions &options)
      : vocabulary(vocabulary), options(options), budget(mostSteps),
        pool(budget), texts(pool, options.whitespace),
        builder(pool, vocabulary.singleBytes) {
    builder.use(texts.string, vocabulary.string);
    builder.use(texts.plainString, vocabulary.plainString);
  }

  Result<Network> compile(const GrammarSource &source);

private:
  /// Takes less than a second, with sanitizers too.
  static constexpr uint64_t mostSteps = 1'500'000;
  /// Sequences and alternatives in each other.
  static constexpr unsigned mostNesting = 16;

  Status add(const GrammarSource &source, uint32_t from, uint32_t to,
             unsigned nesting);
  Status addParts(const GrammarSource &source, uint32_t from, uint32_t to,
                  unsigned nesting);
  Status addSchema(const Json &schema, uint32_t from, uint32_t to);
  Status addTexts(std::vector<std::string> choices, uint32_t from, uint32_t to);

  const TokenVocabulary::Index &vocabulary;
  const GrammarOptions &options;
  CompileBudget budget;
  ExpressionPool pool;
  JsonTexts texts;
  NetworkBuilder builder;
};

} // namespace

Status SourceCompiler::addTexts(std::vector<std::string> choices, uint32_t from,
                                uint32_t to) {
  for (const std::string &choice : choices)
    if (std::optional<size_t> offset = findInvalidUtf8(choice))
      return makeError(ErrorKind::InvalidArgument,
                       "a text of the grammar is not UTF-8 at byte ", *offset);
  builder.addText(from, pool.literals(std::move(choices)), to);
  return {};
}

Status SourceCompiler::addSchema(const Json &schema, uint32_t from,
                                 uint32_t to) {
  return SchemaCompiler(pool, builder, texts, options, schema)
      .compile(from, to);
}

Status SourceCompiler::addParts(const GrammarSource &source, uint32_t from,
                                uint32_t to, unsigned nesting) {
  if (nesting == mostNesting)
    return makeError(ErrorKind::InvalidArgument,
                     "the grammar is nested deeper than ", mostNesting);
  if (source.kind == GrammarSource::Kind::Alternatives) {
    for (const GrammarSource &part : source.parts)
      SANDWICH_RETURN_IF_ERROR(add(part, from, to, nesting + 1));
    return {};
  }
  for (const GrammarSource &part : source.parts) {
    const uint32_t next = builder.addNode();
    SANDWICH_RETURN_IF_ERROR(add(part, from, next, nesting + 1));
    from = next;
  }
  builder.addEmpty(from, to);
  return {};
}

Status SourceCompiler::add(const GrammarSource &source, uint32_t from,
                           uint32_t to, unsigned nesting) {
  static const Json anyObject = {{"type", "object"}};
  switch (source.kind) {
  case GrammarSource::Kind::JsonSchema:
    return addSchema(source.schema, from, to);
  case GrammarSource::Kind::JsonObject:
    return addSchema(anyObject, from, to);
  case GrammarSource::Kind::RegularExpression: {
    SANDWICH_ASSIGN_OR_RETURN(
        Expression pattern,
        parsePattern(pool, source.text, PatternScope::Whole, Encoding::Utf8));
    builder.addText(from, pattern, to);
    return {};
  }
  case GrammarSource::Kind::Choices:
    if (source.choices.empty())
      return makeError(ErrorKind::InvalidArgument, "there are no choices");
    return addTexts(source.choices, from, to);
  case GrammarSource::Kind::Text:
    return addTexts({source.text}, from, to);
  case GrammarSource::Kind::Token:
    if (source.token < 0 || size_t(source.token) >= vocabulary.modelTokens)
      return makeError(ErrorKind::InvalidArgument, "the token ", source.token,
                       " is not one of the model's ", vocabulary.modelTokens);
    builder.addToken(from, static_cast<uint32_t>(source.token), to);
    return {};
  case GrammarSource::Kind::Sequence:
  case GrammarSource::Kind::Alternatives:
    return addParts(source, from, to, nesting);
  }
  return makeError(ErrorKind::InvalidArgument, "an unknown kind of grammar");
}

Result<Network> SourceCompiler::compile(const GrammarSource &source) {
  const uint32_t start = builder.addNode(), end = builder.addNode();
  SANDWICH_RETURN_IF_ERROR(add(source, start, end, 0));
  return builder.finish(start, end, Grammar::mostDepth);
}

//===----------------------------------------------------------------------===//
// Grammar
//===----------------------------------------------------------------------===//

Grammar::Grammar(std::unique_ptr<const Parts> contents)
    : contents(std::move(contents)) {}

Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>>
Grammar::compile(const GrammarSource &source,
                 std::shared_ptr<const TokenVocabulary> vocabulary,
                 const GrammarOptions &options) {
  // Whatever it is, it is UTF-8 and not too long if it can be written.
  SANDWICH_ASSIGN_OR_RETURN(std::string text, textOf(source));
  if (text.size() > mostSourceBytes)
    return makeError(ErrorKind::InvalidArgument, "the grammar has ",
                     text.size(), " bytes; at most ", mostSourceBytes,
                     " are accepted");
  auto parts = std::make_unique<Parts>();
  parts->vocabulary = std::move(vocabulary);
  SourceCompiler compiler(parts->vocabulary->index(), options);
  SANDWICH_ASSIGN_OR_RETURN(parts->network, compiler.compile(source));
  return std::shared_ptr<const Grammar>(new Grammar(std::move(parts)));
}

std::unique_ptr<TokenConstraint>
Grammar::constrain(std::shared_ptr<const Grammar> grammar) {
  return std::make_unique<Matcher>(std::move(grammar));
}

size_t Grammar::bytes() const {
  return sizeof(*this) + contents->network.bytes();
}
