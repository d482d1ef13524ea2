//===- EncoderFields.h - Fields of encoders' requests -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_API_ENCODERFIELDS_H
#define SANDWICH_LIB_API_ENCODERFIELDS_H

#include "sandwich/Api/EncoderCapabilities.h"
#include "sandwich/Api/InputTruncation.h"
#include "sandwich/Api/ObjectReader.h"

#include <string>

namespace sandwich {

/// `model`, which must be of `kind`. Null: the request is refused.
const EncoderCapabilities *readModel(ObjectReader &reader,
                                     const EncoderLookup &lookup,
                                     EncoderCapabilities::Kind kind,
                                     std::string &model);

/// `truncate` and `truncation_direction`.
void readTruncation(ObjectReader &reader, InputTruncation &truncation);

/// vLLM's `truncate_prompt_tokens` and `truncation_side`.
void readPromptTruncation(ObjectReader &reader,
                          const EncoderCapabilities &capabilities,
                          InputTruncation &truncation);

/// `prompt_name`: the text of the prompt of this name, or of the default one.
std::string readPromptPrefix(ObjectReader &reader,
                             const EncoderCapabilities &capabilities);

/// The list `name`, which must be there and have one entry at least and `most`
/// at most. Null: it is refused.
const Json *readNonEmptyList(ObjectReader &reader, std::string_view name,
                             uint64_t most);

/// Such a list of strings.
std::vector<std::string> readTexts(ObjectReader &reader, std::string_view name,
                                   uint64_t most);

/// A string that must be there and not be empty.
std::string readText(ObjectReader &reader, std::string_view name);

/// Who asks, which changes nothing of what an encoder answers.
void ignoreCaller(ObjectReader &reader);

} // namespace sandwich

#endif // SANDWICH_LIB_API_ENCODERFIELDS_H
