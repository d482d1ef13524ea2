//===- TextEncoderTest.cpp - What becomes of a text -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Encoding/TextEncoder.h"
#include "TemporaryFolder.h"
#include "WriteSumModel.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sandwich;
using namespace sandwich::test;

namespace {

class TextEncoderTest : public testing::Test {
protected:
  std::optional<TextEncoder>
  make(const std::function<void(proto::Manifest &)> &change = {}) {
    const std::string path = folder.path() + "/sum.sandwich";
    EXPECT_TRUE(writeSumModel(path, change));
    Result<Artifact> artifact = Artifact::open(path, {.use = ModelUse::Encode});
    EXPECT_TRUE(artifact);
    Result<TextEncoder> encoder = TextEncoder::create(*artifact);
    EXPECT_TRUE(encoder) << encoder.error().message;
    return encoder ? std::optional(*std::move(encoder)) : std::nullopt;
  }

  TemporaryFolder folder;
};

using Ids = std::vector<int32_t>;

TEST_F(TextEncoderTest, AddsSpecialTokensAndPrompts) {
  auto encoder = make();
  ASSERT_TRUE(encoder);
  auto ids = encoder->encode("a b", std::nullopt, {});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(ids->ids, (Ids{1, 10, 11, 2}));
  EXPECT_EQ(ids->typeIds, (Ids{0, 0, 0, 0}));
  ids = encoder->encode("a", std::nullopt, {.prompt = "query"});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->ids, (Ids{1, 26, 10, 2}));
  // What users type is no special token.
  ids = encoder->encode("[SEP]", std::nullopt, {});
  ASSERT_TRUE(ids);
  EXPECT_NE(ids->ids, (Ids{1, 2, 2}));
}

TEST_F(TextEncoderTest, TakesTheDefaultPromptUnlessToldOtherwise) {
  auto encoder = make([](proto::Manifest &manifest) {
    manifest.mutable_encoding()->set_default_prompt("query");
  });
  ASSERT_TRUE(encoder);
  EXPECT_EQ(encoder->encode("a", std::nullopt, {})->ids, (Ids{1, 26, 10, 2}));
  EXPECT_EQ(encoder->encode("a", std::nullopt, {.prompt = ""})->ids,
            (Ids{1, 10, 2}));
  EXPECT_EQ(encoder->encode("a", std::nullopt, {.prompt = "passage"})->ids,
            (Ids{1, 10, 2}));
}

TEST_F(TextEncoderTest, TellsPairsApart) {
  auto encoder = make();
  ASSERT_TRUE(encoder);
  auto ids = encoder->encode("a", "b c", {});
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->ids, (Ids{1, 10, 2, 11, 12, 2}));
  EXPECT_EQ(ids->typeIds, (Ids{0, 0, 0, 1, 1, 1}));
  encoder = make([](proto::Manifest &manifest) {
    manifest.mutable_encoding()->set_token_types(1);
  });
  EXPECT_EQ(encoder->encode("a", "b c", {})->typeIds, (Ids{0, 0, 0, 0, 0, 0}));
}

TEST_F(TextEncoderTest, TruncatesOnlyWhenAsked) {
  auto encoder = make();
  ASSERT_TRUE(encoder);
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += i == 39 ? "z" : "a ";
  auto refused = encoder->encode(text, std::nullopt, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::ContextExceeded);
  EXPECT_EQ(refused.error().message,
            "the text has 42 tokens, more than the model's 32; shorten it, or "
            "have it truncated");
  auto cut = encoder->encode(text, std::nullopt, {.truncate = true});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->ids.size(), 32U);
  EXPECT_EQ(cut->ids[30], 10);
  cut = encoder->encode(text, std::nullopt,
                        {.truncate = true, .truncateLeft = true});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->ids.size(), 32U);
  EXPECT_EQ(cut->ids[30], 35);
}

TEST_F(TextEncoderTest, RefusesPromptsThatAreNotThere) {
  auto encoder = make();
  ASSERT_TRUE(encoder);
  auto ids = encoder->encode("a", std::nullopt, {.prompt = "title"});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "the model has no prompt \"title\"; it has query, passage");
  ids = encoder->encode("a", "b", {.prompt = "query"});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message, "a pair of texts takes no prompt");
}

TEST(NormalizeLengthTest, KeepsZeros) {
  std::vector<float> vector = {3, 4};
  normalizeLength(vector);
  EXPECT_FLOAT_EQ(vector[0], 0.6F);
  EXPECT_FLOAT_EQ(vector[1], 0.8F);
  vector = {0, 0};
  normalizeLength(vector);
  EXPECT_EQ(vector, (std::vector<float>{0, 0}));
}

} // namespace
