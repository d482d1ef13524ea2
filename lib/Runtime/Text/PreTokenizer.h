//===- PreTokenizer.h - Text cut into pieces for the model ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_PRETOKENIZER_H
#define SANDWICH_LIB_RUNTIME_TEXT_PRETOKENIZER_H

#include "JsonField.h"
#include "Pattern.h"

#include <memory>
#include <string>
#include <vector>

namespace sandwich::tokenizer {

/// A text and the pieces of it that the model sees one by one.
struct PieceList {
  std::string text;
  std::vector<TextRange> pieces; ///< in order, none empty
  bool beginsInput;              ///< the text is the beginning of the input
};

/// One step that cuts or rewrites the pieces.
class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;

  /// Errors: an expression exceeds its match limits.
  virtual Status apply(PieceList &list, SearchBuffers &buffers) const = 0;
};

using PreTokenizerSteps = std::vector<std::unique_ptr<PreTokenizer>>;

/// Reads `pre_tokenizer` of a tokenizer.json; sequences are flattened.
Result<PreTokenizerSteps> readPreTokenizer(const JsonField &field);

/// Applies `steps` in turn to `text` as one piece.
Result<PieceList> preTokenize(const PreTokenizerSteps &steps, std::string text,
                              bool beginsInput, SearchBuffers &buffers);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_PRETOKENIZER_H
