//===- ArtifactTokenizer.h - The tokenizer of a model -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEXT_ARTIFACTTOKENIZER_H
#define SANDWICH_RUNTIME_TEXT_ARTIFACTTOKENIZER_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Text/Tokenizer.h"

#include <optional>

namespace sandwich {

/// The tokenizer in `artifact`, or nothing if it has none. Errors name the
/// file and what is wrong with it.
Result<std::optional<Tokenizer>> loadTokenizer(const Artifact &artifact);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEXT_ARTIFACTTOKENIZER_H
