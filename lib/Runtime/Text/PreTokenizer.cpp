//===- PreTokenizer.cpp - Text cut into pieces for the model --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PreTokenizer.h"

#include "ByteAlphabet.h"
#include "Metaspace.h"
#include "Normalizer.h"
#include "Unicode.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::tokenizer;

/// The expression of GPT-2, for `ByteLevel` with `use_regex`.
static constexpr const char *gpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

static std::string_view pieceText(const PieceList &list,
                                  const TextRange &piece) {
  return std::string_view(list.text).substr(piece.begin, piece.size());
}

namespace {

/// What becomes of the places where a pattern matches.
enum class SplitBehavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
};

/// Cuts each piece where a pattern matches.
class Split final : public PreTokenizer {
public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}

  Status apply(PieceList &list, SearchBuffers &buffers) const override {
    std::vector<TextRange> matches;
    std::vector<Part> parts;
    std::vector<TextRange> pieces;
    for (const TextRange &piece : list.pieces) {
      std::string_view text = pieceText(list, piece);
      matches.clear();
      SANDWICH_RETURN_IF_ERROR(pattern.findAll(text, buffers, matches));
      parts.clear();
      size_t end = 0;
      for (const TextRange &match : matches) {
        if (match.begin > end)
          parts.push_back({{end, match.begin}, invert});
        parts.push_back({match, !invert});
        end = match.end;
      }
      if (end < text.size())
        parts.push_back({{end, text.size()}, invert});
      joinParts(parts);
      for (const Part &part : parts)
        if (part.range.size() > 0)
          pieces.push_back(
              {piece.begin + part.range.begin, piece.begin + part.range.end});
    }
    list.pieces = std::move(pieces);
    return {};
  }

private:
  /// A part of a piece that is a delimiter or lies between two.
  struct Part {
    TextRange range;
    bool delimiter;
  };

  /// Turns the parts of one piece into those `behavior` asks for.
  void joinParts(std::vector<Part> &parts) const {
    if (behavior == SplitBehavior::Isolated)
      return;
    if (behavior == SplitBehavior::Removed) {
      std::erase_if(parts, [](const Part &part) { return part.delimiter; });
      return;
    }
    bool backward = behavior == SplitBehavior::MergedWithNext;
    if (backward)
      std::reverse(parts.begin(), parts.end());
    size_t kept = 0;
    bool lastWasDelimiter = false;
    for (size_t i = 0; i != parts.size(); ++i) {
      Part part = parts[i];
      bool joins = behavior == SplitBehavior::Contiguous
                       ? part.delimiter == lastWasDelimiter
                       : part.delimiter && !lastWasDelimiter;
      lastWasDelimiter = part.delimiter;
      if (!joins || kept == 0)
        parts[kept++] = part;
      else if (backward)
        parts[kept - 1].range.begin = part.range.begin;
      else
        parts[kept - 1].range.end = part.range.end;
    }
    parts.resize(kept);
    if (backward)
      std::reverse(parts.begin(), parts.end());
  }

  Pattern pattern;
  SplitBehavior behavior;
  bool invert;
};

/// Puts a space before each piece that has none, where asked.
class PrefixSpace final : public PreTokenizer {
public:
  Status apply(PieceList &list, SearchBuffers &) const override {
    std::string text;
    text.reserve(list.text.size() + list.pieces.size());
    for (TextRange &piece : list.pieces) {
      std::string_view old = pieceText(list, piece);
      size_t begin = text.size();
      if (!old.starts_with(' '))
        text += ' ';
      text += old;
      piece = {begin, text.size()};
    }
    list.text = std::move(text);
    return {};
  }
};

/// Writes each byte as its character of the byte alphabet.
class BytesToCharacters final : public PreTokenizer {
public:
  Status apply(PieceList &list, SearchBuffers &) const override {
    std::string text;
    text.reserve(list.text.size() + list.text.size() / 4);
    for (TextRange &piece : list.pieces) {
      size_t begin = text.size();
      for (char byte : pieceText(list, piece)) {
        char32_t character = byteToCharacter[static_cast<unsigned char>(byte)];
        if (character < 0x80) {
          text += static_cast<char>(character);
        } else {
          text += static_cast<char>(0xC0 | character >> 6);
          text += static_cast<char>(0x80 | (character & 0x3F));
        }
      }
      piece = {begin, text.size()};
    }
    list.text = std::move(text);
    return {};
  }
};

/// SentencePiece's way: spaces become a visible mark, which also begins the
/// text or each piece.
class Metaspace final : public PreTokenizer {
public:
  explicit Metaspace(MetaspaceOptions options) : options(std::move(options)) {}

  Status apply(PieceList &list, SearchBuffers &) const override {
    using Prepend = MetaspaceOptions::Prepend;
    const std::string &mark = options.mark;
    std::string text;
    text.reserve(list.text.size() + list.text.size() / 2);
    bool first = list.beginsInput;
    for (TextRange &piece : list.pieces) {
      std::string_view old = pieceText(list, piece);
      size_t begin = text.size();
      bool prepends =
          options.prepend == Prepend::Always ||
          (options.prepend == Prepend::First && first && piece.begin == 0);
      first = false;
      if (prepends && !old.starts_with(' ') && !old.starts_with(mark))
        text += mark;
      for (char byte : old) {
        if (byte == ' ')
          text += mark;
        else
          text += byte;
      }
      piece = {begin, text.size()};
    }
    list.text = std::move(text);
    return {};
  }

private:
  MetaspaceOptions options;
};

} // namespace

static Result<SplitBehavior> readBehavior(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::string name, field.string());
  constexpr std::pair<const char *, SplitBehavior> behaviors[] = {
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous},
  };
  for (auto [known, behavior] : behaviors)
    if (name == known)
      return behavior;
  return field.unsupported();
}

static Status addSplit(const std::string &expression, const JsonField &field,
                       SplitBehavior behavior, bool invert,
                       PreTokenizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(
      Pattern pattern, Pattern::regularExpression(expression, field.path()));
  steps.push_back(
      std::make_unique<Split>(std::move(pattern), behavior, invert));
  return {};
}

static Status readSplit(const JsonField &field, PreTokenizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField patternField, field.member("pattern"));
  SANDWICH_ASSIGN_OR_RETURN(Pattern pattern, Pattern::read(patternField));
  SANDWICH_ASSIGN_OR_RETURN(JsonField behaviorField, field.member("behavior"));
  SANDWICH_ASSIGN_OR_RETURN(SplitBehavior behavior,
                            readBehavior(behaviorField));
  SANDWICH_ASSIGN_OR_RETURN(bool invert, field.booleanMember("invert", false));
  steps.push_back(
      std::make_unique<Split>(std::move(pattern), behavior, invert));
  return {};
}

static Status readByteLevel(const JsonField &field, PreTokenizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(bool prefixSpace,
                            field.booleanMember("add_prefix_space"));
  SANDWICH_ASSIGN_OR_RETURN(bool useExpression,
                            field.booleanMember("use_regex", true));
  if (prefixSpace)
    steps.push_back(std::make_unique<PrefixSpace>());
  if (useExpression)
    SANDWICH_RETURN_IF_ERROR(addSplit(gpt2Expression, field,
                                      SplitBehavior::Isolated,
                                      /*invert=*/false, steps));
  steps.push_back(std::make_unique<BytesToCharacters>());
  return {};
}

static Status readMetaspace(const JsonField &field, PreTokenizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(MetaspaceOptions options,
                            MetaspaceOptions::read(field));
  SANDWICH_ASSIGN_OR_RETURN(bool split, field.booleanMember("split", true));
  std::string mark = options.mark;
  steps.push_back(std::make_unique<Metaspace>(std::move(options)));
  if (split)
    steps.push_back(std::make_unique<Split>(Pattern::literal(mark),
                                            SplitBehavior::MergedWithNext,
                                            /*invert=*/false));
  return {};
}

static Status readSteps(const JsonField &field, PreTokenizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField typeField, field.member("type"));
  SANDWICH_ASSIGN_OR_RETURN(std::string type, typeField.string());
  if (type == "Sequence") {
    SANDWICH_ASSIGN_OR_RETURN(JsonField list, field.member("pretokenizers"));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
    for (const JsonField &element : elements)
      SANDWICH_RETURN_IF_ERROR(readSteps(element, steps));
    return {};
  }
  if (type == "Split")
    return readSplit(field, steps);
  if (type == "ByteLevel")
    return readByteLevel(field, steps);
  if (type == "Metaspace")
    return readMetaspace(field, steps);
  if (type == "Digits") {
    SANDWICH_ASSIGN_OR_RETURN(bool individual,
                              field.booleanMember("individual_digits"));
    return addSplit(R"(\p{N})", field,
                    individual ? SplitBehavior::Isolated
                               : SplitBehavior::Contiguous,
                    /*invert=*/false, steps);
  }
  if (type == "Punctuation") {
    SplitBehavior behavior = SplitBehavior::Isolated;
    SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> behaviorField,
                              field.optionalMember("behavior"));
    if (behaviorField) {
      SANDWICH_ASSIGN_OR_RETURN(behavior, readBehavior(*behaviorField));
    }
    return addSplit(R"([\p{P}$+<=>^`|~])", field, behavior,
                    /*invert=*/false, steps);
  }
  if (type == "Whitespace")
    // Words and what lies between words and spaces; a word is of what
    // isWordCharacter accepts.
    return addSplit(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)"
                    R"(|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\s]+)",
                    field, SplitBehavior::Removed, /*invert=*/true, steps);
  if (type == "WhitespaceSplit")
    return addSplit(R"(\s)", field, SplitBehavior::Removed,
                    /*invert=*/false, steps);
  if (type == "BertPreTokenizer") {
    SANDWICH_RETURN_IF_ERROR(addSplit(R"(\s+)", field, SplitBehavior::Removed,
                                      /*invert=*/false, steps));
    return addSplit(R"([\p{P}$+<=>^`|~])", field, SplitBehavior::Isolated,
                    /*invert=*/false, steps);
  }
  return typeField.unsupported();
}

Result<PreTokenizerSteps> tokenizer::readPreTokenizer(const JsonField &field) {
  PreTokenizerSteps steps;
  SANDWICH_RETURN_IF_ERROR(readSteps(field, steps));
  return steps;
}

Result<PieceList> tokenizer::preTokenize(const PreTokenizerSteps &steps,
                                         std::string text, bool beginsInput,
                                         SearchBuffers &buffers) {
  PieceList list{std::move(text), {}, beginsInput};
  if (list.text.empty())
    return list;
  list.pieces.push_back({0, list.text.size()});
  size_t maxBytes = maxRewrittenBytes(list.text.size());
  for (const auto &step : steps) {
    SANDWICH_RETURN_IF_ERROR(step->apply(list, buffers));
    // No step adds more than a few bytes for each byte, but many steps might.
    if (list.text.size() > maxBytes)
      return makeError("pre_tokenizer: the text grows beyond ", maxBytes,
                       " bytes");
  }
  return list;
}
