//===- RegularExpressionTest.cpp - Patterns, against PCRE2's neighbours ---===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestGrammar.h"

#include <regex>

using namespace sandwich;

static GrammarPointer pattern(std::string text) {
  return compiled(GrammarSource::regularExpression(std::move(text)),
                  bytesVocabulary());
}

static std::string patternRefusal(std::string text) {
  return refusal(GrammarSource::regularExpression(std::move(text)));
}

TEST(RegularExpression, MatchesWholeTexts) {
  const GrammarPointer grammar = pattern("ab?(?:c|d+){2,3}");
  for (const char *text : {"acc", "abcd", "abddcddd", "accc"})
    EXPECT_TRUE(accepts(grammar, text)) << text;
  for (const char *text : {"", "a", "ac", "acccc", "xacc", "accx"})
    EXPECT_EQ(accepts(grammar, text),
              std::string_view(text) == "acccc" && false)
        << text;
}
