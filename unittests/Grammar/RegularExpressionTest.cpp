//===- RegularExpressionTest.cpp - Patterns and their texts ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestGrammar.h"

#include <array>
#include <regex>

using namespace sandwich;

static std::string patternRefusal(std::string text) {
  return refusal(GrammarSource::regularExpression(std::move(text)));
}

namespace {

struct PatternCase {
  const char *pattern;
  std::vector<const char *> texts, others;
};

} // namespace

TEST(RegularExpression, HasTheTextsItDescribes) {
  const std::vector<PatternCase> cases = {
      {"ab?(?:c|d+){2,3}",
       {"acc", "abcd", "abddcddd", "accc"},
       {"", "a", "ac", "acccc", "xacc", "accx"}},
      {"^ab$", {"ab"}, {"a", "^ab$", "abb"}},
      {"^a|b$", {"a", "b"}, {"ab", ""}},
      {"", {""}, {"a"}},
      {"a||b", {"a", "", "b"}, {"ab"}},
      {"[a-c\\d_-]+", {"a-b_9", "-"}, {"d", ""}},
      {"[^a-c]", {"d", "\u00e9", "\n", "\U0001F600"}, {"a", "dd", "\xC3"}},
      {"[\\]\\-^]", {"]", "-", "^"}, {"\\"}},
      {".", {"x", "\u20ac", "\U0010FFFF"}, {"\n", "\r", "\u2028", "\u2029"}},
      {"\\w\\W\\d\\D\\s\\S",
       {"a-1a b", "_\u00e9"
                  "0\u00e9\u00a0x"},
       {"a11a b"}},
      {"\\t\\n\\r\\f\\v\\0\\cA\\x41", {}, {"A"}},
      {"\\u00e9\\u{1F600}\\uD83D\\uDE00", {"\u00e9\U0001F600\U0001F600"}, {}},
      {"(?<year>\\d{4})-(?P<month>\\d\\d)", {"2024-02"}, {"2024-2"}},
      {"a*?b+?c??", {"b", "aabbc"}, {"a", "bcc"}},
      {"a{2}b{0}c{1,}d{0,2}",
       {"aac", "aaccdd"},
       {"aabc", "aac\u00e9", "aacddd"}},
      {"(a*)*", {"", "aaaa"}, {"b"}},
      {"(a?){3}b", {"b", "aaab"}, {"aaaab"}},
      {"[\u00e9-\u00eb]", {"\u00ea"}, {"\u00ec", "\xC3"}},
      {"[\\uFFFF-\\u{10000}]", {"\uFFFF", "\U00010000"}, {"\U00010001"}},
      {"]}", {"]}"}, {}},
  };
  for (const PatternCase &each : cases) {
    const GrammarPointer grammar = compiled(
        GrammarSource::regularExpression(each.pattern), bytesVocabulary());
    ASSERT_TRUE(grammar) << each.pattern;
    for (const char *text : each.texts)
      EXPECT_TRUE(accepts(grammar, text)) << each.pattern << " has " << text;
    for (const char *text : each.others)
      EXPECT_FALSE(accepts(grammar, text)) << each.pattern << " has " << text;
  }
  EXPECT_TRUE(accepts(
      compiled(GrammarSource::regularExpression("\\t\\n\\r\\f\\v\\0\\cA\\x41"),
               bytesVocabulary()),
      std::string_view("\t\n\r\f\v\0\1A", 8)));
}

TEST(RegularExpression, IsRefusedByName) {
  const std::vector<std::pair<const char *, const char *>> cases = {
      {"a(?=b)", "the pattern has at byte 2 a look-around, which is not "
                 "supported"},
      {"(?<!a)", "the pattern has at byte 1 a look-around, which is not "
                 "supported"},
      {"(a)\\1",
       "the pattern has at byte 4 a back-reference, which is not regular"},
      {"\\k<a>",
       "the pattern has at byte 1 a back-reference, which is not regular"},
      {"a\\b", "the pattern has at byte 2 a word boundary, which is not "
               "supported"},
      {"\\p{L}", "the pattern has at byte 1 a Unicode property, which is not "
                 "supported"},
      {"(?i)a", "the pattern has at byte 1 a kind of group that is not "
                "supported"},
      {"[[:alpha:]]",
       "the pattern has at byte 1 a POSIX class, which is not supported"},
      {"\\A", "the pattern has at byte 1 the escape \\A, which is not "
              "supported"},
      {"[]", "the pattern has at byte 1 an empty class; dialects differ in "
             "what it is"},
      {"[b-a]", "the pattern has at byte 4 a range before it that ends before "
                "it begins"},
      {"[a-\\d]", "the pattern has at byte 5 a range before it whose end is a "
                  "class"},
      {"[a", "the pattern has at byte 2 the end inside of a class"},
      {"(a", "the pattern has at byte 2 no end of a group"},
      {"a)", "the pattern has at byte 1 a parenthesis that closes nothing"},
      {"*a", "the pattern has at byte 0 a quantifier of nothing"},
      {"a**", "the pattern has at byte 2 a quantifier of a quantifier"},
      {"a{2", "the pattern has at byte 3 no end of a number of repetitions"},
      {"a{,2}", "the pattern has at byte 2 a brace that is no number of "
                "repetitions; a literal one is written \\{"},
      {"a{3,2}", "the pattern has at byte 6 before it a number of repetitions "
                 "that ends before it begins"},
      {"a{9999999}",
       "the pattern has at byte 8 a number of repetitions above 1000000"},
      {"a\\", "the pattern has at byte 2 nothing after a backslash"},
      {"\\u12", "the pattern has at byte 4 no hexadecimal digit in an escape"},
      {"\\uD83D", "the pattern has at byte 6 a surrogate without the other"},
      {"\\u{110000}", "the pattern has at byte 9 an escape beyond U+10FFFF"},
      {"\\u{D800}",
       "the pattern has at byte 8 a surrogate, which is no character"},
      {"\\01", "the pattern has at byte 2 an octal escape, which is not "
               "supported"},
      {"a^", "the pattern has at byte 1 an anchor that is not at the beginning "
             "or end"},
      {"(a$)", "the pattern has at byte 2 an anchor that is not at the "
               "beginning or end"},
      {"[^\\d\\D]", "no text satisfies the grammar"},
  };
  for (const auto &[pattern, reason] : cases)
    EXPECT_EQ(patternRefusal(pattern), reason) << pattern;
  EXPECT_EQ(patternRefusal("\xC3"), "the grammar is not UTF-8");
  EXPECT_EQ(patternRefusal(std::string(200, '(') + std::string(200, ')')),
            "the pattern has at byte 101 groups nested deeper than 100");
}

/// Patterns of few bytes whose automata have more states than memory has room
/// for (CVE-2025-48887 and its kind).
TEST(RegularExpression, ThatExplodesIsRefused) {
  constexpr const char *reason =
      "the grammar is too large or too complex to compile";
  for (const char *pattern :
       {"(a|b)*a(a|b){60}", "((a{1000}){1000}){1000}", "(.*a){1000}x",
        "(a?){30000}a{30000}", "((a|b)*(a|c)*(b|c)*){50}d{100}e{1000000}",
        "(.{0,300}\\d){300}"})
    EXPECT_EQ(patternRefusal(pattern), reason) << pattern;
  std::string options;
  for (int i = 0; i < 10000; ++i)
    options += "a?b?";
  EXPECT_EQ(patternRefusal(options), reason);
  EXPECT_EQ(patternRefusal(std::string(2 << 20, 'a')),
            "the grammar has 2097172 bytes; at most 1048576 are accepted");
}

TEST(RegularExpression, MayBeLong) {
  const GrammarPointer grammar = compiled(
      GrammarSource::regularExpression("[a-z ]{0,20000}"), bytesVocabulary());
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(accepts(grammar, std::string(20000, 'x')));
  EXPECT_FALSE(accepts(grammar, std::string(20001, 'x')));
}

namespace {

/// Random patterns of the part of the syntax that std::regex has, too.
class PatternWriter {
public:
  explicit PatternWriter(uint32_t seed) : random(seed) {}

  std::string alternatives(int depth) {
    std::string text = sequence(depth);
    while (random() % 3 == 0)
      text += "|" + sequence(depth);
    return text;
  }

  std::string word() {
    std::string text(random() % 7, 'a');
    for (char &each : text)
      each = "ab1-"[random() % 4];
    return text;
  }

private:
  std::string sequence(int depth) {
    std::string text;
    for (auto count = 1 + random() % 3; count > 0; --count) {
      text += atom(depth);
      constexpr std::array<const char *, 9> quantifiers = {
          "", "", "", "", "*", "+", "?", "{2}", "{1,3}"};
      text += quantifiers[random() % quantifiers.size()];
    }
    return text;
  }

  std::string atom(int depth) {
    if (depth > 0 && random() % 3 == 0)
      return "(" + alternatives(depth - 1) + ")";
    constexpr std::array<const char *, 9> atoms = {
        "a", "b", "1", "-", ".", "[ab]", "[^a]", "\\d", "[a-b1]"};
    return atoms[random() % atoms.size()];
  }

  std::mt19937 random;
};

} // namespace

TEST(RegularExpression, AgreesWithTheStandardLibrary) {
  PatternWriter writer(1);
  int matches = 0, others = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string pattern = writer.alternatives(2);
    SCOPED_TRACE(pattern);
    const std::regex reference(pattern);
    auto grammar = Grammar::compile(GrammarSource::regularExpression(pattern),
                                    bytesVocabulary());
    if (!grammar) {
      EXPECT_EQ(grammar.error().message,
                "the grammar is too large or too complex to compile");
      ++refused;
      continue;
    }
    for (int i = 0; i < 25; ++i) {
      const std::string text = writer.word();
      const bool expected = std::regex_match(text, reference);
      EXPECT_EQ(accepts(*grammar, text), expected) << text;
      ++(expected ? matches : others);
    }
  }
  EXPECT_GT(matches, 1000);
  EXPECT_GT(others, 1000);
  EXPECT_LT(refused, 8);
}

TEST(Choices, AreTheOnlyTexts) {
  const GrammarPointer grammar =
      compiled(GrammarSource::oneOf({"yes", "no", "no way", "", "\u00e9"}),
               bytesVocabulary());
  for (const char *text : {"yes", "no", "no way", "", "\u00e9"})
    EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const char *text : {"y", "no w", "yesno", "\xC3"})
    EXPECT_FALSE(accepts(grammar, text)) << text;
  EXPECT_EQ(refusal(GrammarSource::oneOf({})), "there are no choices");
  EXPECT_EQ(refusal(GrammarSource::oneOf({"a", "\xFF"})),
            "the grammar is not UTF-8");
}

/// Beginnings of each other, deeper than a stack would be.
TEST(Choices, MayBeMany) {
  std::vector<std::string> choices;
  for (size_t length = 0; length < 1000; ++length)
    choices.emplace_back(length, 'a');
  const GrammarPointer grammar =
      compiled(GrammarSource::oneOf(choices), bytesVocabulary());
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(accepts(grammar, choices[999]));
  EXPECT_FALSE(accepts(grammar, std::string(1000, 'a')));
}
