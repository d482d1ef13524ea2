//===- GrammarCacheTest.cpp - Grammars compiled once ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestGrammar.h"

#include "sandwich/Grammar/GrammarCache.h"

#include <set>
#include <thread>

using namespace sandwich;

static GrammarSource numbered(int number) {
  return GrammarSource::literal(std::to_string(number));
}

TEST(GrammarCache, CompilesTheSameSourceOnce) {
  GrammarCache cache(bytesVocabulary());
  auto first = cache.find(GrammarSource::jsonObject());
  ASSERT_TRUE(first);
  auto second = cache.find(GrammarSource::jsonObject());
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(cache.compilations(), 1u);
  // Equal texts of another kind are another grammar.
  auto literal = cache.find(GrammarSource::literal("a*"));
  auto pattern = cache.find(GrammarSource::regularExpression("a*"));
  ASSERT_TRUE(literal && pattern);
  EXPECT_NE(*literal, *pattern);
  EXPECT_TRUE(accepts(*pattern, "aa"));
  EXPECT_FALSE(accepts(*literal, "aa"));
  EXPECT_EQ(cache.size(), 3u);
}

TEST(GrammarCache, KeepsNoErrors) {
  GrammarCache cache(bytesVocabulary());
  for (int i = 0; i < 2; ++i) {
    auto grammar = cache.find(GrammarSource::regularExpression("("));
    ASSERT_FALSE(grammar);
    EXPECT_EQ(grammar.error().kind, ErrorKind::InvalidArgument);
  }
  EXPECT_EQ(cache.compilations(), 2u);
  EXPECT_EQ(cache.size(), 0u);
  GrammarSource deep = GrammarSource::literal("a");
  for (int i = 0; i < 1000; ++i)
    deep = GrammarSource::sequence({deep});
  EXPECT_EQ(cache.find(deep).error().message, "the grammar is nested too deep");
  Json value = 1;
  for (int i = 0; i < 1000; ++i)
    value = Json::array({value});
  EXPECT_EQ(
      cache.find(GrammarSource::jsonSchema({{"const", value}})).error().message,
      "the grammar is nested too deep");
}

TEST(GrammarCache, ForgetsWhatWasNotAskedForTheLongest) {
  GrammarCache cache(bytesVocabulary(), {.grammars = 3});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(cache.find(numbered(i)));
  ASSERT_TRUE(cache.find(numbered(0)));
  auto last = cache.find(numbered(3));
  ASSERT_TRUE(last);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.compilations(), 4u);
  ASSERT_TRUE(cache.find(numbered(0)));
  EXPECT_EQ(cache.compilations(), 4u);
  ASSERT_TRUE(cache.find(numbered(1)));
  EXPECT_EQ(cache.compilations(), 5u);

  GrammarCache small(bytesVocabulary(), {.bytes = 1});
  auto only = small.find(numbered(1));
  ASSERT_TRUE(only);
  EXPECT_EQ(small.size(), 0u);
  EXPECT_TRUE(accepts(*only, "1")) << "whoever has it keeps it";
}

TEST(GrammarCache, ServesManyThreads) {
  constexpr int threads = 8, sources = 5;
  GrammarCache cache(bytesVocabulary());
  std::vector<std::set<GrammarPointer>> found(threads);
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < threads; ++worker)
      workers.emplace_back([&, worker] {
        for (int i = 0; i < 50; ++i) {
          auto grammar = cache.find(GrammarSource::sequence(
              {numbered((worker + i) % sources), GrammarSource::jsonObject()}));
          ASSERT_TRUE(grammar);
          found[worker].insert(*grammar);
          const auto constraint = Grammar::constrain(*grammar);
          EXPECT_TRUE(constraint->accept('0' + (worker + i) % sources));
          EXPECT_EQ(tokensOf(constraint->allowedTokens()),
                    std::vector<int32_t>{'{'});
        }
      });
  }
  EXPECT_EQ(cache.compilations(), uint64_t(sources));
  for (const std::set<GrammarPointer> &each : found)
    EXPECT_EQ(each, found.front());
}

/// A thread that asks for many grammars of which few are kept, while others do.
TEST(GrammarCache, ForgetsWhileOthersAsk) {
  GrammarCache cache(bytesVocabulary(), {.grammars = 2});
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < 4; ++worker)
    workers.emplace_back([&cache, worker] {
      std::mt19937 random(worker);
      for (int i = 0; i < 300; ++i) {
        const int number = static_cast<int>(random() % 6);
        auto grammar = cache.find(numbered(number));
        ASSERT_TRUE(grammar);
        ASSERT_TRUE(Grammar::constrain(*grammar)->accept('0' + number));
      }
    });
  workers.clear();
  EXPECT_LE(cache.size(), 2u);
}
