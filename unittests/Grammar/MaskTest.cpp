//===- MaskTest.cpp - Masks, token by token -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestGrammar.h"

#include <algorithm>

using namespace sandwich;

static Json parsed(std::string_view text) {
  auto json = parseJson(text);
  EXPECT_TRUE(json);
  return json ? *json : Json();
}

/// Grammars with all that places can be.
static std::vector<GrammarSource> variousGrammars() {
  std::vector<GrammarSource> sources;
  for (const char *schema :
       {"{}",
        R"({"type":"object","properties":{"name":{"type":"string",
            "maxLength":4},"na":{"type":"integer","minimum":-5,"maximum":300},
            "value":{"type":"object"}}})",
        R"({"type":"object","properties":{"a":{"type":"string","minLength":2,
            "maxLength":7},"b":{"type":"array","items":{"type":"string",
            "minLength":1}}},"required":["a"],"additionalProperties":false})",
        R"({"type":"array","items":{"anyOf":[{"type":"number"},
            {"enum":["abc","ab","a,b",true]},{"$ref":"#"}]},"minItems":1})",
        R"({"type":"object","patternProperties":{"^n":{"type":"string",
            "pattern":"^(a|bc)*$"}},"additionalProperties":{"type":"null"}})",
        R"({"type":"object","properties":{"d":{"type":"string",
            "format":"date"},"m":{"type":"string","format":"email"}}})"})
    sources.push_back(GrammarSource::jsonSchema(parsed(schema)));
  sources.push_back(GrammarSource::jsonObject());
  sources.push_back(GrammarSource::regularExpression("(a|ab|abc|\u00e9)*x?"));
  sources.push_back(GrammarSource::regularExpression(".*hello.{3,8}"));
  sources.push_back(GrammarSource::oneOf({"true", "true,", "tr", "12", ""}));
  // Each part may end where the next begins.
  sources.push_back(GrammarSource::sequence(
      {GrammarSource::regularExpression("a*"),
       GrammarSource::regularExpression("[ab]*"),
       GrammarSource::regularExpression("(ab|bc)*"),
       GrammarSource::literal("c"), GrammarSource::tokenOf(261),
       GrammarSource::jsonSchema(parsed(R"({"type":"integer"})")),
       GrammarSource::tokenOf(endToken + 4)}));
  sources.push_back(GrammarSource::alternatives(
      {GrammarSource::sequence({GrammarSource::literal("{\"name\": \"a\", "),
                                GrammarSource::jsonObject(),
                                GrammarSource::literal("}")}),
       GrammarSource::sequence(
           {GrammarSource::tokenOf(260), GrammarSource::jsonSchema(true)}),
       GrammarSource::regularExpression("\\{\"na.*")}));
  return sources;
}

/// Each token is allowed exactly if its bytes, or it as a token of its own, are
/// accepted, and one is always allowed.
TEST(Mask, SaysWhatIsAccepted) {
  std::mt19937 random(1);
  for (const GrammarSource &source : variousGrammars()) {
    const GrammarPointer grammar = compiled(source, richVocabulary());
    ASSERT_TRUE(grammar);
    int ended = 0;
    for (int round = 0; round < 40; ++round) {
      std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
      for (int step = 0; step < 30; ++step) {
        const std::span<const uint64_t> mask = constraint->allowedTokens();
        ASSERT_EQ(mask.size(), (richVocabulary()->size() + 63) / 64);
        const std::vector<int32_t> allowed = tokensOf(mask);
        ASSERT_FALSE(allowed.empty());
        for (size_t token = 0; token < mask.size() * 64; ++token)
          ASSERT_EQ(constraint->clone()->accept(static_cast<int32_t>(token)),
                    isAllowed(mask, token))
              << "token " << token;
        // Long tokens are the rarer ones, and more interesting.
        const bool prefersLong = random() % 2 == 0 && allowed.back() > endToken;
        const auto first = prefersLong
                               ? std::ranges::upper_bound(allowed, endToken)
                               : allowed.begin();
        const int32_t token =
            first[random() % static_cast<size_t>(allowed.end() - first)];
        ASSERT_TRUE(constraint->accept(token));
        if (token == endToken) {
          ++ended;
          break;
        }
      }
    }
    EXPECT_GT(ended, 0);
  }
}

/// How a text is divided among tokens makes no difference to what follows.
TEST(Mask, DependsOnlyOnTheText) {
  std::mt19937 random(2);
  for (const GrammarSource &source : variousGrammars()) {
    const GrammarPointer grammar = compiled(source, richVocabulary());
    for (int round = 0; round < 60; ++round) {
      std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
      std::unique_ptr<TokenConstraint> bytewise = constraint->clone();
      for (int step = 0; step < 25; ++step) {
        const std::vector<int32_t> allowed =
            tokensOf(constraint->allowedTokens());
        const int32_t token = allowed[random() % allowed.size()];
        // Those that are tokens of their own have no bytes to go by.
        if (token == endToken || token == 260 || token == 261)
          break;
        ASSERT_TRUE(constraint->accept(token));
        for (char byte : richVocabulary()->bytesOf(token))
          ASSERT_TRUE(bytewise->accept(static_cast<unsigned char>(byte)));
        ASSERT_EQ(tokensOf(constraint->allowedTokens()),
                  tokensOf(bytewise->allowedTokens()));
      }
    }
  }
}

/// The same masks, whether all that was computed is kept or nothing.
TEST(Mask, DoesNotDependOnWhatIsKept) {
  const std::vector<std::string> tokens = tokensWith(longTokens());
  auto forgetful =
      TokenVocabulary::create(tokens, {endToken}, tokens.size() + 5, 0);
  ASSERT_TRUE(forgetful);
  std::mt19937 random(3);
  for (const GrammarSource &source : variousGrammars()) {
    auto one = Grammar::constrain(compiled(source, richVocabulary()));
    auto other = Grammar::constrain(compiled(source, *forgetful));
    for (int step = 0; step < 40; ++step) {
      const std::vector<int32_t> allowed = tokensOf(one->allowedTokens());
      ASSERT_EQ(allowed, tokensOf(other->allowedTokens()));
      const int32_t token = allowed[random() % allowed.size()];
      ASSERT_TRUE(one->accept(token));
      ASSERT_TRUE(other->accept(token));
    }
  }
}

TEST(Mask, EndsWhereTheTextMay) {
  const std::vector<std::string> tokens = tokensWith({"a", "</s>"});
  const VocabularyPointer vocabulary = vocabularyOf(tokens, {endToken, 258});
  const GrammarPointer grammar =
      compiled(GrammarSource::regularExpression("a+"), vocabulary);
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
  EXPECT_EQ(tokensOf(constraint->allowedTokens()),
            (std::vector<int32_t>{'a', 257}));
  EXPECT_FALSE(constraint->accept(endToken));
  EXPECT_FALSE(constraint->accept('b'));
  for (int32_t none : {-1, 259, 263, 264, INT32_MAX, INT32_MIN})
    EXPECT_FALSE(constraint->accept(none)) << none;
  EXPECT_TRUE(constraint->accept(257));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()),
            (std::vector<int32_t>{'a', endToken, 257, 258}));
  std::unique_ptr<TokenConstraint> copy = constraint->clone();
  EXPECT_TRUE(constraint->accept(258));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()),
            (std::vector<int32_t>{endToken, 258}))
      << "nothing else comes after the end";
  EXPECT_FALSE(constraint->accept('a'));
  EXPECT_TRUE(copy->accept('a')) << "a copy goes on by itself";
}

TEST(Mask, OfATokenOfItsOwn) {
  // Token 258 is special: it has no bytes.
  const VocabularyPointer vocabulary =
      vocabularyOf(tokensWith({"<call>", "", "{}<call>"}));
  const GrammarPointer grammar =
      compiled(GrammarSource::sequence({GrammarSource::tokenOf(258),
                                        GrammarSource::jsonObject(),
                                        GrammarSource::tokenOf(257)}),
               vocabulary);
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
  EXPECT_EQ(tokensOf(constraint->allowedTokens()), std::vector<int32_t>{258});
  ASSERT_TRUE(constraint->accept(258));
  EXPECT_FALSE(isAllowed(constraint->allowedTokens(), 259))
      << "spelled in bytes it is another thing";
  ASSERT_TRUE(constraint->accept('{'));
  ASSERT_TRUE(constraint->accept('}'));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()), std::vector<int32_t>{257});
  ASSERT_TRUE(constraint->accept(257));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()),
            std::vector<int32_t>{endToken});
  for (int32_t token : {-1, 266})
    EXPECT_EQ(refusal(GrammarSource::tokenOf(token), vocabulary),
              "the token " + std::to_string(token) +
                  " is not one of the model's 265");
}

TEST(Vocabulary, IsChecked) {
  auto reason = [](std::vector<std::string> tokens,
                   std::vector<int32_t> endTokens, size_t modelTokens) {
    auto vocabulary = TokenVocabulary::create(
        std::move(tokens), std::move(endTokens), modelTokens);
    EXPECT_FALSE(vocabulary);
    return vocabulary ? "" : vocabulary.error().message;
  };
  EXPECT_EQ(reason({"a", "b"}, {1}, 1),
            "the model has 1 tokens, but the tokenizer 2");
  EXPECT_EQ(reason({"a"}, {}, 1),
            "no token ends a text, so that none could keep to a grammar");
  for (int32_t end : {-1, 2})
    EXPECT_EQ(reason({"a"}, {end}, 2), "the end token " + std::to_string(end) +
                                           " is not one of the model's 2 "
                                           "tokens");
  EXPECT_EQ(reason({std::string(65536, 'a')}, {0}, 1),
            "token 0 has 65536 bytes; at most 65535 are accepted");
  EXPECT_EQ(reason({"a"}, {0}, size_t(1) << 40),
            "the model has 1099511627776 tokens, but the tokenizer 1");
}

TEST(Vocabulary, MayHaveLongAndEqualTokens) {
  const std::string longest(65535, 'a');
  const VocabularyPointer vocabulary =
      vocabularyOf(tokensWith({longest, "a", "a", "", longest}));
  EXPECT_EQ(vocabulary->size(), 267u);
  EXPECT_EQ(vocabulary->bytesOf(257), longest);
  for (int32_t none : {-1, endToken, 266, 267, INT32_MAX})
    EXPECT_EQ(vocabulary->bytesOf(none), "");
  const GrammarPointer any =
      compiled(GrammarSource::jsonSchema(
                   parsed(R"({"type":"string","maxLength":65536})")),
               vocabulary);
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(any);
  ASSERT_TRUE(constraint->accept('"'));
  const std::vector<int32_t> both = tokensOf(constraint->allowedTokens());
  EXPECT_EQ(std::ranges::count(both, 257) + std::ranges::count(both, 261), 2);
  ASSERT_TRUE(constraint->accept(261));
  const std::vector<int32_t> rest = tokensOf(constraint->allowedTokens());
  EXPECT_EQ(std::ranges::count(rest, 257) + std::ranges::count(rest, 261), 0);
  EXPECT_EQ(std::ranges::count(rest, 258) + std::ranges::count(rest, 259), 2);
}

/// A vocabulary that cannot spell all bytes allows what it can complete.
TEST(Vocabulary, MayLackBytes) {
  const VocabularyPointer vocabulary = vocabularyOf(
      {"{", "}", "\"", ":", "a", "b", "\u00e9", "1", "aa", "</s>", ","}, {9});
  const GrammarPointer grammar =
      compiled(GrammarSource::jsonObject(), vocabulary);
  std::unique_ptr<TokenConstraint> constraint = Grammar::constrain(grammar);
  for (int32_t token : {0, 2, 4})
    ASSERT_TRUE(constraint->accept(token));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 7, 8, 10}))
      << "but no two bytes that are one token only";
  EXPECT_EQ(refusal(GrammarSource::oneOf({"c", "ac"}), vocabulary),
            "no text satisfies the grammar");
  EXPECT_EQ(refusal(GrammarSource::jsonSchema(parsed(R"({"type":"array"})")),
                    vocabulary),
            "no text satisfies the grammar");
  const GrammarPointer some =
      compiled(GrammarSource::oneOf({"ac", "ab"}), vocabulary);
  constraint = Grammar::constrain(some);
  ASSERT_TRUE(constraint->accept(4));
  EXPECT_EQ(tokensOf(constraint->allowedTokens()), std::vector<int32_t>{5});
}
