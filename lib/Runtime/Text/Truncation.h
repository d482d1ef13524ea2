//===- Truncation.h - Texts cut to a number of tokens -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_TRUNCATION_H
#define SANDWICH_LIB_RUNTIME_TEXT_TRUNCATION_H

#include "JsonField.h"

#include "sandwich/Runtime/Text/Tokenizer.h"

#include <cstdint>
#include <vector>

namespace sandwich::tokenizer {

/// Reads `truncation` of a tokenizer.json. Errors name the field.
Result<Truncation> readTruncation(const JsonField &field);

/// Reads `padding` of a tokenizer.json. Errors name the field.
Result<Padding> readPadding(const JsonField &field);

/// Takes ids away from `first` and, if there is one, `second`, until the two
/// and `specialTokens` others fit. Errors as `Tokenizer::encodeWithTypes`.
Status truncate(const Truncation &truncation, size_t specialTokens,
                std::vector<int32_t> &first, std::vector<int32_t> *second);

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_TRUNCATION_H
