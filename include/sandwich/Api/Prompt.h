//===- Prompt.h - Texts, or their tokens ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_PROMPT_H
#define SANDWICH_API_PROMPT_H

#include "sandwich/Api/ObjectReader.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace sandwich {

/// A text, or its tokens.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

/// What a request has in a field that takes one prompt or several.
struct PromptList {
  std::string field;
  /// The field is a list of prompts: one that is alone may be in a list too.
  bool isList = false;
  std::vector<Prompt> prompts;

  /// What errors call a prompt: "input", or "input[3]".
  std::string nameOf(size_t index) const;
};

/// Reads `field`, which must be there: a string, a list of token ids, or a list
/// of at most `most` of either.
PromptList readPrompts(ObjectReader &reader, std::string_view field,
                       size_t most);

} // namespace sandwich

#endif // SANDWICH_API_PROMPT_H
