//===- VocabularyIndex.h - What grammars need of a vocabulary ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_VOCABULARYINDEX_H
#define SANDWICH_LIB_GRAMMAR_VOCABULARYINDEX_H

#include "Automaton.h"
#include "MaskStore.h"
#include "StateTokens.h"

#include "sandwich/Grammar/TokenVocabulary.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sandwich {

struct TokenVocabulary::Index {
  explicit Index(size_t maskBytes) : masks(maskBytes) {}

  grammar::Tokens tokens;
  std::vector<uint32_t> endTokens;
  size_t modelTokens = 0;
  /// Bytes that are tokens: texts of others might come to where no token goes
  /// on, and so have no place in any grammar.
  grammar::ByteSet singleBytes;
  /// Those of `jsonString` and `plainJsonString`, which all grammars share.
  std::shared_ptr<const grammar::Automaton> string, plainString;
  mutable grammar::MaskStore masks;
};

} // namespace sandwich

#endif // SANDWICH_LIB_GRAMMAR_VOCABULARYINDEX_H
