//===- Grammar.h - What texts a request allows ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// JSON schemas, regular expressions and choices, compiled into what says after
/// each token which may come next. docs/RationaleGrammar.md lists the keywords
/// and patterns that are supported; all others that would restrict a text are
/// refused by name.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_GRAMMAR_GRAMMAR_H
#define SANDWICH_GRAMMAR_GRAMMAR_H

#include "sandwich/Grammar/TokenVocabulary.h"
#include "sandwich/Sampling/TokenConstraint.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sandwich {

/// What a grammar is compiled from.
struct GrammarSource {
  enum class Kind {
    /// Values of `schema`.
    JsonSchema,
    /// Any JSON object.
    JsonObject,
    /// Texts that `text`, a pattern, describes as a whole.
    RegularExpression,
    /// One of `choices`.
    Choices,
    /// `text` itself.
    Text,
    /// The token `token`, whatever its bytes are.
    Token,
    /// All of `parts`, one after the other.
    Sequence,
    /// One of `parts`.
    Alternatives,
  };

  Kind kind = Kind::JsonObject;
  Json schema = {};
  std::string text = {};
  std::vector<std::string> choices = {};
  int32_t token = -1;
  std::vector<GrammarSource> parts = {};

  static GrammarSource jsonSchema(Json schema);
  static GrammarSource jsonObject();
  static GrammarSource regularExpression(std::string pattern);
  static GrammarSource oneOf(std::vector<std::string> choices);
  static GrammarSource literal(std::string text);
  static GrammarSource tokenOf(int32_t token);
  static GrammarSource sequence(std::vector<GrammarSource> parts);
  static GrammarSource alternatives(std::vector<GrammarSource> parts);
};

/// What the author of a schema leaves open.
struct GrammarOptions {
  enum class Whitespace {
    None,
    /// At most one space after each comma and colon.
    Spaces,
    /// The same, or a line break with up to 64 spaces of indentation after
    /// commas and inside of brackets.
    Lines,
  };
  Whitespace whitespace = Whitespace::Spaces;
  /// Objects whose schema has `properties` and says nothing of others have no
  /// others. JSON schemas mean the opposite.
  bool closedObjects = false;
};

/// Texts of one source, compiled for one vocabulary. Immutable.
class Grammar {
public:
  /// A source of more bytes, written as JSON, is refused.
  static constexpr size_t mostSourceBytes = size_t(1) << 20;
  /// Arrays and objects are nested no deeper in texts.
  static constexpr uint32_t mostDepth = maxJsonDepth;

  /// Compiles `source`, in less than a second. Errors (`InvalidArgument`): what
  /// is not supported, by its name and place; what is too large or too complex;
  /// and where no text satisfies the grammar, or none that the tokens of
  /// `vocabulary` can spell byte by byte.
  static Result<std::shared_ptr<const Grammar>>
  compile(const GrammarSource &source,
          std::shared_ptr<const TokenVocabulary> vocabulary,
          const GrammarOptions &options = {});

  ~Grammar();

  /// The beginning of a text of `grammar`. It is never without an allowed
  /// token: one byte is always a token where a byte may come.
  static std::unique_ptr<TokenConstraint>
  constrain(std::shared_ptr<const Grammar> grammar);

  /// Memory, without masks.
  size_t bytes() const;

  /// For this room.
  struct Parts;
  const Parts &parts() const { return *contents; }

private:
  explicit Grammar(std::unique_ptr<const Parts> contents);
  std::unique_ptr<const Parts> contents;
};

} // namespace sandwich

#endif // SANDWICH_GRAMMAR_GRAMMAR_H
