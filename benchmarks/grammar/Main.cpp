//===- Main.cpp - What it costs to keep texts to grammars -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times token masks. Each grammar is compiled for a vocabulary that has
/// computed nothing yet, and a document is followed token by token: once from
/// cold and then again. Random texts follow, each token drawn from those
/// allowed. A token's time is that of its mask and of accepting it, in seconds
/// of the processor, as other programs may run.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Grammar/Grammar.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {

struct Settings {
  std::string tokenizer;
  size_t vocabulary = 128256;
  size_t randomTokens = 20000;
};

/// The tokens of a model.
struct Model {
  std::vector<std::string> tokens;
  std::vector<int32_t> endTokens;
  std::optional<Tokenizer> tokenizer;
  /// Of a made-up one: ids by bytes.
  std::map<std::string, int32_t, std::less<>> ids;
};

/// A grammar, and a text of it.
struct Example {
  std::string name;
  GrammarSource source;
  std::string document;
};

struct Times {
  double sum = 0, most = 0;
  size_t tokens = 0;

  void add(double microseconds) {
    sum += microseconds;
    most = std::max(most, microseconds);
    ++tokens;
  }
  double average() const { return sum / double(std::max<size_t>(tokens, 1)); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static Result<Model> loadModel(const std::string &folder) {
  SANDWICH_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::fromFolder(folder));
  Model model;
  for (size_t id = 0; id < tokenizer.vocabularySize(); ++id)
    model.tokens.push_back(tokenizer.bytesOf(static_cast<int32_t>(id)));
  const std::optional<int32_t> end = tokenizer.endOfSequenceId();
  model.endTokens.push_back(
      end.value_or(static_cast<int32_t>(model.tokens.size() - 1)));
  model.tokenizer = std::move(tokenizer);
  return model;
}

/// Words of random letters, with and without a space before them, some with
/// punctuation around them, and all bytes.
static Model makeModel(size_t count) {
  std::mt19937_64 random(1);
  std::set<std::string> texts;
  for (int byte = 0; byte < 256; ++byte)
    texts.emplace(1, static_cast<char>(byte));
  for (const char *text : {"\":", "\",", "\": \"", "\", \"", "{\"", "\"}", "},",
                           "}}", "[{\"", "\"]", ", ", ": ", "true", "false"})
    texts.emplace(text);
  for (int number = 0; number < 1000; ++number)
    texts.insert(std::to_string(number));
  constexpr std::string_view letters = "etaoinshrdlcumwfgypbvkjxqz";
  constexpr std::string_view marks = "\"',.:;()[]{}<>=/_-";
  while (texts.size() + 1 < count) {
    std::string word(random() % 3 == 0 ? "" : " ");
    for (size_t length = 2 + random() % 8; length > 0; --length)
      // Small numbers, and so common letters, are the most.
      word += letters[(random() % letters.size()) * (random() % 100) / 100];
    if (random() % 12 == 0)
      word += marks[random() % marks.size()];
    texts.insert(std::move(word));
  }
  Model model;
  model.tokens.assign(texts.begin(), texts.end());
  for (size_t id = 0; id < model.tokens.size(); ++id)
    model.ids.emplace(model.tokens[id], static_cast<int32_t>(id));
  model.tokens.emplace_back("");
  model.endTokens.push_back(static_cast<int32_t>(model.tokens.size() - 1));
  return model;
}

static Result<std::vector<int32_t>> encode(const Model &model,
                                           std::string_view text) {
  if (model.tokenizer)
    return model.tokenizer->encode(text);
  std::vector<int32_t> ids;
  while (!text.empty()) {
    size_t length = std::min<size_t>(text.size(), 12);
    while (!model.ids.contains(text.substr(0, length)))
      --length;
    ids.push_back(model.ids.find(text.substr(0, length))->second);
    text.remove_prefix(length);
  }
  return ids;
}

//===----------------------------------------------------------------------===//
// Examples
//===----------------------------------------------------------------------===//

static Json parsed(std::string_view text) {
  Result<Json> json = parseJson(text);
  return json ? *json : Json();
}

static Example personExample() {
  Json schema = parsed(R"({
    "type": "object", "additionalProperties": false,
    "required": ["name", "age", "email", "address", "tags", "biography"],
    "properties": {
      "name": {"type": "string", "maxLength": 60},
      "age": {"type": "integer", "minimum": 0, "maximum": 150},
      "email": {"type": "string", "format": "email"},
      "address": {"type": "object", "additionalProperties": false,
        "required": ["street", "city", "country"],
        "properties": {
          "street": {"type": "string"}, "city": {"type": "string"},
          "country": {"enum": ["Germany", "France", "Italy", "Spain"]},
          "postcode": {"type": "string", "pattern": "^[0-9]{5}$"}}},
      "tags": {"type": "array", "maxItems": 8,
               "items": {"type": "string", "minLength": 1}},
      "biography": {"type": "string"}}})");
  std::string biography;
  for (int i = 0; i < 12; ++i)
    biography += "She went to the sea, and came back with a new name for it. ";
  const Json document = {{"name", "Erika Mustermann"},
                         {"age", 47},
                         {"email", "erika.mustermann@example.com"},
                         {"address",
                          {{"street", "Heidestra\u00dfe 17"},
                           {"city", "K\u00f6ln"},
                           {"country", "Germany"},
                           {"postcode", "51147"}}},
                         {"tags", {"sailing", "chess", "two small dogs"}},
                         {"biography", biography}};
  return {"person", GrammarSource::jsonSchema(std::move(schema)),
          document.dump()};
}

static Example ordersExample() {
  Json schema = parsed(R"({
    "type": "object", "required": ["orders"],
    "properties": {
      "orders": {"type": "array", "items": {"$ref": "#/$defs/order"}}},
    "$defs": {
      "order": {"type": "object", "required": ["id", "status", "lines"],
        "properties": {
          "id": {"type": "string", "format": "uuid"},
          "placed": {"type": "string", "format": "date-time"},
          "status": {"enum": ["open", "paid", "sent", "returned"]},
          "note": {"type": ["string", "null"]},
          "lines": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["article", "count", "price"],
            "properties": {
              "article": {"type": "string"},
              "count": {"type": "integer", "minimum": 1},
              "price": {"type": "number", "minimum": 0}}}}}}}})");
  Json orders = Json::array();
  for (int i = 0; i < 4; ++i) {
    Json lines = Json::array();
    for (int j = 0; j < 3; ++j)
      lines.push_back({{"article", "Screws, size " + std::to_string(i + j)},
                       {"count", 10 * i + j + 1},
                       {"price", 1.25 * j}});
    orders.push_back(
        {{"id", "123e4567-e89b-12d3-a456-42661417400" + std::to_string(i)},
         {"placed", "2024-02-29T12:34:56Z"},
         {"status", i % 2 ? "paid" : "returned"},
         {"note", i % 2 ? Json() : Json("fragile; call before")},
         {"lines", lines}});
  }
  return {"orders", GrammarSource::jsonSchema(std::move(schema)),
          Json{{"orders", orders}}.dump()};
}

static Json tree(int depth) {
  Json children = Json::array();
  for (int i = 0; depth > 0 && i < 2; ++i)
    children.push_back(tree(depth - 1));
  return {{"value", "node of depth " + std::to_string(depth)},
          {"children", children}};
}

static Example treeExample() {
  Json schema = parsed(R"({
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "object", "additionalProperties": false,
      "required": ["value", "children"],
      "properties": {
        "value": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "children": {"type": "array",
                     "items": {"$ref": "#/$defs/node"}}}}}})");
  return {"tree", GrammarSource::jsonSchema(std::move(schema)), tree(4).dump()};
}

static std::vector<Example> makeExamples() {
  std::vector<Example> examples = {personExample(), ordersExample(),
                                   treeExample()};
  examples.push_back(
      {"object", GrammarSource::jsonObject(), examples[1].document});
  examples.push_back(
      {"date",
       GrammarSource::regularExpression(
           "(\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01]),? ?)+"),
       "2024-02-29, 2023-12-31, 1999-01-01, 2000-10-10, 2010-07-04"});
  examples.push_back(
      {"email",
       GrammarSource::regularExpression(
           "([A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}; )+"),
       "erika.mustermann@example.com; webmaster@example.org; "
       "someone.else@mail.example.net; "});
  examples.push_back({"choice",
                      GrammarSource::oneOf({"positive", "negative", "neutral",
                                            "mixed", "not clear"}),
                      "not clear"});
  return examples;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// What this thread has run for, in seconds.
static double threadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static bool isAllowed(std::span<const uint64_t> mask, int32_t token) {
  return (mask[size_t(token) / 64] >> (size_t(token) % 64) & 1) != 0;
}

/// Follows `tokens` through `grammar`. Error: it does not allow one of them.
static Result<Times> follow(const std::shared_ptr<const Grammar> &grammar,
                            std::span<const int32_t> tokens) {
  const std::unique_ptr<TokenConstraint> constraint =
      Grammar::constrain(grammar);
  Times times;
  for (int32_t token : tokens) {
    const double start = threadSeconds();
    const bool allowed = isAllowed(constraint->allowedTokens(), token) &&
                         constraint->accept(token);
    times.add((threadSeconds() - start) * 1e6);
    if (!allowed)
      return makeError("token ", times.tokens - 1,
                       " of the document is not allowed");
  }
  return times;
}

/// One of the tokens of `mask`; every eighth time one of a single byte, so that
/// strings end.
static int32_t draw(std::span<const uint64_t> mask, const Model &model,
                    std::mt19937_64 &random) {
  std::vector<int32_t> tokens;
  for (size_t word = 0; word < mask.size(); ++word)
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1)
      tokens.push_back(
          static_cast<int32_t>(word * 64 + size_t(std::countr_zero(bits))));
  if (random() % 8 == 0) {
    std::vector<int32_t> few;
    for (int32_t token : tokens)
      if (model.tokens[size_t(token)].size() <= 1)
        few.push_back(token);
    if (!few.empty())
      return few[random() % few.size()];
  }
  return tokens.empty() ? -1 : tokens[random() % tokens.size()];
}

/// Random texts of `grammar`. Error: no token is allowed, or an allowed one is
/// not accepted.
static Result<Times> wander(const std::shared_ptr<const Grammar> &grammar,
                            const Model &model, size_t count) {
  std::mt19937_64 random(1);
  Times times;
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
  while (times.tokens < count) {
    double start = threadSeconds();
    const std::span<const uint64_t> mask = constraint->allowedTokens();
    double seconds = (threadSeconds() - start);
    const int32_t token = draw(mask, model, random);
    start = threadSeconds();
    if (token < 0 || !constraint->accept(token))
      return makeError("random text: token ", token, " is not accepted");
    times.add((seconds + (threadSeconds() - start)) * 1e6);
    if (std::ranges::find(model.endTokens, token) != model.endTokens.end())
      constraint = Grammar::constrain(grammar);
  }
  return times;
}

static Status measure(const Example &example, const Model &model,
                      const Settings &settings, std::string &report) {
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<const TokenVocabulary> vocabulary,
                            TokenVocabulary::create(model.tokens,
                                                    model.endTokens,
                                                    model.tokens.size()));
  const double start = threadSeconds();
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<const Grammar> grammar,
                            Grammar::compile(example.source, vocabulary));
  const double compiling = (threadSeconds() - start) * 1e3;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                            encode(model, example.document));
  tokens.push_back(model.endTokens.front());
  SANDWICH_ASSIGN_OR_RETURN(Times cold, follow(grammar, tokens));
  Times warm;
  for (int round = 0; round < 10; ++round) {
    SANDWICH_ASSIGN_OR_RETURN(Times again, follow(grammar, tokens));
    warm.sum += again.sum;
    warm.tokens += again.tokens;
    warm.most = std::max(warm.most, again.most);
  }
  SANDWICH_ASSIGN_OR_RETURN(Times random,
                            wander(grammar, model, settings.randomTokens));
  char line[200];
  std::snprintf(line, sizeof(line),
                "%-8s %9.2f %7zu %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n",
                example.name.c_str(), compiling, tokens.size(), cold.average(),
                cold.most, warm.average(), warm.most, random.average(),
                random.most);
  report += line;
  return {};
}

static Status run(const Settings &settings) {
  Model model;
  if (settings.tokenizer.empty()) {
    model = makeModel(settings.vocabulary);
  } else {
    SANDWICH_ASSIGN_OR_RETURN(model, loadModel(settings.tokenizer));
  }
  const double start = threadSeconds();
  SANDWICH_ASSIGN_OR_RETURN(std::shared_ptr<const TokenVocabulary> vocabulary,
                            TokenVocabulary::create(model.tokens,
                                                    model.endTokens,
                                                    model.tokens.size()));
  std::string report =
      std::to_string(vocabulary->size()) + " tokens, indexed once in " +
      std::to_string((threadSeconds() - start) * 1e3) + " ms\n";
  report += "          compile, document    us/token, cold        us/token, "
            "again        us/token, random\n"
            "                ms  tokens    average       most    average       "
            "most    average       most\n";
  for (const Example &example : makeExamples())
    if (Status status = measure(example, model, settings, report); !status)
      return status.error().inContext(example.name);
  return writeStandardOutput(report);
}

int main(int argc, char **argv) try {
  CLI::App app{"Times the masks of grammars.\n\n"
               "  sandwich-benchmark-grammar --tokenizer=FOLDER"};
  Settings settings;
  app.add_option("--tokenizer", settings.tokenizer,
                 "Folder of a tokenizer.json (default: a made-up vocabulary)");
  app.add_option("--vocabulary", settings.vocabulary,
                 "Tokens of the made-up vocabulary")
      ->check(CLI::Range(2000, 1 << 20))
      ->capture_default_str();
  app.add_option("--random-tokens", settings.randomTokens,
                 "Tokens of random texts for each grammar")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\n", wrong.what());
    return 2;
  }
  if (Status status = run(settings); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
