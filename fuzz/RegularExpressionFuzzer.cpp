//===- RegularExpressionFuzzer.cpp - Any bytes as a pattern ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarWalk.h"

#include "sandwich/Support/Utf8.h"

using namespace sandwich;

/// The bytes up to the first zero are a pattern, the rest choose tokens. A
/// pattern is refused with a reason, or its texts are UTF-8 and not without a
/// next token.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  const std::string_view pattern = bytes.substr(0, bytes.find('\0'));
  const std::string_view choices =
      bytes.substr(std::min(size, pattern.size() + 1));
  auto grammar = Grammar::compile(
      GrammarSource::regularExpression(std::string(pattern)), fuzzVocabulary());
  if (!grammar) {
    check(!grammar.error().message.empty());
    return 0;
  }
  if (std::optional<std::string> text = walkGrammar(*grammar, choices))
    check(!findInvalidUtf8(*text));
  return 0;
}
