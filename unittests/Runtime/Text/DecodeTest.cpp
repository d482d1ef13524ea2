//===- DecodeTest.cpp - Ids to text ---------------------------------------===//
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

/// A SentencePiece-style tokenizer: bytes are ids 0 to 255, then "▁", "a",
/// "▁a" and the special token "<s>".
static Json pieceFile() {
  Json file = smallFile();
  Json &vocabulary = file["model"]["vocab"] = Json::object();
  for (int byte = 0; byte != 256; ++byte) {
    char token[7];
    std::snprintf(token, sizeof(token), "<0x%02X>", byte);
    vocabulary[token] = byte;
  }
  vocabulary["\u2581"] = 256;
  vocabulary["a"] = 257;
  vocabulary["\u2581a"] = 258;
  file["model"]["merges"] = Json::array({"\u2581 a"});
  file["model"]["byte_fallback"] = true;
  file["added_tokens"] = Json::array({addedToken(259, "<s>", true)});
  file["decoder"] = Json::parse(R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  return file;
}

TEST(Decode, StripsOneSpaceAtTheBeginning) {
  Tokenizer tokenizer = loaded(pieceFile());
  EXPECT_EQ(tokenizer.decode(Ids{258, 258}, false), "a a");
  EXPECT_EQ(tokenizer.decode(Ids{256, 258}, false), " a");
  EXPECT_EQ(tokenizer.decode(Ids{257, 258}, false), "a a");
  EXPECT_EQ(tokenizer.decode(Ids{259, 258}, false), "<s> a");
  EXPECT_EQ(tokenizer.decode(Ids{259, 258}, true), "a");
  // A byte that is a space is stripped too.
  EXPECT_EQ(tokenizer.decode(Ids{' ', 258}, true), " a");
}

TEST(Decode, StripsTheEndOnlyAtTheEnd) {
  Json file = pieceFile();
  file["decoder"]["decoders"][3]["start"] = 0;
  file["decoder"]["decoders"][3]["stop"] = 2;
  Tokenizer tokenizer = loaded(file);
  StreamingDecoder decoder(tokenizer, false);
  EXPECT_EQ(decoder.decode(257), "a");
  EXPECT_EQ(decoder.decode(256), "");
  EXPECT_EQ(decoder.decode(256), "");
  EXPECT_EQ(decoder.decode(256), " ");
  EXPECT_EQ(decoder.decode(257), "  a");
  EXPECT_EQ(decoder.decode(256), "");
  EXPECT_EQ(decoder.flush(), "");
  EXPECT_EQ(decoder.decode(256), "") << "a flushed decoder is as new";
  EXPECT_EQ(decoder.decode(257), " a");
}

TEST(Decode, NamesTheBytesOfTokens) {
  Json file = pieceFile();
  file["added_tokens"].push_back(addedToken(260, "<call>", false));
  Tokenizer pieces = loaded(file);
  EXPECT_EQ(pieces.bytesOf(0xE2), "\xE2");
  EXPECT_EQ(pieces.bytesOf(0), std::string(1, '\0'));
  EXPECT_EQ(pieces.bytesOf(258), " a") << "also of the first token";
  EXPECT_EQ(pieces.bytesOf(260), "<call>");
  EXPECT_EQ(pieces.bytesOf(259), "") << "special";
  for (int32_t unknown : {-1, 261, INT32_MAX})
    EXPECT_EQ(pieces.bytesOf(unknown), "");

  file["decoder"] = Json::parse(
      R"({"type": "Metaspace", "replacement": "\u2581",
          "prepend_scheme": "always", "split": true})");
  EXPECT_EQ(loaded(file).bytesOf(258), " a");
  EXPECT_EQ(loaded(smallFile()).bytesOf(3), " ab") << "joined by spaces";
  Tokenizer bytes = loaded(readInput("byte-level.json"));
  for (int32_t byte = 0; byte != 256; ++byte)
    EXPECT_EQ(bytes.bytesOf(byte), std::string(1, static_cast<char>(byte)));
}

/// A text in the middle of another is the bytes of its tokens.
TEST(Decode, AddsUpTheBytesOfTokens) {
  std::mt19937 random(3);
  for (const char *name : {"byte-level.json", "pieces.json"}) {
    Tokenizer tokenizer = loaded(readInput(name));
    int compared = 0;
    for (int round = 0; round != 2000; ++round) {
      Ids ids(1 + random() % 4);
      std::string bytes;
      for (int32_t &id : ids) {
        id = static_cast<int32_t>(random() % tokenizer.vocabularySize());
        bytes += tokenizer.bytesOf(id);
      }
      if (findInvalidUtf8(bytes))
        continue;
      StreamingDecoder decoder(tokenizer, /*skipSpecialTokens=*/true);
      decoder.skip(encoded(tokenizer, "a"));
      std::string text;
      for (int32_t id : ids)
        text += decoder.decode(id);
      EXPECT_EQ(text + decoder.flush(), bytes);
      ++compared;
    }
    EXPECT_GT(compared, 100);
  }
}

TEST(Decode, SkipsUnknownIds) {
  Tokenizer tokenizer = loaded(pieceFile());
  EXPECT_EQ(
      tokenizer.decode(Ids{258, 260, -1, INT32_MAX, INT32_MIN, 257}, false),
      "aa");
  EXPECT_EQ(tokenizer.decode(Ids{}, false), "");
}

TEST(Decode, HoldsBackIncompleteCharacters) {
  Tokenizer tokenizer = loaded(pieceFile());
  StreamingDecoder decoder(tokenizer, false);
  EXPECT_EQ(decoder.decode(0xF0), "");
  EXPECT_EQ(decoder.decode(0x9F), "");
  EXPECT_EQ(decoder.decode(0x98), "");
  EXPECT_EQ(decoder.decode(0x80), "\U0001F600");
  EXPECT_EQ(decoder.decode('x'), "x");
  EXPECT_EQ(decoder.decode(0xC3), "");
  EXPECT_EQ(decoder.flush(), "\uFFFD");
}

TEST(Decode, ReplacesBytesThatFormNoCharacter) {
  Tokenizer tokenizer = loaded(pieceFile());
  auto decoded = [&](const Ids &ids) { return tokenizer.decode(ids, false); };
  EXPECT_EQ(decoded({0xFF, 'x'}), "\uFFFDx");
  EXPECT_EQ(decoded({0x80}), "\uFFFD");
  EXPECT_EQ(decoded({0xE2, 0x96, 257}), "\uFFFD\uFFFDa");
  EXPECT_EQ(decoded({0xE2, 0x96, 'x'}), "\uFFFD\uFFFDx");
  EXPECT_EQ(decoded({0xC0, 0x80}), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(decoded({0xED, 0xA0, 0x80}), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(decoded({0xF4, 0x90, 0x80, 0x80}), "\uFFFD\uFFFD\uFFFD\uFFFD")
      << "beyond U+10FFFF";
  EXPECT_EQ(decoded({0xC3, 0xA9, 0xFF}), "\u00E9\uFFFD");
}

TEST(Decode, ByteLevelReplacesMaximalSubparts) {
  Tokenizer tokenizer = loaded(readInput("byte-level.json"));
  auto decoded = [&](const Ids &ids) { return tokenizer.decode(ids, false); };
  EXPECT_EQ(decoded({0xE2, 0x96, 'x'}), "\uFFFDx");
  EXPECT_EQ(decoded({0xE2, 0x96}), "\uFFFD");
  EXPECT_EQ(decoded({0xFF, 0xFE}), "\uFFFD\uFFFD");
  EXPECT_EQ(decoded({0xF0, 0x9F, 0xE2, 0x82, 0xAC}), "\uFFFD\u20AC");
}

TEST(Decode, StreamsAnyIdsToTheSameValidText) {
  std::mt19937 random(7);
  for (const char *name : {"byte-level.json", "pieces.json"}) {
    Tokenizer tokenizer = loaded(readInput(name));
    for (int round = 0; round != 300; ++round) {
      Ids ids(random() % 40);
      for (int32_t &id : ids)
        id = static_cast<int32_t>(random() % (tokenizer.vocabularySize() + 2));
      for (bool skip : {false, true}) {
        std::string text = tokenizer.decode(ids, skip);
        EXPECT_EQ(streamed(tokenizer, ids, skip), text);
        EXPECT_TRUE(tokenizer.encode(text)) << "not valid UTF-8";
      }
    }
  }
}

/// `character` in UTF-8.
static std::string toUtf8(char32_t character) {
  auto byte = [&](char32_t lead, int shift) {
    return static_cast<char>(lead | (character >> shift & 0x3F));
  };
  if (character < 0x80)
    return {static_cast<char>(character)};
  if (character < 0x800)
    return {byte(0xC0, 6), byte(0x80, 0)};
  if (character < 0x10000)
    return {byte(0xE0, 12), byte(0x80, 6), byte(0x80, 0)};
  return {byte(0xF0, 18), byte(0x80, 12), byte(0x80, 6), byte(0x80, 0)};
}

TEST(Decode, GivesBackWhatWasEncoded) {
  std::mt19937 random(11);
  constexpr char32_t limits[] = {0x80, 0x250, 0x3100, 0x110000};
  for (const char *name : {"byte-level.json", "pieces.json"}) {
    Tokenizer tokenizer = loaded(readInput(name));
    for (int round = 0; round != 300; ++round) {
      std::string text;
      for (size_t i = 0, length = random() % 30; i != length; ++i) {
        char32_t character = random() % limits[random() % 4];
        // Surrogates are no text, and the mark for spaces means a space.
        bool excluded = (character >= 0xD800 && character < 0xE000) ||
                        character == U'\u2581';
        text += excluded ? " " : toUtf8(character);
      }
      EXPECT_EQ(tokenizer.decode(encoded(tokenizer, text), false), text);
    }
  }
}

TEST(Decode, KeepsTheFirstSpaceOfAContinuation) {
  Tokenizer tokenizer = loaded(pieceFile());
  StreamingDecoder decoder(tokenizer, true);
  decoder.skip(Ids{259, 258});
  EXPECT_EQ(decoder.decode(258), " a");
  // Nothing but the token that begins a text came before.
  decoder = StreamingDecoder(tokenizer, true);
  decoder.skip(Ids{259});
  EXPECT_EQ(decoder.decode(258), "a");

  Json file = pieceFile();
  file["decoder"] = Json::parse(
      R"({"type": "Metaspace", "replacement": "\u2581",
          "prepend_scheme": "always"})");
  decoder = StreamingDecoder(loaded(file), true);
  decoder.skip(Ids{258});
  EXPECT_EQ(decoder.decode(258), " a");
}

TEST(Decode, CompletesACharacterThatThePromptBegan) {
  StreamingDecoder decoder(loaded(pieceFile()), true);
  decoder.skip(Ids{'x', 0xF0, 0x9F});
  EXPECT_EQ(decoder.decode(0x98), "");
  EXPECT_EQ(decoder.decode(0x80), "\U0001F600");
}

TEST(Decode, CopiesGoOnByThemselves) {
  StreamingDecoder decoder(loaded(pieceFile()), true);
  EXPECT_EQ(decoder.decode(0xC3), "");
  StreamingDecoder copy = decoder;
  EXPECT_EQ(decoder.decode(0xA9), "\u00E9");
  EXPECT_EQ(copy.decode(0xA8), "\u00E8");
}

TEST(Decode, StreamsAnyContinuationAsThePartThatItAdds) {
  std::mt19937 random(13);
  for (const char *name : {"byte-level.json", "pieces.json"})
    expectContinuationsAddUp(loaded(readInput(name)), random, 300);
}

TEST(Decode, OutlivesItsTokenizer) {
  std::unique_ptr<StreamingDecoder> decoder;
  {
    Tokenizer tokenizer = loaded(pieceFile());
    decoder = std::make_unique<StreamingDecoder>(tokenizer, false);
  }
  EXPECT_EQ(decoder->decode(258), "a");
}
