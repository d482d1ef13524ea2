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
#include <vector>

namespace sandwich::tokenizer {

/// The special tokens that go around the ids of a single text.
struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  /// Reads `post_processor` of a tokenizer.json with `vocabulary`. Errors: an
  /// unsupported type, a template without its text or with ids that are not
  /// in the vocabulary.
  static Result<PostProcessor> read(const JsonField &field,
                                    const Vocabulary &vocabulary);
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_POSTPROCESSOR_H
