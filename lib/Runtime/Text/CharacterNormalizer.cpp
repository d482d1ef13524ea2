//===- CharacterNormalizer.cpp - Each character rewritten by itself -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CharacterNormalizer.h"

#include "Unicode.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

Status CharacterNormalizer::apply(std::string &text, ByteMarks &marks,
                                  size_t maxBytes, SearchBuffers &) const {
  std::string rewritten;
  rewritten.reserve(text.size());
  ByteMarks kept = marks.none();
  for (size_t i = 0; i < text.size();) {
    const auto bytes =
        std::string_view(text).substr(i, characterLength(text[i]));
    const size_t size = rewritten.size();
    rule(rewritten, firstCharacter(bytes), bytes);
    if (marks.wanted())
      kept.append(rewritten.size() - size, marks.all(i, i + bytes.size()));
    i += bytes.size();
  }
  if (rewritten.size() > maxBytes)
    return textGrows(name, maxBytes);
  text = std::move(rewritten);
  marks = std::move(kept);
  return {};
}

void tokenizer::dropMark(std::string &text, char32_t character,
                         std::string_view bytes) {
  if (!isMark(character))
    text += bytes;
}

void tokenizer::dropNonspacingMark(std::string &text, char32_t character,
                                   std::string_view bytes) {
  if (!isNonspacingMark(character))
    text += bytes;
}

void tokenizer::lowerCharacter(std::string &text, char32_t character,
                               std::string_view) {
  appendLowercase(text, character);
}

void tokenizer::cleanCharacter(std::string &text, char32_t character,
                               std::string_view bytes) {
  // Control characters that are spaces all the same.
  const bool isSpace =
      character == '\t' || character == '\n' || character == '\r';
  if (!isSpace && (character == 0xFFFD || isControl(character)))
    return;
  if (isSpace || isWhitespace(character))
    text += ' ';
  else
    text += bytes;
}

/// What BERT calls Chinese: the blocks of unified and compatibility ideographs
/// up to extension E, so that neither kana nor hangul are.
static bool isChinese(char32_t character) {
  return (character >= 0x4E00 && character <= 0x9FFF) ||
         (character >= 0x3400 && character <= 0x4DBF) ||
         (character >= 0x20000 && character <= 0x2A6DF) ||
         (character >= 0x2A700 && character <= 0x2B81F) ||
         (character >= 0x2B920 && character <= 0x2CEAF) ||
         (character >= 0xF900 && character <= 0xFAFF) ||
         (character >= 0x2F800 && character <= 0x2FA1F);
}

void tokenizer::setChineseApart(std::string &text, char32_t character,
                                std::string_view bytes) {
  const bool apart = isChinese(character);
  if (apart)
    text += ' ';
  text += bytes;
  if (apart)
    text += ' ';
}

void tokenizer::cleanForTranslation(std::string &text, char32_t character,
                                    std::string_view bytes) {
  switch (character) {
  case '\t':
  case '\n':
  case '\f':
  case '\r':
  case 0x1680:
  case 0x200B: // zero-width characters and the marks of direction
  case 0x200C:
  case 0x200D:
  case 0x200E:
  case 0x200F:
  case 0x2028:
  case 0x2029:
  case 0x2581: // what stands for a space
  case 0xFEFF:
  case 0xFFFD:
    text += ' ';
    return;
  case 0x7F:
  case 0x8F:
  case 0x9F:
    return;
  default:
    if (character == 0 || character >= ' ')
      text += bytes;
  }
}
