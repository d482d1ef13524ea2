//===- BadInputTest.cpp - Files and texts that are refused ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

#include <filesystem>
#include <fstream>

using namespace sandwich;

/// The error for the file `text`; the test fails if it is accepted.
static std::string errorOf(const std::string &text) {
  auto tokenizer = Tokenizer::fromText(text);
  if (tokenizer) {
    ADD_FAILURE() << "accepted: " << text.substr(0, 300);
    return "";
  }
  return tokenizer.error().message;
}

/// The error for the small file once `pointer` in it is `value`.
static std::string errorWith(const std::string &pointer, const char *value) {
  Json file = smallFile();
  file[Json::json_pointer(pointer)] = Json::parse(value);
  return errorOf(file.dump());
}

static std::string errorWithout(const std::string &parent,
                                const std::string &key) {
  Json file = smallFile();
  file[Json::json_pointer(parent)].erase(key);
  return errorOf(file.dump());
}

TEST(BadTokenizer, IsNotJson) {
  EXPECT_EQ(errorOf(""), "not valid JSON at byte 1");
  std::string whole = smallFile().dump();
  for (size_t length = 0; length != whole.size(); ++length)
    EXPECT_NE(errorOf(whole.substr(0, length)), "");
  EXPECT_EQ(errorOf("[]"), "the document: must be an object, is a list");
  EXPECT_EQ(errorOf(std::string(100 << 20, '[')), "JSON nested deeper than 64");
  EXPECT_EQ(errorOf(R"({"model": {"vocab": {"a": 0, "a": 1}}})"),
            "duplicate key \"a\"");
}

TEST(BadTokenizer, LacksFields) {
  EXPECT_EQ(errorWithout("", "model"), "model: is missing");
  EXPECT_EQ(errorWithout("/model", "vocab"), "model.vocab: is missing");
  EXPECT_EQ(errorWithout("/model", "merges"), "model.merges: is missing");
}

TEST(BadTokenizer, HasFieldsOfWrongTypes) {
  EXPECT_EQ(errorWith("/model", "[]"), "model: must be an object, is a list");
  EXPECT_EQ(errorWith("/model/type", "7"),
            "model.type: must be a string, is 7");
  EXPECT_EQ(errorWith("/model/vocab", "[]"),
            "model.vocab: must be an object of tokens and their ids");
  EXPECT_EQ(errorWith("/model/merges", "{}"), "model.merges: must be a list");
  EXPECT_EQ(errorWith("/model/ignore_merges", "\"yes\""),
            "model.ignore_merges: must be true or false, is \"yes\"");
  EXPECT_EQ(errorWith("/added_tokens", "{}"), "added_tokens: must be a list");
  EXPECT_EQ(errorWith("/added_tokens", "[3]"),
            "added_tokens[0]: must be an object, is 3");
  EXPECT_EQ(errorWith("/normalizer", "\"NFC\""),
            "normalizer: must be an object, is \"NFC\"");
  EXPECT_EQ(errorWith("/pre_tokenizer", "{}"),
            "pre_tokenizer.type: is missing");
  EXPECT_EQ(errorWith("/decoder", R"({"type": "Sequence"})"),
            "decoder.decoders: is missing");
}

TEST(BadTokenizer, HasBadIds) {
  EXPECT_EQ(errorWith("/model/vocab/c", "6"),
            "model.vocab[\"c\"]: id 6 is beyond the vocabulary of 6 tokens");
  EXPECT_EQ(errorWith("/model/vocab/c", "18446744073709551615"),
            "model.vocab[\"c\"]: id 18446744073709551615 is beyond the "
            "vocabulary of 6 tokens");
  EXPECT_EQ(errorWith("/model/vocab/c", "-1"),
            "model.vocab[\"c\"]: must be a whole number that is not negative, "
            "is -1");
  EXPECT_EQ(errorWith("/model/vocab/c", "1.5"),
            "model.vocab[\"c\"]: must be a whole number that is not negative, "
            "is 1.5");
  EXPECT_EQ(errorWith("/model/vocab/c", "\"2\""),
            "model.vocab[\"c\"]: must be a whole number that is not negative, "
            "is \"2\"");
  EXPECT_EQ(errorWith("/model/vocab/c", "1"),
            "model.vocab: id 1 stands for both \"b\" and \"c\"");
}

TEST(BadTokenizer, HasDanglingMerges) {
  EXPECT_EQ(errorWith("/model/merges/1", "\"x a\""),
            "model.merges[1]: the token \"x\" is not in the vocabulary");
  EXPECT_EQ(errorWith("/model/merges/1", "\"a x\""),
            "model.merges[1]: the token \"x\" is not in the vocabulary");
  EXPECT_EQ(errorWith("/model/merges/1", R"(["c", "a"])"),
            "model.merges[1]: the token \"ca\" is not in the vocabulary");
  for (const char *merge :
       {"\"ab\"", "\"a b c\"", "[\"a\"]", "[\"a\", \"b\", \"c\"]", "[\"a\", 1]",
        "7", "null", "{}"})
    EXPECT_EQ(errorWith("/model/merges/0", merge),
              "model.merges[0]: must be two tokens, as \"a b\" or "
              "[\"a\", \"b\"]");
  Json file = smallFile();
  file["model"]["vocab"][""] = 6;
  file["model"]["merges"][0] = "a ";
  EXPECT_EQ(errorOf(file.dump()), "model.merges[0]: has an empty side");
}

TEST(BadTokenizer, HasAnUnknownTokenThatIsUnknown) {
  EXPECT_EQ(errorWith("/model/unk_token", "\"<unk>\""),
            "model.unk_token: the token \"<unk>\" is not in the vocabulary");
}

TEST(BadTokenizer, HasBadAddedTokens) {
  Json file = smallFile();
  auto errorWithTokens = [&](const Json::array_t &tokens) {
    file["added_tokens"] = tokens;
    return errorOf(file.dump());
  };
  EXPECT_EQ(errorWithTokens({addedToken(7, "<s>", true)}),
            "added_tokens[0].id: id 7 is beyond the vocabulary of 7 tokens");
  EXPECT_EQ(errorWithTokens({addedToken(-7, "<s>", true)}),
            "added_tokens[0].id: must be a whole number that is not negative, "
            "is -7");
  EXPECT_EQ(errorWithTokens({addedToken(0, "<s>", true)}),
            "added_tokens[0]: id 0 stands for both \"a\" and \"<s>\"");
  EXPECT_EQ(errorWithTokens({addedToken(6, "ab", true)}),
            "added_tokens[0]: token \"ab\" has id 6 here and id 3 elsewhere");
  EXPECT_EQ(
      errorWithTokens({addedToken(6, "<s>", true), addedToken(7, "<s>", true)}),
      "added_tokens[1]: token \"<s>\" has id 7 here and id 6 elsewhere");
  EXPECT_EQ(
      errorWithTokens({addedToken(6, "<s>", true), addedToken(6, "<s>", true)}),
      "added_tokens[1]: token \"<s>\" is added twice");
  EXPECT_EQ(errorWithTokens({addedToken(6, "", true)}),
            "added_tokens[0]: has empty content");
}

TEST(BadTokenizer, HasUnsupportedValues) {
  EXPECT_EQ(errorWith("/version", "\"2.0\""),
            "version: \"2.0\" is not supported");
  EXPECT_EQ(errorWith("/model/type", "\"WordLevel\""),
            "model.type: \"WordLevel\" is not supported");
  EXPECT_EQ(errorWith("/model/dropout", "0.1"),
            "model.dropout: 0.1 is not supported");
  EXPECT_EQ(errorWith("/model/continuing_subword_prefix", "\"##\""),
            "model.continuing_subword_prefix: \"##\" is not supported");
  EXPECT_EQ(errorWith("/model/end_of_word_suffix", "\"</w>\""),
            "model.end_of_word_suffix: \"</w>\" is not supported");
  EXPECT_EQ(errorWith("/normalizer", R"({"type": "Sequence", "normalizers":
                      [{"type": "NFC"}, {"type": "ByteLevel"}]})"),
            "normalizer.normalizers[1].type: \"ByteLevel\" is not supported");
  EXPECT_EQ(errorWith("/pre_tokenizer", R"({"type": "UnicodeScripts"})"),
            "pre_tokenizer.type: \"UnicodeScripts\" is not supported");
  EXPECT_EQ(errorWith("/pre_tokenizer", R"({"type": "Split",
                      "pattern": {"String": "a"}, "behavior": "Odd"})"),
            "pre_tokenizer.behavior: \"Odd\" is not supported");
  EXPECT_EQ(errorWith("/pre_tokenizer", R"({"type": "Metaspace",
                      "replacement": "_", "prepend_scheme": "last"})"),
            "pre_tokenizer.prepend_scheme: \"last\" is not supported");
  EXPECT_EQ(errorWith("/pre_tokenizer", R"({"type": "Metaspace",
                      "replacement": "__"})"),
            "pre_tokenizer.replacement: must be one character");
  EXPECT_EQ(errorWith("/post_processor", R"({"type": "Unknown"})"),
            "post_processor.type: \"Unknown\" is not supported");
  EXPECT_EQ(errorWith("/decoder", R"({"type": "CTC"})"),
            "decoder.type: \"CTC\" is not supported");
}

TEST(BadTokenizer, HasDecoderStepsThatCannotBeStreamed) {
  auto errorOfSteps = [](const char *steps) {
    return errorWith("/decoder", (R"({"type": "Sequence", "decoders": )" +
                                  std::string(steps) + "}")
                                     .c_str());
  };
  EXPECT_EQ(errorOfSteps(R"([{"type": "Fuse"}, {"type": "Replace",
                "pattern": {"String": "a"}, "content": ""}])"),
            "decoder.decoders[1].type: \"Replace\" in this place is not "
            "supported");
  EXPECT_EQ(errorOfSteps(R"([{"type": "Strip", "content": " ", "start": 1,
                "stop": 0}])"),
            "decoder.decoders[0].type: \"Strip\" in this place is not "
            "supported");
  EXPECT_EQ(errorOfSteps(R"([{"type": "Fuse"}, {"type": "ByteLevel"}])"),
            "decoder.decoders[1].type: \"ByteLevel\" in this place is not "
            "supported");
  EXPECT_EQ(errorOfSteps(R"([{"type": "Replace", "pattern": {"String": "a"},
                "content": "bb"}])"),
            "decoder.decoders[0].content: content longer than what it replaces "
            "is not supported");
  EXPECT_EQ(errorOfSteps(R"([{"type": "Replace", "pattern": {"Regex": "a"},
                "content": ""}])"),
            "decoder.decoders[0].pattern.String: is missing");
}

TEST(BadTokenizer, HasABadExpression) {
  auto errorOfExpression = [](const std::string &expression) {
    Json file = smallFile();
    file["pre_tokenizer"] = {{"type", "Split"},
                             {"pattern", {{"Regex", expression}}},
                             {"behavior", "Isolated"}};
    return errorOf(file.dump());
  };
  EXPECT_EQ(errorOfExpression("a(b"),
            "pre_tokenizer.pattern.Regex: is not a regular expression we "
            "accept: missing closing parenthesis after \"a(b\"");
  for (const char *expression :
       {"[a", "a**", "\\", "(?<n", "[b-a]", "\\p{Nonsense}", "\\C", "(?R",
        "a{99999999999}", "((((a{999}){999}){999}){999})", "[[:nonsense:]]",
        "[\\", "[^", "(?i", "[[:"})
    EXPECT_NE(errorOfExpression(expression)
                  .find("is not a regular expression we accept"),
              std::string::npos)
        << expression;
  EXPECT_NE(errorOfExpression(std::string(1000, '(')), "");
  EXPECT_EQ(errorOfExpression(std::string(1 << 20, 'a')),
            "pre_tokenizer.pattern.Regex: is 1048576 bytes long; at most 16384 "
            "are accepted");
}

TEST(BadTokenizer, HasABadPattern) {
  auto errorOfPattern = [](const char *pattern) {
    return errorWith("/normalizer", (R"({"type": "Replace", "content": "",
                                         "pattern": )" +
                                     std::string(pattern) + "}")
                                        .c_str());
  };
  for (const char *pattern : {"{}", R"({"String": "a", "Regex": "a"})"})
    EXPECT_EQ(errorOfPattern(pattern),
              "normalizer.pattern: must have either \"String\" or \"Regex\"");
  EXPECT_EQ(errorOfPattern(R"({"String": ""})"),
            "normalizer.pattern.String: is empty");
}

TEST(BadTokenizer, HasABadTemplate) {
  auto errorOfTemplate = [](const char *single, const char *tokens) {
    return errorWith("/post_processor",
                     (R"({"type": "TemplateProcessing", "single": )" +
                      std::string(single) + R"(, "special_tokens": )" + tokens +
                      "}")
                         .c_str());
  };
  constexpr const char *usual = R"([{"SpecialToken": {"id": "<s>"}},
                                    {"Sequence": {"id": "A"}}])";
  EXPECT_EQ(errorOfTemplate(usual, R"({"<s>": {"ids": [6]}})"),
            "post_processor.special_tokens.<s>.ids[0]: id 6 is beyond the "
            "vocabulary of 6 tokens");
  EXPECT_EQ(errorOfTemplate(usual, R"({"<s>": {"ids": [-1]}})"),
            "post_processor.special_tokens.<s>.ids[0]: must be a whole number "
            "that is not negative, is -1");
  Json holed = smallFile();
  holed["model"]["vocab"].erase("bc");
  holed["added_tokens"] = Json::array({addedToken(1, "b", false)});
  holed["post_processor"] = Json::parse(
      R"({"type": "TemplateProcessing", "special_tokens": {"x": {"ids": [4]}},
          "single": [{"SpecialToken": {"id": "x"}}]})");
  EXPECT_EQ(errorOf(holed.dump()),
            "post_processor.special_tokens.x.ids[0]: no token has the id 4");
  EXPECT_EQ(errorOfTemplate(usual, "{}"),
            "post_processor.special_tokens.<s>: is missing");
  EXPECT_EQ(errorOfTemplate("[]", "{}"),
            "post_processor.single: has no place for the text");
  EXPECT_EQ(errorOfTemplate(R"([{"Sequence": {"id": "B"}}])", "{}"),
            "post_processor.single[0].Sequence: the text \"B\" in this place "
            "is not supported");
  EXPECT_EQ(errorOfTemplate(R"([{"Sequence": {"id": "A"}},
                                {"Sequence": {"id": "A"}}])",
                            "{}"),
            "post_processor.single[1].Sequence: the text \"A\" in this place "
            "is not supported");
}

TEST(BadTokenizer, HasABadConfiguration) {
  auto errorOfConfiguration = [](const char *configuration) {
    auto tokenizer = Tokenizer::fromText(smallFile().dump(), configuration);
    return tokenizer ? "" : tokenizer.error().message;
  };
  EXPECT_EQ(errorOfConfiguration("{"),
            "tokenizer_config.json: not valid JSON at byte 2");
  EXPECT_EQ(errorOfConfiguration(R"({"bos_token": "<s>"})"),
            "tokenizer_config.json: bos_token: the token \"<s>\" is not in the "
            "vocabulary");
  EXPECT_EQ(errorOfConfiguration(R"({"eos_token": {"content": 3}})"),
            "tokenizer_config.json: eos_token.content: must be a string, is 3");
  EXPECT_EQ(errorOfConfiguration(R"({"add_bos_token": true})"),
            "tokenizer_config.json: add_bos_token: is true, but there is no "
            "bos_token");
  EXPECT_EQ(errorOfConfiguration(R"({"add_eos_token": "no"})"),
            "tokenizer_config.json: add_eos_token: must be true or false, is "
            "\"no\"");
}

TEST(BadTokenizer, ErrorsNameTheFile) {
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      ("sandwich-tokenizer-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::string path = folder / "tokenizer.json";
  EXPECT_EQ(Tokenizer::fromFolder(folder).error().message,
            path + ": cannot open: No such file or directory");
  std::ofstream(path) << "{}";
  EXPECT_EQ(Tokenizer::fromFolder(folder).error().message,
            path + ": model: is missing");
  std::ofstream(path) << smallFile();
  EXPECT_TRUE(Tokenizer::fromFolder(folder));
  std::string configuration = folder / "tokenizer_config.json";
  std::ofstream(configuration) << R"({"add_bos_token": 1})";
  EXPECT_EQ(Tokenizer::fromFolder(folder).error().message,
            configuration + ": add_bos_token: must be true or false, is 1");
  std::filesystem::remove_all(folder);
}

TEST(BadText, IsNotUtf8) {
  Tokenizer tokenizer = loaded(smallFile());
  for (const char *text : {"abc\xFF", "abc\xC3", "abc\xC0\x80",
                           "abc\xED\xA0\x80", "abc\xF4\x90\x80\x80"}) {
    auto ids = tokenizer.encode(text);
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().message, "the text is not valid UTF-8 at byte 3");
  }
}

TEST(BadText, ExhaustsAnExpression) {
  Json file = smallFile();
  file["pre_tokenizer"] = {{"type", "Split"},
                           {"pattern", {{"Regex", "(a|a)*(a|a)*(a|a)*[^a]"}}},
                           {"behavior", "Isolated"}};
  auto ids = loaded(file).encode(std::string(5000, 'a'));
  ASSERT_FALSE(ids);
  EXPECT_TRUE(ids.error().message.starts_with("pre_tokenizer.pattern.Regex: "))
      << ids.error().message;
  EXPECT_TRUE(loaded(file).encode("aab"));
}

TEST(BadText, IsInflatedByNormalizers) {
  Json file = smallFile();
  Json doubling = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  Json steps = Json::array();
  for (int i = 0; i != 60; ++i)
    steps.push_back(doubling);
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  auto ids = loaded(file).encode("a");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "normalizer.normalizers[16]: the text grows beyond 65568 bytes");
}

TEST(BadText, IsInflatedByPreTokenizers) {
  Json file = smallFile();
  Json steps = Json::array();
  for (int i = 0; i != 60; ++i)
    steps.push_back({{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"use_regex", false}});
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  auto ids = loaded(file).encode("\u00E9");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "pre_tokenizer: the text grows beyond 65600 bytes");
}
