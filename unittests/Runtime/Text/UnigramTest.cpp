//===- UnigramTest.cpp - Unigram and what XLM-R has with it ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

#include <random>

using namespace sandwich;

using Ids = std::vector<int32_t>;

/// A tokenizer.json of scored pieces; the first is for what is unknown.
static Json scoredFile(const Json &pieces) {
  return {{"version", "1.0"},
          {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}}}};
}

static Json letterFile() {
  return scoredFile(Json::parse(R"([["<unk>", 0], ["a", -1], ["b", -1.5],
    ["ab", -2], ["abc", -9], ["c", -3], ["cd", -4]])"));
}

TEST(Unigram, TakesThePathOfTheBestScore) {
  Tokenizer tokenizer = loaded(letterFile());
  EXPECT_EQ(encoded(tokenizer, "ab"), (Ids{3}));
  EXPECT_EQ(encoded(tokenizer, "abc"), (Ids{3, 5}));
  EXPECT_EQ(encoded(tokenizer, "abcd"), (Ids{3, 6}));
  Json file = letterFile();
  file["model"]["vocab"][4][1] = -4.5;
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{4}));
  file["model"]["vocab"][3][1] = -2.5;
  EXPECT_EQ(encoded(loaded(file), "ab"), (Ids{3}))
      << "of paths that score alike, the one whose last token begins first";
}

TEST(Unigram, FusesUnknownCharacters) {
  Json file = letterFile();
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "xyaz\u00E9\u9762d"), (Ids{0, 1, 0}));
  EXPECT_EQ(encoded(tokenizer, "x<unk>y"), (Ids{0}));
  // With pieces this likely, two unknown characters are better than one token,
  // and together they are that token all the same.
  for (Json &piece : file["model"]["vocab"])
    piece[1] = piece[1].get<double>() + 40;
  file["model"]["vocab"].push_back({"xy", 31});
  EXPECT_EQ(encoded(loaded(file), "xy"), (Ids{7}));
}

TEST(Unigram, FallsBackToBytesWhereEachHasAToken) {
  Json file = letterFile();
  Json &pieces = file["model"]["vocab"];
  for (const char *byte : {"<0xC3>", "<0xA9>", "<0xA8>"})
    pieces.push_back({byte, 0});
  EXPECT_EQ(encoded(loaded(file), "a\u00E9"), (Ids{1, 0}));
  file["model"]["byte_fallback"] = true;
  EXPECT_EQ(encoded(loaded(file), "a\u00E9\u00E8b"), (Ids{1, 7, 8, 7, 9, 2}));
  EXPECT_EQ(encoded(loaded(file), "a\u00E9xb"), (Ids{1, 0, 2}));
}

TEST(Unigram, TakesTheLastOfEqualPieces) {
  Json file = letterFile();
  file["model"]["vocab"].push_back({"ab", -1});
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "ab"), (Ids{7}));
  EXPECT_EQ(tokenizer.tokenOf(3), "ab");
  EXPECT_EQ(tokenizer.vocabularySize(), 8u);
}

TEST(Unigram, MakesNoSpecialTokenOfText) {
  Json file = letterFile();
  file["added_tokens"] = Json::array({addedToken(3, "ab", true)});
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "ab"), (Ids{3}));
  auto ids = tokenizer.encode("ab");
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(*ids, (Ids{1, 2}));
}

TEST(Unigram, ReadsFilesThatNameNoModelType) {
  Json file = letterFile();
  file["model"].erase("type");
  EXPECT_EQ(encoded(loaded(file), "abc"), (Ids{3, 5}));
}

/// All paths, one by one; only for texts of few characters, all of them known.
static double bestScore(const Json &pieces, std::string_view text) {
  if (text.empty())
    return 0;
  double best = -1e9;
  for (const Json &piece : pieces) {
    const auto token = piece[0].get<std::string>();
    if (text.starts_with(token))
      best = std::max(best, piece[1].get<double>() +
                                bestScore(pieces, text.substr(token.size())));
  }
  return best;
}

TEST(Unigram, FindsTheBestOfAllPaths) {
  std::mt19937 random(5);
  for (int round = 0; round != 40; ++round) {
    Json pieces = Json::array({{"<unk>", 0}});
    for (const char *token : {"a", "b", "ab", "ba", "aa", "aab", "abab", "bb"})
      pieces.push_back({token, -static_cast<double>(random() % 1000) / 100});
    Tokenizer tokenizer = loaded(scoredFile(pieces));
    std::string text;
    for (int i = 0; i != 12; ++i)
      text += random() % 2 ? 'a' : 'b';
    double score = 0;
    std::string joined;
    for (int32_t id : encoded(tokenizer, text)) {
      score += pieces[static_cast<size_t>(id)][1].get<double>();
      joined += *tokenizer.tokenOf(id);
    }
    EXPECT_EQ(joined, text);
    EXPECT_NEAR(score, bestScore(pieces, text), 1e-9) << pieces << text;
  }
}

/// Neither where each position may be the end of a token that began before nor
/// where none may.
TEST(Unigram, TakesLongTextInItsStride) {
  Json pieces = Json::array({{"<unk>", 0}, {"a", -1}, {"aa", -1.5}});
  pieces.push_back({std::string(60, 'a'), -20});
  Tokenizer tokenizer = loaded(scoredFile(pieces));
  EXPECT_EQ(encoded(tokenizer, std::string(1'200'000, 'a')).size(), 20'000u);
  EXPECT_EQ(encoded(tokenizer, std::string(1'000'000, 'x')), (Ids{0}));
}

TEST(BadUnigram, NamesTheField) {
  auto errorWith = [](const char *pointer, const char *value) {
    Json file = letterFile();
    file[Json::json_pointer(pointer)] = Json::parse(value);
    auto tokenizer = Tokenizer::fromText(file.dump());
    return tokenizer ? "" : tokenizer.error().message;
  };
  EXPECT_EQ(errorWith("/model/vocab", R"({"a": 0})"),
            "model.vocab: must be a list of tokens and their scores");
  for (const char *piece : {"3", "[]", "[\"a\"]", "[1, 1]", "[\"a\", \"b\"]",
                            "[\"a\", 1, 2]", "null"})
    EXPECT_EQ(errorWith("/model/vocab/2", piece),
              "model.vocab[2]: must be a token and its score");
  EXPECT_EQ(errorWith("/model/unk_id", "7"),
            "model.unk_id: id 7 is beyond the vocabulary of 7 tokens");
  EXPECT_EQ(errorWith("/model/unk_id", "null"), "model.unk_id: is missing");
  EXPECT_EQ(errorWith("/model/vocab", "[]"),
            "model.unk_id: id 0 is beyond the vocabulary of 0 tokens");
  EXPECT_EQ(errorWith("/model/byte_fallback", "1"),
            "model.byte_fallback: must be true or false, is 1");
}

/// The base64 of `bytes`.
static std::string toBase64(const std::string &bytes) {
  constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k != 3; ++k)
      bits =
          bits << 8 |
          (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k != 4; ++k)
      text += i + k > bytes.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

static std::string toBytes(uint32_t number) {
  std::string bytes;
  for (int i = 0; i != 4; ++i)
    bytes += static_cast<char>(number >> 8 * i);
  return bytes;
}

/// A map of "x" to `texts` from `offset` on: a trie of 512 units whose nodes
/// begin at 256, and whose only value is at 0x80.
static std::string mapOf(uint32_t offset, const std::string &texts) {
  std::string bytes = toBytes(512 * 4);
  for (uint32_t place = 0; place != 512; ++place)
    bytes += toBytes(place == 0 ? 256 << 10
                     : place == (256 ^ 'x')
                         ? ((256 ^ 'x' ^ 0x80) << 10 | 1 << 8 | 'x')
                     : place == 0x80 ? 1U << 31 | offset
                                     : 0);
  return bytes + texts;
}

/// The error for a Precompiled normalizer with `map`, or what it makes of the
/// known characters a, b and c.
static std::string withMap(const std::string &map, const std::string &text) {
  Json file = letterFile();
  file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
  file["decoder"] = {{"type", "Fuse"}};
  auto tokenizer = Tokenizer::fromText(file.dump());
  return tokenizer ? tokenizer->decode(encoded(*tokenizer, text), false)
                   : tokenizer.error().message;
}

TEST(Precompiled, ReplacesCharactersAndClusters) {
  const std::string texts("abc\0", 4);
  EXPECT_EQ(withMap(toBase64(mapOf(0, texts)), "axb"), "aabcb");
  EXPECT_EQ(withMap(toBase64(mapOf(1, texts)), "axb"), "abcb");
  EXPECT_EQ(withMap(toBase64(mapOf(3, texts)), "axb"), "ab");
  // A short cluster becomes what its first character does, a long one not.
  EXPECT_EQ(withMap(toBase64(mapOf(2, texts)), "x\u0301"), "c");
  EXPECT_EQ(withMap(toBase64(mapOf(2, texts)), "x\u0301\u0301\u0301"),
            "c<unk>");
}

TEST(BadPrecompiled, NamesTheField) {
  const std::string start = "normalizer.precompiled_charsmap: ";
  auto errorOf = [&](const std::string &map) {
    const std::string error = withMap(map, "");
    EXPECT_TRUE(error.starts_with(start)) << error;
    return error.substr(std::min(error.size(), start.size()));
  };
  for (const char *map : {"*", "a", "AAA", "AA=A"})
    EXPECT_EQ(errorOf(map), "is not base64") << map;
  EXPECT_EQ(errorOf(""), "is no map of characters: it has 0 bytes, and its "
                         "trie is said to have 0");
  EXPECT_EQ(errorOf(toBase64(toBytes(0))),
            "is no map of characters: it has 4 bytes, and its trie is said to "
            "have 0");
  EXPECT_EQ(errorOf(toBase64(toBytes(8) + toBytes(0))),
            "is no map of characters: it has 8 bytes, and its trie is said to "
            "have 8");
  EXPECT_EQ(errorOf(toBase64(toBytes(UINT32_MAX) + toBytes(0))),
            "is no map of characters: it has 8 bytes, and its trie is said to "
            "have 4294967295");
  EXPECT_EQ(errorOf(toBase64(mapOf(0, "\xFF"))),
            "is no map of characters: its texts are not UTF-8");
  for (uint32_t offset : {1U, 3U, 0x7FFFFFFFU})
    EXPECT_EQ(errorOf(toBase64(mapOf(offset, "\u00E9"))),
              "is no map of characters: unit 376 has a value that is not the "
              "offset of a text");
}

/// Whatever units there are, they are not read beyond.
TEST(BadPrecompiled, LeadsNowhere) {
  std::mt19937 random(9);
  for (int round = 0; round != 2000; ++round) {
    const uint32_t count = 1 + random() % 600;
    std::string bytes = toBytes(4 * count);
    for (uint32_t i = 0; i != count; ++i)
      bytes += toBytes((random() % 600) << 10 | (random() % 50 == 0) << 8 |
                       (random() % 128));
    bytes += std::string(1000, 'a');
    std::string text = "\u00E9\u0301";
    for (int i = 0; i != 40; ++i)
      text += static_cast<char>(random() % 128);
    EXPECT_FALSE(findInvalidUtf8(withMap(toBase64(bytes), text)));
  }
}

TEST(BadPrecompiled, InflatesTheText) {
  const std::string map = toBase64(mapOf(0, std::string(100'000, 'a')));
  Json file = letterFile();
  file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
  auto ids = loaded(file).encode(std::string(100'000, 'x'));
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "normalizer: the text grows beyond 3265536 bytes");
}
