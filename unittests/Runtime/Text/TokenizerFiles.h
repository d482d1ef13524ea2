//===- TokenizerFiles.h - Tokenizers for the tests --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_RUNTIME_TOKENIZER_TOKENIZERFILES_H
#define SANDWICH_UNITTESTS_RUNTIME_TOKENIZER_TOKENIZERFILES_H

#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sandwich {

/// The JSON document `name` among the inputs of these tests.
inline Json readInput(const std::string &name) {
  auto file = MappedFile::open(
      SANDWICH_SOURCE_DIR "/unittests/Runtime/Text/Inputs/" + name);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  auto document = parseJson(file->text());
  if (!document) {
    ADD_FAILURE() << document.error().message;
    return {};
  }
  return *document;
}

/// A tokenizer.json of the tokens a, b, c, ab, bc and abc, whose merges are
/// "a b" and "ab c".
inline Json smallFile() {
  Json file = Json::parse(R"({
    "version": "1.0",
    "added_tokens": [],
    "model": {
      "type": "BPE",
      "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5},
      "merges": ["a b", "ab c"]
    }
  })");
  return file;
}

/// An entry of `added_tokens`.
inline Json addedToken(int64_t id, const std::string &content, bool special) {
  return {{"id", id},          {"content", content}, {"single_word", false},
          {"lstrip", false},   {"rstrip", false},    {"normalized", false},
          {"special", special}};
}

/// The tokenizer that `file` describes; the test fails if it is refused.
inline Tokenizer loaded(const Json &file) {
  auto tokenizer = Tokenizer::fromText(file.dump());
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().message;
    return *Tokenizer::fromText(smallFile().dump());
  }
  return *tokenizer;
}

/// The ids of `text`, special tokens parsed as in Hugging Face's library; the
/// test fails on an error.
inline std::vector<int32_t> encoded(const Tokenizer &tokenizer,
                                    std::string_view text,
                                    bool addSpecialTokens = false) {
  auto ids = tokenizer.encode(
      text, {.addSpecialTokens = addSpecialTokens, .parseSpecialTokens = true});
  if (!ids) {
    ADD_FAILURE() << ids.error().message;
    return {};
  }
  return *ids;
}

/// What decoding one id at a time gives.
inline std::string streamed(const Tokenizer &tokenizer,
                            const std::vector<int32_t> &ids,
                            bool skipSpecialTokens) {
  StreamingDecoder decoder(tokenizer, skipSpecialTokens);
  std::string text;
  for (int32_t id : ids)
    text += decoder.decode(id);
  return text + decoder.flush();
}

/// Random ids after random prompts: what is streamed after a prompt is what the
/// whole text has more than the prompt's, and each piece is UTF-8.
inline void expectContinuationsAddUp(const Tokenizer &tokenizer,
                                     std::mt19937 &random, int rounds) {
  auto draw = [&](size_t most) {
    std::vector<int32_t> ids(random() % most);
    for (int32_t &id : ids)
      id = static_cast<int32_t>(random() % (tokenizer.vocabularySize() + 2));
    return ids;
  };
  for (int round = 0; round != rounds; ++round) {
    std::vector<int32_t> prompt = draw(20), all = prompt;
    std::vector<int32_t> generated = draw(20);
    all.insert(all.end(), generated.begin(), generated.end());
    for (bool skip : {false, true}) {
      SCOPED_TRACE(Json({prompt, generated, skip}).dump());
      // The prompt's text, without a character that the continuation completes.
      StreamingDecoder promptDecoder(tokenizer, skip);
      std::string text;
      for (int32_t id : prompt)
        text += promptDecoder.decode(id);
      StreamingDecoder decoder(tokenizer, skip);
      decoder.skip(prompt);
      auto append = [&](const std::string &piece) {
        EXPECT_FALSE(findInvalidUtf8(piece)) << Json(piece).dump();
        text += piece;
      };
      for (int32_t id : generated)
        append(decoder.decode(id));
      append(decoder.flush());
      EXPECT_EQ(text, tokenizer.decode(all, skip));
    }
  }
}

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_RUNTIME_TOKENIZER_TOKENIZERFILES_H
