//===- Normalizer.h - Text rewritten before it is split ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_NORMALIZER_H
#define SANDWICH_LIB_RUNTIME_TEXT_NORMALIZER_H

#include "JsonField.h"
#include "Pattern.h"

#include <memory>
#include <string>
#include <vector>

namespace sandwich::tokenizer {

/// One step that rewrites a text.
class Normalizer {
public:
  virtual ~Normalizer() = default;

  /// Rewrites `text` (valid UTF-8, before and after). Errors: the result is
  /// longer than `maxBytes`, or an expression exceeds its match limits.
  virtual Status apply(std::string &text, size_t maxBytes,
                       SearchBuffers &buffers) const = 0;
};

using NormalizerSteps = std::vector<std::unique_ptr<Normalizer>>;

/// Reads `normalizer` of a tokenizer.json; sequences are flattened.
Result<NormalizerSteps> readNormalizer(const JsonField &field);

/// Applies `steps` in turn.
Status normalize(const NormalizerSteps &steps, std::string &text,
                 SearchBuffers &buffers);

/// The most bytes that `inputBytes` bytes of text may become. Unicode's forms
/// need at most 11 times as many; beyond this bound a file means harm.
size_t maxRewrittenBytes(size_t inputBytes);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_NORMALIZER_H
