//===- SchemaFuzzer.cpp - Any bytes as a JSON schema ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarWalk.h"

#include <array>

using namespace sandwich;

namespace {

/// Makes schemas of bytes: from most bytes one that is compiled.
class SchemaWriter {
public:
  explicit SchemaWriter(std::string_view bytes) : bytes(bytes) {}

  Json schema(int depth);
  std::string_view rest() const { return bytes; }

private:
  unsigned take(unsigned choices) {
    if (bytes.empty())
      return 0;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    return byte % choices;
  }
  std::string name() {
    constexpr std::array<const char *, 8> names = {"a",      "b", "ab",  "a\"",
                                                   "\u00e9", "",  "abc", "$"};
    return names[take(names.size())];
  }
  Json value(int depth);
  Json number();
  std::string pattern();
  Json list(int depth) {
    Json schemas = Json::array();
    for (unsigned i = 0, count = 1 + take(3); i < count; ++i)
      schemas.push_back(schema(depth - 1));
    return schemas;
  }
  Json map(int depth, bool byPattern);
  void addKeyword(Json &schema, int depth);

  std::string_view bytes;
};

} // namespace

Json SchemaWriter::number() {
  switch (take(6)) {
  case 0:
    return take(256);
  case 1:
    return -int(take(256));
  case 2:
    return take(256) / 16.0;
  case 3:
    return -1.0 / (1 + take(256));
  case 4:
    return int64_t(take(256)) << take(56);
  default:
    return 1e-9 * take(256);
  }
}

std::string SchemaWriter::pattern() {
  constexpr std::array<const char *, 16> parts = {
      "a", "^", "$",     ".",   "*",     "+",    "?",   "|",
      "(", ")", "[a-z]", "\\d", "{2,5}", "[^b]", "\\s", "\u00e9"};
  std::string text;
  for (unsigned i = 0, count = take(10); i < count; ++i)
    text += parts[take(parts.size())];
  return text;
}

Json SchemaWriter::value(int depth) {
  switch (take(depth > 0 ? 8 : 6)) {
  case 0:
    return nullptr;
  case 1:
    return take(2) == 0;
  case 2:
    return number();
  case 3:
  case 4:
  case 5:
    return name();
  case 6:
    return Json::array({value(depth - 1), value(depth - 1)});
  default:
    return {{name(), value(depth - 1)}};
  }
}

Json SchemaWriter::map(int depth, bool byPattern) {
  Json schemas = Json::object();
  for (unsigned i = 0, count = take(4); i < count; ++i)
    schemas[byPattern ? pattern() : name()] = schema(depth - 1);
  return schemas;
}

void SchemaWriter::addKeyword(Json &schema, int depth) {
  constexpr std::array<const char *, 7> types = {
      "null", "boolean", "integer", "number", "string", "array", "object"};
  constexpr std::array<const char *, 5> references = {
      "#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere"};
  constexpr std::array<const char *, 12> formats = {
      "date", "time",         "date-time", "duration", "email", "hostname",
      "ipv4", "json-pointer", "uuid",      "int32",    "int64", "nonsense"};
  switch (take(depth > 0 ? 28 : 17)) {
  case 0:
  case 1:
    schema["type"] = types[take(types.size())];
    break;
  case 2:
    schema["type"] = {types[take(types.size())], types[take(types.size())]};
    break;
  case 3:
    schema["enum"] = {value(2), value(1), value(0)};
    break;
  case 4:
    schema["const"] = value(2);
    break;
  case 5:
    schema["minLength"] = take(9);
    break;
  case 6:
    schema["maxLength"] = take(256);
    break;
  case 7:
    schema["pattern"] = pattern();
    break;
  case 8:
    schema["format"] = formats[take(formats.size())];
    break;
  case 9:
    schema["minimum"] = number();
    break;
  case 10:
    schema["maximum"] = number();
    break;
  case 11:
    schema["exclusiveMinimum"] = number();
    break;
  case 12:
    schema["multipleOf"] = take(2) ? Json(0.01) : Json(10);
    break;
  case 13:
    schema["minItems"] = take(6);
    break;
  case 14:
    schema["maxItems"] = take(20);
    break;
  case 15:
    schema["required"] = {name(), name()};
    break;
  case 16:
    schema["nullable"] = take(2) == 0;
    break;
  case 17:
  case 18:
  case 19:
    schema["properties"] = map(depth, false);
    break;
  case 20:
    schema["patternProperties"] = map(depth, true);
    break;
  case 21:
    schema["additionalProperties"] = this->schema(depth - 1);
    break;
  case 22:
    schema["items"] = this->schema(depth - 1);
    break;
  case 23:
    schema["prefixItems"] = list(depth);
    break;
  case 24:
    schema["anyOf"] = list(depth);
    break;
  case 25:
    schema["allOf"] = list(depth);
    break;
  case 26:
    schema["oneOf"] = list(depth);
    break;
  default:
    schema["$ref"] = references[take(references.size())];
    break;
  }
}

Json SchemaWriter::schema(int depth) {
  if (take(12) == 0)
    return take(4) != 0;
  Json schema = Json::object();
  for (unsigned i = 0, count = 1 + take(4); i < count; ++i)
    addKeyword(schema, depth);
  return schema;
}

/// If the first byte is odd, the rest up to a zero is the text of a schema;
/// otherwise a schema is made of it. What remains chooses tokens. A schema is
/// refused with a reason, or its texts are JSON and not without a next token.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.empty())
    return 0;
  const bool isText = bytes.front() % 2 == 1;
  bytes.remove_prefix(1);
  Json schema;
  if (isText) {
    const std::string_view text = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(bytes.size(), text.size() + 1));
    Result<Json> parsed = parseJson(text);
    if (!parsed)
      return 0;
    schema = std::move(*parsed);
  } else {
    SchemaWriter writer(bytes);
    schema = writer.schema(4);
    if (schema.is_object()) {
      schema["$defs"]["a"] = writer.schema(3);
      schema["$defs"]["b"] = writer.schema(2);
    }
    bytes = writer.rest();
  }
  GrammarOptions options;
  if (!bytes.empty()) {
    options.whitespace =
        static_cast<GrammarOptions::Whitespace>(bytes.front() % 3);
    options.closedObjects = bytes.front() % 2 == 1;
  }
  auto grammar = Grammar::compile(GrammarSource::jsonSchema(std::move(schema)),
                                  fuzzVocabulary(), options);
  if (!grammar) {
    check(!grammar.error().message.empty());
    return 0;
  }
  if (std::optional<std::string> text = walkGrammar(*grammar, bytes))
    check(Json::accept(*text));
  return 0;
}
