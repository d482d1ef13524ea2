//===- GgufKeys.h - Keys that several read ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFKEYS_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFKEYS_H

#include <cstdint>
#include <string_view>

namespace sandwich {

inline constexpr const char *tokenizerModelKey = "tokenizer.ggml.model";
inline constexpr std::string_view tokensKey = "tokenizer.ggml.tokens";

/// What llama.cpp takes where a file with SentencePiece's tokens does not say.
struct UsualTokens {
  int32_t unknown, bos, eos;
};
inline constexpr UsualTokens usualTokens = {0, 1, 2};

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFKEYS_H
