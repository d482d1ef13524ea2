//===- CharacterNormalizer.h - Each character rewritten by itself *- C++
//-*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_CHARACTERNORMALIZER_H
#define SANDWICH_LIB_RUNTIME_TEXT_CHARACTERNORMALIZER_H

#include "Normalizer.h"

#include <string>
#include <string_view>

namespace sandwich::tokenizer {

/// Rewrites each character by itself.
class CharacterNormalizer final : public Normalizer {
public:
  /// Appends what becomes of a character, whose UTF-8 is given too.
  using Rule = void (*)(std::string &text, char32_t character,
                        std::string_view bytes);

  /// `name` stands before errors.
  CharacterNormalizer(std::string name, Rule rule)
      : name(std::move(name)), rule(rule) {}

  Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
               SearchBuffers &buffers) const override;

private:
  std::string name;
  Rule rule;
};

/// BERT's cleaning: control characters go, and each kind of space is one.
void cleanCharacter(std::string &text, char32_t character,
                    std::string_view bytes);

/// BERT's spaces around what it calls Chinese.
void setChineseApart(std::string &text, char32_t character,
                     std::string_view bytes);

/// The cleaning for machine translation that SentencePiece calls nmt.
void cleanForTranslation(std::string &text, char32_t character,
                         std::string_view bytes);

void lowerCharacter(std::string &text, char32_t character,
                    std::string_view bytes);
void dropMark(std::string &text, char32_t character, std::string_view bytes);
void dropNonspacingMark(std::string &text, char32_t character,
                        std::string_view bytes);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_CHARACTERNORMALIZER_H
