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

#include "sandwich/Support/ByteRange.h"

#include <memory>
#include <string>
#include <vector>

namespace sandwich::tokenizer {

/// A mark for each byte of a text, where anybody wants to know what becomes of
/// them. What is made of marked bytes only is marked.
class ByteMarks {
public:
  /// Without marks.
  ByteMarks() = default;
  explicit ByteMarks(std::vector<bool> marks)
      : areWanted(true), marks(std::move(marks)) {}

  bool wanted() const { return areWanted; }
  bool at(size_t offset) const { return marks[offset]; }
  bool all(size_t begin, size_t end) const;
  /// Appends `count` marks.
  void append(size_t count, bool mark);
  /// Appends those of the bytes `[begin, end)` of `other`.
  void append(const ByteMarks &other, size_t begin, size_t end);
  /// What is marked, in order.
  std::vector<ByteRange> ranges() const;
  /// None yet, and wanted as these are.
  ByteMarks none() const;

private:
  bool areWanted = false;
  std::vector<bool> marks;
};

/// One step that rewrites a text.
class Normalizer {
public:
  virtual ~Normalizer() = default;

  /// Rewrites `text` (valid UTF-8, before and after), and `marks` with it.
  /// Errors: the result is longer than `maxBytes`, or an expression exceeds its
  /// match limits.
  virtual Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
                       SearchBuffers &buffers) const = 0;
};

using NormalizerSteps = std::vector<std::unique_ptr<Normalizer>>;

/// Reads `normalizer` of a tokenizer.json; sequences are flattened.
Result<NormalizerSteps> readNormalizer(const JsonField &field);

/// Reads a step of the type `Precompiled`, a map of characters as SentencePiece
/// makes them. Errors: a map that is damaged.
Result<std::unique_ptr<Normalizer>>
readPrecompiledNormalizer(const JsonField &field);

/// Applies `steps` in turn to a text and its marks.
Status normalize(const NormalizerSteps &steps, std::string &text,
                 ByteMarks &marks, SearchBuffers &buffers);

/// The most bytes that `inputBytes` bytes of text may become. Unicode's forms
/// need at most 11 times as many; beyond this bound a file means harm.
size_t maxRewrittenBytes(size_t inputBytes);

/// The error of the step `name` for a text that becomes longer than `maxBytes`.
Error textGrows(const std::string &name, size_t maxBytes);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_NORMALIZER_H
