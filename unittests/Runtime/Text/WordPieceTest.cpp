//===- WordPieceTest.cpp - WordPiece and what BERT has with it ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

using namespace sandwich;

using Ids = std::vector<int32_t>;

/// A tokenizer.json of the tokens [UNK], un, ##able, ##ab, ##le, able and
/// [SEP].
static Json wordFile() {
  return Json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 6, "content": "[SEP]", "special": true}],
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {
      "type": "WordPiece", "unk_token": "[UNK]",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 12,
      "vocab": {"[UNK]": 0, "un": 1, "##able": 2, "##ab": 3, "##le": 4,
                "able": 5, "[SEP]": 6}
    }
  })");
}

TEST(WordPiece, TakesTheLongestPieces) {
  Tokenizer tokenizer = loaded(wordFile());
  EXPECT_EQ(encoded(tokenizer, "unable able unabable"),
            (Ids{1, 2, 5, 1, 3, 2}));
  EXPECT_EQ(encoded(tokenizer, "unabl unble ##able"), (Ids{0, 0, 0, 0, 5}))
      << "words that do not come out even, and marks that are punctuation";
  EXPECT_EQ(encoded(tokenizer, "unableableab un"), (Ids{1, 2, 2, 3, 1}));
  EXPECT_EQ(encoded(tokenizer, "unableableable un"), (Ids{0, 1}))
      << "a word of more characters than may be";
}

TEST(WordPiece, ReadsFilesThatNameNoModelType) {
  Json file = wordFile();
  file["model"].erase("type");
  EXPECT_EQ(encoded(loaded(file), "unable"), (Ids{1, 2}));
}

TEST(WordPiece, MakesNoSpecialTokenOfText) {
  Json file = wordFile();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  Tokenizer tokenizer = loaded(file);
  EXPECT_EQ(encoded(tokenizer, "un [SEP]"), (Ids{1, 6}));
  auto ids = tokenizer.encode("un [SEP]");
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(*ids, (Ids{1, 0}));
}

TEST(WordPiece, DecodesWithSpacesBetweenWords) {
  Json file = wordFile();
  Json &words = file["model"]["vocab"];
  for (const char *word : {".", "'", "##'s", "n't", "do not"})
    words[word] = words.size();
  Tokenizer tokenizer = loaded(file);
  for (const Ids &ids :
       {Ids{1, 2, 5, 7}, Ids{2, 1}, Ids{1, 8, 5}, Ids{1, 9, 10, 11}}) {
    EXPECT_EQ(streamed(tokenizer, ids, true), tokenizer.decode(ids, true));
  }
  EXPECT_EQ(tokenizer.decode(Ids{1, 2, 5, 7}, true), "unable able.");
  EXPECT_EQ(tokenizer.decode(Ids{2, 1}, true), "##able un");
  EXPECT_EQ(tokenizer.decode(Ids{1, 8, 5}, true), "un ' able");
  EXPECT_EQ(tokenizer.decode(Ids{1, 9, 10, 11}, true), "un'sn't don't");
  EXPECT_EQ(tokenizer.bytesOf(2), "able");
  EXPECT_EQ(tokenizer.bytesOf(5), " able");
  file["decoder"]["cleanup"] = false;
  EXPECT_EQ(loaded(file).decode(Ids{1, 2, 5, 7}, true), "unable able .");
}

/// What the normalizer `changes` makes of `text`, seen through a tokenizer all
/// of whose characters are unknown but one space, which is kept.
static std::string normalized(const Json &changes, const std::string &text) {
  Json normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", false},
                     {"handle_chinese_chars", false},
                     {"strip_accents", nullptr},
                     {"lowercase", false}};
  normalizer.update(changes);
  Json file = smallFile();
  file["normalizer"] = normalizer;
  Json &vocabulary = file["model"]["vocab"] = Json::object();
  for (int byte = 0; byte != 256; ++byte) {
    char token[7];
    std::snprintf(token, sizeof(token), "<0x%02X>", byte);
    vocabulary[token] = byte;
  }
  file["model"]["merges"] = Json::array();
  file["model"]["byte_fallback"] = true;
  file["decoder"] = {{"type", "ByteFallback"}};
  Tokenizer tokenizer = loaded(file);
  return tokenizer.decode(encoded(tokenizer, text), false);
}

TEST(BertNormalizer, DoesWhatItIsAskedFor) {
  const std::string text = "A\u00C9\t\u3000\u200B\uFFFD\u9762b\u304F";
  EXPECT_EQ(normalized(Json::object(), text), text);
  EXPECT_EQ(normalized({{"clean_text", true}}, text), "A\u00C9  \u9762b\u304F");
  EXPECT_EQ(normalized({{"handle_chinese_chars", true}}, "a\u9762b\u304F"),
            "a \u9762 b\u304F");
  EXPECT_EQ(normalized({{"lowercase", true}}, "A\u00C9\u0130"), "aei");
  EXPECT_EQ(
      normalized({{"lowercase", true}, {"strip_accents", false}}, "A\u00C9"),
      "a\u00E9");
  EXPECT_EQ(normalized({{"strip_accents", true}}, "A\u00C9e\u0301"), "AEe");
}

TEST(BadWordPiece, NamesTheField) {
  auto errorWith = [](const char *pointer, const Json &value) {
    Json file = wordFile();
    file[Json::json_pointer(pointer)] = value;
    auto tokenizer = Tokenizer::fromText(file.dump());
    return tokenizer ? "" : tokenizer.error().message;
  };
  EXPECT_EQ(errorWith("/model/unk_token", "<unk>"),
            "model.unk_token: the token \"<unk>\" is not in the vocabulary");
  EXPECT_EQ(errorWith("/model/unk_token", nullptr),
            "model.unk_token: is missing");
  EXPECT_EQ(errorWith("/model/continuing_subword_prefix", 1),
            "model.continuing_subword_prefix: must be a string, is 1");
  EXPECT_EQ(errorWith("/model/max_input_chars_per_word", -1),
            "model.max_input_chars_per_word: must be a whole number that is "
            "not negative, is -1");
  EXPECT_EQ(errorWith("/decoder/prefix", nullptr),
            "decoder.prefix: is missing");
  EXPECT_EQ(errorWith("/decoder/cleanup", 1),
            "decoder.cleanup: must be true or false, is 1");
  EXPECT_EQ(errorWith("/normalizer", {{"type", "BertNormalizer"}}),
            "normalizer.clean_text: is missing");
  const std::string longest(1025, 'x');
  EXPECT_EQ(errorWith(("/model/vocab/" + longest).c_str(), 7),
            "model.vocab: the token \"" + longest.substr(0, 60) +
                "\"... is 1025 bytes long; at most 1024 are accepted");
}

/// However long words may be.
TEST(WordPiece, TakesLongWordsInItsStride) {
  Json file = wordFile();
  file["model"]["max_input_chars_per_word"] = UINT64_MAX;
  file["model"]["vocab"]["##" + std::string(1000, 'x')] = 7;
  file["model"]["vocab"]["##x"] = 8;
  std::string text = "un";
  text.append(500'000, 'x');
  EXPECT_EQ(encoded(loaded(file), text).size(), 501u);
  text += "y";
  EXPECT_EQ(encoded(loaded(file), text), (Ids{0}));
}
