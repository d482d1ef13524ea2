//===- GgufTokenizer.cpp - The tokenizer in a GGUF file -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The metadata name a kind of tokenizer and have its tables; what else a
/// `tokenizer.json` says follows from the kind.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/GgufModel.h"

#include "ConfigFields.h"
#include "GgufKeys.h"
#include "sandwich/Support/ModelLimits.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>

using namespace sandwich;

/// Objects with as many members as a vocabulary has tokens, which `Json` would
/// look through one after another.
using Object = nlohmann::json;

/// Of a token, in bytes: pieces are cut everywhere below.
static constexpr size_t maxTokenBytes = 512;
/// Llama 2 has 61,249.
static constexpr size_t maxMerges = size_t(1) << 21;

static constexpr const char *preKey = "tokenizer.ggml.pre";
static constexpr std::string_view typesKey = "tokenizer.ggml.token_type";
static constexpr std::string_view scoresKey = "tokenizer.ggml.scores";
static constexpr std::string_view mergesKey = "tokenizer.ggml.merges";

/// What SentencePiece writes for a space.
static constexpr const char *visibleSpace = "\u2581";

namespace {

/// What `token_type` says of a token, as far as it matters.
enum TokenType { unknownToken = 2, controlToken = 3, userDefinedToken = 4 };

/// How a text is cut before its pieces are encoded, by the names of
/// `tokenizer.ggml.pre`.
struct PreTokenizerFacts {
  std::string_view name;
  /// Empty for that of GPT-2.
  const char *pattern;
  /// Each digit is a piece of its own, before all else.
  bool digits = false;
  bool composes = false;
  /// Whether a piece that is a token is that token, whatever merges say.
  bool ignoresMerges = false;
  /// Texts begin with `bos_token` where the file does not say.
  bool begins = false;
};

/// A token's text with what the metadata say of it.
struct Tokens {
  std::vector<std::string_view> texts;
  /// As many, or none.
  std::vector<double> types;

  bool has(size_t id, TokenType type) const {
    return !types.empty() && types[id] == static_cast<int>(type);
  }
};

} // namespace

static constexpr const char *llamaPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
static constexpr const char *qwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
static constexpr const char *tekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Llama 3's, under one of its names.
static constexpr PreTokenizerFacts likeLlama3(std::string_view name) {
  return {.name = name,
          .pattern = llamaPattern,
          .ignoresMerges = true,
          .begins = true};
}

static constexpr auto preTokenizers = std::to_array<PreTokenizerFacts>({
    likeLlama3("llama-bpe"),
    likeLlama3("llama3"),
    likeLlama3("llama-v3"),
    likeLlama3("falcon3"),
    {.name = "qwen2", .pattern = qwenPattern, .composes = true},
    {.name = "deepseek-r1-qwen", .pattern = qwenPattern},
    {.name = "gpt-2", .pattern = ""},
    {.name = "smollm", .pattern = "", .digits = true},
    {.name = "tekken",
     .pattern = tekkenPattern,
     .ignoresMerges = true,
     .begins = true},
});

static Error inKey(std::string_view key, const Error &error) {
  return error.inContext(std::string(key));
}

/// The list `key`; nothing where there is none.
static const GgufArray *findArray(const GgufContents &contents,
                                  std::string_view key) {
  auto entry = contents.arrays.find(key);
  return entry == contents.arrays.end() ? nullptr : &entry->second;
}

static Result<std::vector<std::string_view>>
readStrings(const GgufContents &contents, std::string_view key) {
  const GgufArray *array = findArray(contents, key);
  if (!array)
    return makeError(key, " is missing");
  auto strings = array->strings();
  if (!strings)
    return inKey(key, strings.error());
  for (size_t i = 0; i < strings->size(); ++i)
    if (findInvalidUtf8((*strings)[i]))
      return makeError(key, ": element ", i, " is not valid UTF-8");
  return strings;
}

/// The list of numbers `key`, one for each token; none where there is none.
static Result<std::vector<double>>
readNumbers(const GgufContents &contents, std::string_view key, size_t count) {
  const GgufArray *array = findArray(contents, key);
  if (!array)
    return std::vector<double>();
  auto numbers = array->numbers();
  if (!numbers)
    return inKey(key, numbers.error());
  if (numbers->size() != count)
    return makeError(key, " is of ", numbers->size(), " elements, but ",
                     tokensKey, " of ", count);
  return numbers;
}

static Result<Tokens> readTokens(const GgufContents &contents) {
  Tokens tokens;
  SANDWICH_ASSIGN_OR_RETURN(tokens.texts, readStrings(contents, tokensKey));
  if (tokens.texts.empty() || tokens.texts.size() > model_limits::vocabSize)
    return makeError(tokensKey, " is of ", tokens.texts.size(),
                     " elements; 1 to ", model_limits::vocabSize,
                     " are expected");
  for (size_t i = 0; i < tokens.texts.size(); ++i)
    if (tokens.texts[i].size() > maxTokenBytes)
      return makeError(tokensKey, ": element ", i, " has ",
                       tokens.texts[i].size(), " bytes; at most ",
                       maxTokenBytes, " are accepted");
  SANDWICH_ASSIGN_OR_RETURN(
      tokens.types, readNumbers(contents, typesKey, tokens.texts.size()));
  return tokens;
}

static Result<Object> makeVocabulary(const Tokens &tokens) {
  Object vocabulary = Object::object();
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    auto [entry, isNew] = vocabulary.emplace(std::string(tokens.texts[i]), i);
    if (!isNew)
      return makeError(tokensKey, ": elements ", *entry, " and ", i,
                       " are both ", quote(tokens.texts[i]));
  }
  return vocabulary;
}

static Object makeAddedTokens(const Tokens &tokens) {
  Object added = Object::array();
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const bool isUserDefined = tokens.has(i, userDefinedToken);
    if (!isUserDefined && !tokens.has(i, unknownToken) &&
        !tokens.has(i, controlToken))
      continue;
    added.push_back({{"id", i},
                     {"content", std::string(tokens.texts[i])},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", !isUserDefined}});
  }
  return added;
}

/// The pairs of tokens that are one, the best first. SentencePiece joins the
/// neighbours whose token has the highest score; this is what
/// `transformers` makes of that (`generate_merges`).
static Result<Object> makeMerges(const GgufContents &contents,
                                 const Tokens &tokens) {
  SANDWICH_ASSIGN_OR_RETURN(
      const std::vector<double> scores,
      readNumbers(contents, scoresKey, tokens.texts.size()));
  if (scores.empty())
    return makeError(scoresKey, " is missing");
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < tokens.texts.size(); ++i)
    ids.emplace(tokens.texts[i], i);
  struct Merge {
    size_t left, right;
    double score;
  };
  std::vector<Merge> merges;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string_view token = tokens.texts[i];
    const auto first = static_cast<ptrdiff_t>(merges.size());
    for (size_t cut = 1; cut < token.size(); ++cut) {
      auto left = ids.find(token.substr(0, cut));
      if (left == ids.end())
        continue;
      auto right = ids.find(token.substr(cut));
      if (right != ids.end())
        merges.push_back({left->second, right->second, scores[i]});
    }
    if (merges.size() > maxMerges)
      return makeError(tokensKey, " has more than ", maxMerges,
                       " pairs of tokens that are one");
    std::sort(merges.begin() + first, merges.end(),
              [](const Merge &one, const Merge &other) {
                return std::pair(one.left, one.right) <
                       std::pair(other.left, other.right);
              });
  }
  // A score that is no number has no place in an order.
  if (std::ranges::any_of(scores, [](double score) { return score != score; }))
    return makeError(scoresKey, " has a NaN");
  std::ranges::stable_sort(merges, std::ranges::greater(), &Merge::score);
  Object pairs = Object::array();
  for (const Merge &merge : merges)
    pairs.push_back({std::string(tokens.texts[merge.left]),
                     std::string(tokens.texts[merge.right])});
  return pairs;
}

static Result<Object> readMerges(const GgufContents &contents) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::string_view> lines,
                            readStrings(contents, mergesKey));
  Object merges = Object::array();
  for (std::string_view line : lines)
    merges.push_back(std::string(line));
  return merges;
}

static Object replaceAll(const char *from, const char *to) {
  return {
      {"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// The token that key `key` gives the number of or, where it is not there,
/// `absent`; nothing if there is none of that.
static Result<std::optional<std::string>>
findToken(const Fields &fields, const Tokens &tokens, const char *key,
          std::optional<int32_t> absent) {
  if (!fields.has(key))
    return absent && static_cast<size_t>(*absent) < tokens.texts.size()
               ? std::optional(std::string(tokens.texts[*absent]))
               : std::nullopt;
  SANDWICH_ASSIGN_OR_RETURN(
      int64_t id,
      fields.integer(key, 0, static_cast<int64_t>(tokens.texts.size()) - 1));
  return std::optional(std::string(tokens.texts[id]));
}

/// BPE over SentencePiece's pieces, with bytes for what has none (Llama 2).
static Result<Object> makeSentencePiece(const GgufContents &contents,
                                        const Fields &fields,
                                        const Tokens &tokens) {
  SANDWICH_ASSIGN_OR_RETURN(
      bool prefix, fields.booleanOr("tokenizer.ggml.add_space_prefix", true));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> unknown,
                            findToken(fields, tokens,
                                      "tokenizer.ggml.unknown_token_id",
                                      usualTokens.unknown));
  Object normalizers = Object::array();
  Object decoders = {replaceAll(visibleSpace, " "),
                     {{"type", "ByteFallback"}},
                     {{"type", "Fuse"}}};
  if (prefix) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", visibleSpace}});
    decoders.push_back(
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replaceAll(" ", visibleSpace));
  Object document;
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  document["pre_tokenizer"] = nullptr;
  document["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  Object &model = document["model"];
  model["unk_token"] = unknown ? Object(*unknown) : Object();
  model["fuse_unk"] = true;
  model["byte_fallback"] = true;
  SANDWICH_ASSIGN_OR_RETURN(model["merges"], makeMerges(contents, tokens));
  return document;
}

static Result<PreTokenizerFacts> readPreTokenizer(const Fields &fields) {
  const Json *name = fields.find(preKey);
  if (!name)
    return fields.missing(preKey);
  std::string known;
  for (const PreTokenizerFacts &facts : preTokenizers) {
    if (*name == std::string(facts.name))
      return facts;
    known += (known.empty() ? "" : ", ") + quote(facts.name);
  }
  return fields.refuse(preKey, ", which is not supported (", known, " are)");
}

/// BPE over bytes, after a pattern has cut the text (GPT-2, Llama 3, Qwen).
static Result<Object> makeByteLevel(const GgufContents &contents,
                                    const PreTokenizerFacts &facts) {
  const bool isGpt2 = std::string_view(facts.pattern).empty();
  Object steps = Object::array();
  if (facts.digits)
    steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!isGpt2)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", facts.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  const Object byteLevel = {{"type", "ByteLevel"},
                            {"add_prefix_space", false},
                            {"trim_offsets", true},
                            {"use_regex", isGpt2}};
  steps.push_back(byteLevel);
  Object document;
  document["normalizer"] =
      facts.composes ? Object({{"type", "NFC"}}) : Object();
  document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  document["decoder"] = byteLevel;
  Object &model = document["model"];
  model["unk_token"] = nullptr;
  model["fuse_unk"] = false;
  model["byte_fallback"] = false;
  model["ignore_merges"] = facts.ignoresMerges;
  SANDWICH_ASSIGN_OR_RETURN(model["merges"], readMerges(contents));
  return document;
}

/// What `tokenizer_config.json` would say; `begins` is whether texts begin with
/// `bos_token` where the metadata do not tell.
static Result<Object> makeConfiguration(const Fields &fields,
                                        const Tokens &tokens,
                                        bool isSentencePiece, bool begins) {
  Object configuration = Object::object();
  struct NamedToken {
    const char *key, *name;
    int32_t absent;
  };
  constexpr NamedToken named[] = {
      {"tokenizer.ggml.bos_token_id", "bos_token", usualTokens.bos},
      {"tokenizer.ggml.eos_token_id", "eos_token", usualTokens.eos},
  };
  for (const auto &[key, name, absent] : named) {
    SANDWICH_ASSIGN_OR_RETURN(
        std::optional<std::string> token,
        findToken(fields, tokens, key,
                  isSentencePiece ? std::optional(absent) : std::nullopt));
    if (token)
      configuration[name] = *token;
  }
  SANDWICH_ASSIGN_OR_RETURN(
      bool addsBeginning,
      fields.booleanOr("tokenizer.ggml.add_bos_token",
                       begins && configuration.contains("bos_token")));
  SANDWICH_ASSIGN_OR_RETURN(
      bool addsEnd, fields.booleanOr("tokenizer.ggml.add_eos_token", false));
  configuration["add_bos_token"] = addsBeginning;
  configuration["add_eos_token"] = addsEnd;
  constexpr const char *templateKey = "tokenizer.chat_template";
  if (const Json *text = fields.find(templateKey)) {
    if (!text->is_string())
      return fields.refuse(templateKey, "; a string is expected");
    const auto &source = text->get_ref<const std::string &>();
    if (findInvalidUtf8(source))
      return makeError(templateKey, " is not valid UTF-8");
    configuration["chat_template"] = source;
  }
  return configuration;
}

Result<std::optional<GgufTokenizer>>
sandwich::readGgufTokenizer(const GgufContents &contents) {
  const Fields fields(contents.values, "");
  const Json *kind = fields.find(tokenizerModelKey);
  if (!kind || *kind == "none" || *kind == "no_vocab")
    return std::optional<GgufTokenizer>();
  SANDWICH_ASSIGN_OR_RETURN(const Tokens tokens, readTokens(contents));
  SANDWICH_ASSIGN_OR_RETURN(Object vocabulary, makeVocabulary(tokens));
  Object document;
  bool begins = true;
  if (*kind == "llama") {
    SANDWICH_ASSIGN_OR_RETURN(document,
                              makeSentencePiece(contents, fields, tokens));
  } else if (*kind == "gpt2") {
    SANDWICH_ASSIGN_OR_RETURN(PreTokenizerFacts facts,
                              readPreTokenizer(fields));
    begins = facts.begins;
    SANDWICH_ASSIGN_OR_RETURN(document, makeByteLevel(contents, facts));
  } else {
    return fields.refuse(tokenizerModelKey,
                         ", which is not supported (\"llama\" and "
                         "\"gpt2\" are)");
  }
  document["version"] = "1.0";
  document["truncation"] = nullptr;
  document["padding"] = nullptr;
  document["post_processor"] = nullptr;
  document["added_tokens"] = makeAddedTokens(tokens);
  document["model"]["type"] = "BPE";
  document["model"]["vocab"] = std::move(vocabulary);
  SANDWICH_ASSIGN_OR_RETURN(
      Object configuration,
      makeConfiguration(fields, tokens, *kind == "llama", begins));
  return std::optional(GgufTokenizer{document.dump(), configuration.dump()});
}
