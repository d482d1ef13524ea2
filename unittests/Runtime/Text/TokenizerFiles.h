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

#include <gtest/gtest.h>

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

/// The ids of `text`; the test fails on an error.
inline std::vector<int32_t> encoded(const Tokenizer &tokenizer,
                                    std::string_view text,
                                    bool addSpecialTokens = false) {
  auto ids = tokenizer.encode(text, addSpecialTokens);
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

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_RUNTIME_TOKENIZER_TOKENIZERFILES_H
