//===- SchemaTest.cpp - Schemas, keyword by keyword -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestGrammar.h"

using namespace sandwich;

namespace {

struct SchemaCase {
  const char *schema;
  std::vector<const char *> values, others;
};

} // namespace

static void expectValues(const std::vector<SchemaCase> &cases,
                         const GrammarOptions &options = {}) {
  for (const SchemaCase &each : cases) {
    const GrammarPointer grammar = schemaGrammar(each.schema, options);
    ASSERT_TRUE(grammar) << each.schema;
    for (const char *value : each.values)
      EXPECT_TRUE(accepts(grammar, value)) << each.schema << " has " << value;
    for (const char *value : each.others)
      EXPECT_FALSE(accepts(grammar, value)) << each.schema << " has " << value;
  }
}

TEST(Schema, OfAnyValue) {
  const std::vector<const char *> values = {
      "null",
      "true",
      "-0",
      "12.5e-3",
      "\"\"",
      "[]",
      "{}",
      R"([1,[2,{"a":[]}]])",
      "\"\u20ac\"",
      R"("\"\\\/\b\f\n\r\t\u20AC\ud83d\ude00")",
      R"({"a":1, "b": {"a":null}})"};
  const std::vector<const char *> others = {
      "",         "nul",        "01",      "1.",          "+1",
      ".5",       "\"",         "\"\n\"",  "[1,]",        "{\"a\"}",
      "{a:1}",    "{\"a\":1,}", "\"\\x\"", "\"\\ud83d\"", "\"\\ude00\"",
      "\"\xFF\"", " 1",         "[1 ,2]",  "[1,  2]"};
  expectValues({{"true", values, others}, {"{}", values, others}});
  EXPECT_EQ(schemaRefusal("false"), "no text satisfies the grammar");
  EXPECT_EQ(schemaRefusal("[]"), "a schema must be an object, true or false");
}

TEST(Schema, OfTypes) {
  expectValues({
      {R"({"type":"null"})", {"null"}, {"true", "0"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "tru"}},
      {R"({"type":"integer"})",
       {"0", "-12", "123456789012345678901"},
       {"1.0", "1e3", "\"1\"", "-"}},
      {R"({"type":"number"})",
       {"0", "-1.5", "1e+99", "1e-308", "2E7"},
       {"1e", "1e100", "true"}},
      {R"({"type":"string"})", {"\"a\""}, {"1", "a"}},
      {R"({"type":"array"})", {"[]", "[1,\"a\"]"}, {"{}"}},
      {R"({"type":"object"})", {"{}", R"({"a":[]})"}, {"[]"}},
      {R"({"type":["string","null"]})", {"\"\"", "null"}, {"1"}},
      {R"({"type":"string","nullable":true})", {"\"\"", "null"}, {"1"}},
      {R"({"allOf":[{"type":"number"},{"type":["integer","null"]}]})",
       {"5"},
       {"5.5", "null"}},
  });
}

TEST(Schema, OfListedValues) {
  expectValues({
      {R"({"enum":["a","a b",1,1.5,null,true,[1,{"x":"y"}],{}]})",
       {"\"a\"", "\"a b\"", "1", "1.5", "null", "true", R"([1,{"x":"y"}])",
        R"([1, {"x": "y"}])", "{}"},
       {"\"b\"", "2", "false", "[1]"}},
      {R"({"const":"a\"\n\u00e9"})", {R"("a\"\né")"}, {"\"a\""}},
      {R"({"enum":[1,2,3],"const":2.0})", {"2"}, {"1", "3", "2.0"}},
      {R"({"enum":["a","bc",1,1.5,2.0],"type":["integer","string"],
           "minLength":2})",
       {"\"bc\"", "1", "2.0"},
       {"\"a\"", "1.5"}},
      {R"({"enum":["ab","b"],"pattern":"^a"})", {"\"ab\""}, {"\"b\""}},
      {R"({"enum":[1,5,9],"minimum":2,"exclusiveMaximum":9})",
       {"5"},
       {"1", "9"}},
  });
  EXPECT_EQ(schemaRefusal(R"({"enum":[{}],"required":["a"]})"),
            "the schema at #: enum or const with a list or an object, beside "
            "keywords for its members, is not supported");
  EXPECT_EQ(schemaRefusal(R"({"enum":[1],"type":"string"})"),
            "no text satisfies the grammar");
}

TEST(Schema, OfStrings) {
  expectValues({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"a\u20ac\"", R"("\u20ac\n\"")", R"("a\ud83d\ude00b")"},
       {"\"a\"", "\"abcd\"", R"("\u20ac\n\"b")", "\"\u20ac\""}},
      {R"({"type":"string","minLength":1})", {"\"a\""}, {"\"\""}},
      {R"({"type":"string","maxLength":0})", {"\"\""}, {"\"a\""}},
      {R"({"type":"string","pattern":"b"})",
       {"\"b\"", "\"abc\"", R"("\"\nb")"},
       {"\"a\"", "\"\""}},
      {R"({"type":"string","pattern":"^a.c$"})",
       {"\"abc\"", R"("a\"c")", R"("a\\c")"},
       {"\"xabc\"", R"("a\nc")"}},
      {R"({"type":"string","pattern":"^[a-z]+$","maxLength":4,"minLength":2})",
       {"\"ab\"", "\"abcd\""},
       {"\"a\"", "\"abcde\"", "\"AB\""}},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string"})",
       {"\"ab\"", "\"b a\""},
       {"\"aa\"", "\"b\""}},
  });
  EXPECT_EQ(schemaRefusal(R"~({"properties":{"a":{"type":"string",
                                "pattern":"(?=a)"}}})~"),
            "the schema at #/properties/a: the pattern has at byte 1 a "
            "look-around, which is not supported");
  EXPECT_EQ(schemaRefusal(R"({"type":"string","minLength":3,"maxLength":2})"),
            "no text satisfies the grammar");
}

TEST(Schema, OfFormats) {
  auto of = [](const char *format) {
    return schemaGrammar(std::string(R"({"type":"string","format":")") +
                         format + "\"}");
  };
  const std::vector<SchemaCase> cases = {
      {"date",
       {"2024-02-29", "2000-02-29", "2023-12-31"},
       {"2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31", "0000-01-01"}},
      {"time",
       {"23:59:59Z", "00:00:00.125+14:30"},
       {"24:00:00Z", "12:00Z", "12:00:00"}},
      {"date-time", {"2024-02-29T12:00:00Z"}, {"2024-02-29 12:00:00Z"}},
      {"duration",
       {"P3Y6M4DT12H30M5S", "PT1M", "P2W"},
       {"P", "PT", "P1Y2W", "P1S"}},
      {"email", {"a.b+c@example.com"}, {"a@b", ".a@b.c", "a b@c.de"}},
      {"hostname", {"example.com", "a", "x-1.y"}, {"-a", "a-", "a..b", ""}},
      {"ipv4", {"0.0.0.0", "255.249.19.9"}, {"256.0.0.1", "01.0.0.0", "1.2.3"}},
      {"ipv6",
       {"::", "::1", "2001:db8::ff00:42:8329", "1:2:3:4:5:6:7:8",
        "::ffff:192.0.2.1"},
       {":", "1::2::3", "1:2:3:4:5:6:7:8:9", "12345::"}},
      {"uuid",
       {"123e4567-e89b-12d3-a456-426614174000"},
       {"123e4567e89b12d3a456426614174000"}},
      {"uri",
       {"https://user@example.com:80/a/b?c=d#e", "mailto:a@b.c",
        "http://[::1]/", "urn:isbn:0-486-27557-4"},
       {"/a", "http://a b", "a%zz:", "http://[::1"}},
      {"json-pointer", {"", "/a~1b/0", "/"}, {"a", "/~2"}},
  };
  for (const SchemaCase &each : cases) {
    const GrammarPointer grammar = of(each.schema);
    ASSERT_TRUE(grammar) << each.schema;
    for (const std::string text : each.values)
      EXPECT_TRUE(accepts(grammar, "\"" + text + "\"")) << text;
    for (const std::string text : each.others)
      EXPECT_FALSE(accepts(grammar, "\"" + text + "\"")) << text;
  }
  expectValues({
      {R"({"type":"integer","format":"int32"})",
       {"2147483647", "-2147483648"},
       {"2147483648", "-2147483649"}},
      {R"({"type":"integer","format":"int64"})",
       {"9223372036854775807"},
       {"9223372036854775808"}},
      {R"({"type":"number","format":"double"})", {"1e99"}, {}},
  });
  EXPECT_EQ(schemaRefusal(R"({"items":{"type":"string","format":"iri"}})"),
            "the schema at #/items: the format \"iri\" is not supported");
}

TEST(Schema, OfBounds) {
  expectValues({
      {R"({"type":"integer","minimum":-12,"maximum":105})",
       {"-12", "-9", "-1", "0", "9", "99", "100", "105"},
       {"-13", "-20", "106", "110", "200", "1000", "-0", "00", "5.0"}},
      {R"({"type":"integer","exclusiveMinimum":0})", {"1", "10"}, {"0", "-1"}},
      {R"({"type":"integer","exclusiveMaximum":-5})",
       {"-6", "-10", "-50"},
       {"-5", "-1", "0", "6"}},
      {R"({"type":"integer","minimum":0.5,"maximum":2.5})",
       {"1", "2"},
       {"0", "3"}},
      {R"({"type":"number","minimum":-1.5,"maximum":2.25})",
       {"-1.5", "-1.50", "-1.49", "-0.1", "0", "0.0", "2.25", "2.2", "2",
        "1.999"},
       {"-1.51", "-2", "2.26", "2.250001", "3", "1e0"}},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.05})",
       {"0.01", "0.049", "0.0001"},
       {"0", "0.0", "0.05", "0.050", "1"}},
      {R"({"type":"number","minimum":5,"exclusiveMinimum":true})",
       {"5.1", "6"},
       {"5", "5.0", "4"}},
      {R"({"allOf":[{"minimum":1},{"minimum":3},{"maximum":9}],
           "type":"integer","exclusiveMaximum":5})",
       {"3", "4"},
       {"2", "5", "9"}},
      {R"({"type":"integer","multipleOf":10,"minimum":5,"maximum":200})",
       {"10", "100", "200"},
       {"5", "15", "0", "210"}},
      {R"({"type":"number","multipleOf":0.01})",
       {"1", "1.5", "1.25", "-0.01", "1.250"},
       {"1.251"}},
      {R"({"type":"integer","multipleOf":1})", {"7", "0", "-7"}, {}},
      {R"({"type":"integer","minimum":123456789012345,
           "maximum":123456789012399})",
       {"123456789012345", "123456789012399"},
       {"123456789012400"}},
  });
  EXPECT_EQ(schemaRefusal(R"({"multipleOf":3})"),
            "the schema at #: multipleOf 3 is not supported; only powers of "
            "ten are");
  EXPECT_EQ(schemaRefusal(R"({"type":"integer","minimum":2,"maximum":1})"),
            "no text satisfies the grammar");
}

TEST(Schema, OfObjects) {
  expectValues({
      {R"({"type":"object","properties":{"a":{"type":"null"},
           "b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"],
           "additionalProperties":false})",
       {R"({"b":true})", R"({"a":null,"b":true})",
        R"({"a":null, "b": true,"c":null})", R"({"b":false,"c":null})"},
       {"{}", R"({"a":null})", R"({"b":true,"a":null})", R"({"b":1})",
        R"({"b":true,"d":1})", R"({"b":true,})", R"({,"b":true})"}},
      {R"({"type":"object","properties":{"ab":{"type":"null"}}})",
       {"{}", R"({"ab":null})", R"({"a":1})", R"({"abc":1,"b":[]})",
        R"({"ab":null,"x":{}})", R"({"":1})", R"({"\"":1})"},
       {R"({"ab":1})", R"({"a":1,"ab":null})", R"({"\u0061b":1})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})",
       {"{}", R"({"a":1,"b":2})", R"({"\u0061":1})"},
       {R"({"a":null})"}},
      {R"({"type":"object","required":["x"],"minProperties":0})",
       {R"({"x":1})", R"({"x":1,"y":2})"},
       {"{}", R"({"y":1})"}},
      {R"({"type":"object","properties":{"a":false,"b":true},
           "additionalProperties":false})",
       {"{}", R"({"b":1})"},
       {R"({"a":1})"}},
      {R"({"type":"object","patternProperties":{"^n":{"type":"null"},
           "b$":{"type":"boolean"}},"additionalProperties":{"type":"string"},
           "properties":{"n1":{"type":"null"}}})",
       {R"({"n1":null,"n2":null,"xb":true,"y":"z"})", R"({"y":"","n":null})"},
       {R"({"n2":1})", R"({"xb":null})", R"({"y":null})", R"({"n1":1})",
        R"({"n\u0031":null})"}},
      {R"({"type":"object","patternProperties":{"^n":{"type":"null"}},
           "properties":{"na":{"enum":[null,1]}},"required":["na"]})",
       {R"({"na":null})"},
       {R"({"na":1})"}},
  });
  expectValues({{R"({"type":"object","properties":{"a":{}}})",
                 {"{}", R"({"a":1})"},
                 {R"({"b":1})"}},
                {R"({"type":"object"})", {R"({"b":1})"}, {}}},
               {.closedObjects = true});
  EXPECT_EQ(schemaRefusal(R"({"type":"object","required":["a"],
                              "additionalProperties":false})"),
            "no text satisfies the grammar");
}

TEST(Schema, OfArrays) {
  expectValues({
      {R"({"type":"array","items":{"type":"null"}})",
       {"[]", "[null]", "[null, null,null]"},
       {"[1]", "[null,]"}},
      {R"({"type":"array","items":{"type":"null"},"minItems":2,"maxItems":3})",
       {"[null,null]", "[null,null,null]"},
       {"[]", "[null]", "[null,null,null,null]"}},
      {R"({"type":"array","minItems":1})", {"[1]", "[[],{}]"}, {"[]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],
           "items":{"type":"integer"}})",
       {"[]", "[null]", "[null,true]", "[null,true,1,2]"},
       {"[true]", "[null,1]", "[null,true,null]"}},
      {R"({"type":"array","prefixItems":[{"type":"null"}],"items":false})",
       {"[]", "[null]"},
       {"[null,null]"}},
      {R"({"type":"array","items":[{"type":"null"}],
           "additionalItems":{"type":"boolean"},"minItems":2})",
       {"[null,true]", "[null,true,false]"},
       {"[null]", "[null,null]"}},
      {R"({"type":"array","uniqueItems":false,"items":{}})", {"[1,1]"}, {}},
  });
}

TEST(Schema, OfCombinations) {
  expectValues({
      {R"({"anyOf":[{"type":"null"},{"type":"string","maxLength":1}]})",
       {"null", "\"a\""},
       {"\"ab\"", "1"}},
      {R"({"oneOf":[{"const":1},{"type":"boolean"}]})", {"1", "true"}, {"2"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},
           "anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {"{}", R"({"c":1})"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":1}}},
           {"properties":{"a":{"maximum":3},"b":{"type":"null"}},
            "additionalProperties":{"type":"integer"}}],"type":"object"})",
       {R"({"a":2,"b":null,"c":5})"},
       {R"({"a":4})", R"({"c":null})"}},
      {R"({"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$ref":"#/definitions/list","definitions":{"list":{
           "type":"array","items":{"$ref":"#/definitions/list"}}}})",
       {"[]", "[[],[[]]]"},
       {"[1]"}},
      {R"({"type":"object","properties":{"next":{"anyOf":[
           {"$ref":"#"},{"type":"null"}]}},"required":["next"],
           "additionalProperties":false})",
       {R"({"next":null})", R"({"next":{"next":{"next":null}}})"},
       {R"({"next":{}})", R"({"next":1})"}},
      {R"({"properties":{"a":{"$ref":"#/properties/b","maxLength":2},
           "b":{"type":"string"}},"type":"object"})",
       {R"({"a":"xy","b":"xyz"})"},
       {R"({"a":"xyz"})"}},
      {R"({"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],
           "$defs":{"a":{"type":"null"}}})",
       {"null"},
       {"1"}},
  });
}

/// Two alternatives that are the same for long: the stacks of both are shared,
/// and do not double with each level.
TEST(Schema, OfAmbiguousRecursion) {
  const GrammarPointer grammar = schemaGrammar(R"({
    "$defs": {"s": {"anyOf": [
      {"type": "object", "properties": {"a": {"$ref": "#/$defs/s"},
       "b": {"type": "null"}}, "required": ["a"],
       "additionalProperties": false},
      {"type": "object", "properties": {"a": {"$ref": "#/$defs/s"},
       "c": {"type": "null"}}, "required": ["a"],
       "additionalProperties": false},
      {"type": "integer"}]}}, "$ref": "#/$defs/s"})");
  ASSERT_TRUE(grammar);
  std::string text = "1";
  for (int depth = 0; depth < 60; ++depth)
    text = R"({"a":)" + text + (depth % 2 ? "}" : R"(,"c":null})");
  EXPECT_TRUE(accepts(grammar, text));
}

TEST(Schema, IsNestedOnlySoDeep) {
  const GrammarPointer grammar = schemaGrammar("{}");
  auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(accepts(grammar, nested(Grammar::mostDepth)));
  EXPECT_FALSE(accepts(grammar, nested(Grammar::mostDepth + 1)));
  EXPECT_EQ(schemaRefusal(R"({"type":"object","properties":{"a":{"$ref":"#"}},
                              "required":["a"]})"),
            "no text satisfies the grammar")
      << "it would never end";
  // What is begun can be completed.
  const GrammarPointer deep = schemaGrammar(R"({
    "$ref": "#/$defs/a", "$defs": {
      "a": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/b"},
                                                 {"$ref": "#/$defs/a"}]}},
      "b": {"type": "array", "minItems": 1, "items": {"type": "array",
            "minItems": 1, "items": {"type": "null"}}}}})");
  const std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(deep);
  int depth = 0;
  for (; constraint->accept('['); ++depth)
    EXPECT_FALSE(tokensOf(constraint->allowedTokens()).empty());
  EXPECT_EQ(depth, int(Grammar::mostDepth));
  std::string end;
  for (int i = 0; i < 200 && !constraint->accept(endToken); ++i) {
    const std::vector<int32_t> tokens = tokensOf(constraint->allowedTokens());
    ASSERT_FALSE(tokens.empty());
    EXPECT_TRUE(constraint->accept(tokens.back())) << tokens.back();
  }
  EXPECT_TRUE(isAllowed(constraint->allowedTokens(), endToken));
}

TEST(Schema, IsRefusedByName) {
  const std::vector<std::pair<const char *, const char *>> cases = {
      {R"({"properties":{"a/b~":{"not":{}}}})",
       "the schema at #/properties/a~1b~0: the keyword \"not\" is not "
       "supported"},
      {R"({"items":{"uniqueItems":true}})",
       "the schema at #/items: the keyword \"uniqueItems\" is not supported"},
      {R"({"anyOf":[true,{"if":{}}]})",
       "the schema at #/anyOf/1: the keyword \"if\" is not supported"},
      {R"({"maxLenght":5})",
       "the schema at #: the keyword \"maxLenght\" is not supported"},
      {R"({"type":"text"})", "the schema at #: there is no type \"text\""},
      {R"({"type":7})",
       "the schema at #: type must be a type or a list of types"},
      {R"({"enum":[]})", "the schema at #: enum must be a list of values"},
      {R"({"minLength":-1})", "the schema at #: minLength must be a size"},
      {R"({"maxItems":1.5})", "the schema at #: maxItems must be a size"},
      {R"({"properties":{"a":1}})",
       "the schema at #: properties must be an object of schemas"},
      {R"({"required":"a"})",
       "the schema at #: required must be a list of strings"},
      {R"({"allOf":{}})", "the schema at #: allOf must be a list of schemas"},
      {R"({"multipleOf":0})",
       "the schema at #: multipleOf must be a number above zero"},
      {R"({"$ref":"other.json"})",
       "the schema at #: the reference \"other.json\" is not supported; only "
       "those within the schema are, such as #/$defs/name"},
      {R"({"$ref":"#/$defs/a"})",
       "the schema at #: the reference \"#/$defs/a\" leads to nothing"},
      {R"({"$ref":"#/title","title":"x"})",
       "the schema at #: the reference \"#/title\" leads to what is no schema"},
      {R"({"$ref":"#"})",
       "the schema at #: refers to itself without a value in between"},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
       "the schema at #: refers to itself without a value in between"},
      {R"({"properties":{"a":{"$id":"b"}}})",
       "the schema at #/properties/a: the keyword \"$id\" is not supported"},
      {R"({"patternProperties":{"(":{}}})",
       "the schema at #: patternProperties: the pattern has at byte 1 no end "
       "of a group"},
  };
  for (const auto &[schema, reason] : cases)
    EXPECT_EQ(schemaRefusal(schema), reason) << schema;
}

TEST(Schema, IgnoresWhatRestrictsNothing) {
  expectValues({{R"({"$schema":"s","$id":"i","title":"t","description":"d",
                     "default":1,"examples":[1],"x-own":{},"deprecated":true,
                     "type":"null"})",
                 {"null"},
                 {"1"}}});
}

/// Schemas of few bytes that mean very many alternatives or states
/// (CVE-2025-48943 and its kind).
TEST(Schema, ThatExplodesIsRefused) {
  std::string choices = R"({"const":0},{"const":1})";
  std::string all;
  for (int i = 0; i < 40; ++i)
    all += std::string(i ? "," : "") + R"({"anyOf":[{"minimum":)" +
           std::to_string(i) + R"(},{"maximum":)" + std::to_string(i) + "}]}";
  EXPECT_EQ(schemaRefusal(R"({"allOf":[)" + all + "]}"),
            "the schema at #: more than 1024 combinations of alternatives");
  constexpr const char *reason =
      "the grammar is too large or too complex to compile";
  EXPECT_EQ(schemaRefusal(R"({"type":"array","maxItems":1000000000})"), reason);
  EXPECT_EQ(schemaRefusal(R"({"type":"array","minItems":4000000000})"), reason);
  EXPECT_EQ(
      schemaRefusal(R"({"type":"string","pattern":"^(a|b)*a(a|b){60}$"})"),
      reason);
  EXPECT_EQ(schemaRefusal(R"({"type":"string","pattern":"\\d.*\\d",
                              "minLength":20000,"maxLength":40000})"),
            reason);
  // Each property refers to all, and so do those.
  std::string properties, references;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "p" + std::to_string(i);
    references +=
        std::string(i ? "," : "") + R"({"$ref":"#/$defs/)" + name + "\"}";
  }
  for (int i = 0; i < 12; ++i) {
    const std::string name = "p" + std::to_string(i);
    properties += std::string(i ? "," : "") + "\"" + name +
                  R"(":{"type":"object","properties":{"x":{"anyOf":[)" +
                  references + R"(]},"y)" + name + R"(":{"allOf":[)" +
                  references + "]}}}";
  }
  EXPECT_EQ(
      schemaRefusal(R"({"$ref":"#/$defs/p0","$defs":{)" + properties + "}}"),
      "the schema at #/$defs/p0/properties/x: more than 1024 combinations "
      "of alternatives");
}

TEST(Schema, MayBeLarge) {
  std::string properties;
  for (int i = 0; i < 500; ++i)
    properties += std::string(i ? "," : "") + "\"property" + std::to_string(i) +
                  R"(":{"type":"string","maxLength":9})";
  const GrammarPointer grammar =
      schemaGrammar(R"({"type":"object","properties":{)" + properties + "}}");
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(accepts(grammar, R"({"property7":"a","property499":"b","x":1})"));
  EXPECT_FALSE(accepts(grammar, R"({"property8":"a","property7":"b"})"));
}

TEST(Schema, HasTheWhitespaceThatIsAskedFor) {
  const char *schema = R"({"type":"object","properties":{"a":{"type":"array",
                           "items":{"enum":[1,[2,3]]}}}})";
  const char *compact = R"({"a":[1,[2,3]]})";
  const char *spaced = R"({"a": [1, [2, 3]]})";
  const char *lines = "{\n  \"a\": [\n    1,\n    [\n      2,\n      3\n    ]\n"
                      "  ]\n}";
  const std::vector<const char *> others = {R"({"a" :[]})", R"({ "a":[]})",
                                            R"({"a":[1,  1]})", "{\"a\":\t[]}"};
  using Whitespace = GrammarOptions::Whitespace;
  auto check = [&](Whitespace whitespace, std::vector<const char *> texts,
                   std::vector<const char *> more) {
    std::vector<const char *> refused = others;
    refused.insert(refused.end(), more.begin(), more.end());
    expectValues({{schema, std::move(texts), std::move(refused)}},
                 {.whitespace = whitespace});
  };
  check(Whitespace::None, {compact}, {spaced, lines});
  check(Whitespace::Spaces, {compact, spaced}, {lines});
  check(Whitespace::Lines, {compact, spaced, lines}, {});
}

TEST(Schema, OfAnyObject) {
  const GrammarPointer grammar =
      compiled(GrammarSource::jsonObject(), bytesVocabulary());
  EXPECT_TRUE(accepts(grammar, R"({"a":[1,{"b":null}], "a": ""})"));
  EXPECT_FALSE(accepts(grammar, "[]"));
  EXPECT_FALSE(accepts(grammar, "1"));
}
