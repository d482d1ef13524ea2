//===- ArtifactTokenizer.cpp - The tokenizer of a model -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Text/ArtifactTokenizer.h"

using namespace sandwich;

Result<std::optional<Tokenizer>>
sandwich::loadTokenizer(const Artifact &artifact) {
  std::optional<std::string_view> text = artifact.file(artifact::tokenizerFile);
  if (!text)
    return std::optional<Tokenizer>();
  Result<Tokenizer> tokenizer =
      Tokenizer::fromText(*text, artifact.file(artifact::tokenizerConfigFile));
  if (!tokenizer)
    return tokenizer.error().inContext(artifact.path() + "/" +
                                       artifact::tokenizerFile);
  return std::optional<Tokenizer>(std::move(*tokenizer));
}
