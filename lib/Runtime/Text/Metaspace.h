//===- Metaspace.h - The visible mark for spaces ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_METASPACE_H
#define SANDWICH_LIB_RUNTIME_TEXT_METASPACE_H

#include "JsonField.h"

#include <string>

namespace sandwich::tokenizer {

/// The fields that the pre-tokenizer and the decoder `Metaspace` share.
struct MetaspaceOptions {
  enum class Prepend { Always, First, Never };

  std::string mark; ///< one character that stands for a space
  Prepend prepend;  ///< where a mark is put before a text that has none

  /// Errors: a mark that is not one character, an unknown scheme.
  static Result<MetaspaceOptions> read(const JsonField &field);
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_METASPACE_H
