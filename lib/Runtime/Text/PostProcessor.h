//===- PostProcessor.h - Special tokens around a sequence -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_POSTPROCESSOR_H
#define SANDWICH_LIB_RUNTIME_TEXT_POSTPROCESSOR_H

#include "JsonField.h"
#include "Vocabulary.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace sandwich::tokenizer {

/// What stands in one place of a sequence.
struct SequencePart {
  enum class Kind { First, Second, SpecialToken };

  Kind kind; ///< one of the texts, or a token
  int32_t typeId = 0;
  int32_t tokenId = -1; ///< of a special token
};

/// The special tokens that go around and between the ids of texts.
struct PostProcessor {
  using Kind = SequencePart::Kind;

  /// A sequence of one text: each has it once.
  std::vector<SequencePart> single = {{Kind::First}};
  /// A sequence of two texts: each has both once, or nothing if the file does
  /// not say what it is.
  std::vector<SequencePart> pair = {{Kind::First}, {Kind::Second, 1}};

  /// Reads `post_processor` of a tokenizer.json with `vocabulary`. Errors: an
  /// unsupported type, a template without its text or with ids that are not
  /// in the vocabulary.
  static Result<PostProcessor> read(const JsonField &field,
                                    const Vocabulary &vocabulary);

  /// Whether there is any special token around a single text.
  bool addsTokens() const { return single.size() > 1; }

  /// Puts `id` alone before or after a text, or nothing. A pair is then two
  /// single texts, one after the other, of the types 0 and 1.
  void setPrefix(std::optional<int32_t> id);
  void setSuffix(std::optional<int32_t> id);

private:
  void setPairFromSingle();
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_POSTPROCESSOR_H
