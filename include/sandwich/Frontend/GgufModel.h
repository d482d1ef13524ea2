//===- GgufModel.h - What a GGUF file says of a model -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_GGUFMODEL_H
#define SANDWICH_FRONTEND_GGUFMODEL_H

#include "sandwich/Frontend/Gguf.h"
#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Support/Result.h"

#include <optional>
#include <string>

namespace sandwich {

/// The configuration of the model in `contents`. Errors name the key and its
/// value: architectures, and arithmetic, that the compiler does not know.
Result<ModelConfig> readGgufConfig(const GgufContents &contents);

/// What GGUF files call the tensor that is `name` in `expectedTensors`; itself
/// if they have none.
std::string ggufTensorName(const std::string &name);

/// The tensors of `contents` by the names of `expectedTensors`, with rows in
/// their order; without those that `config` holds already. Error: there are two
/// for one name.
Result<TensorTable> renameGgufTensors(TensorTable tensors,
                                      const ModelConfig &config);

/// What takes the place of `tokenizer.json` and `tokenizer_config.json`.
struct GgufTokenizer {
  std::string tokenizer, configuration;
};

/// Makes them of the metadata; nothing if these have no tokenizer. Errors name
/// the key and what is wrong with its value.
Result<std::optional<GgufTokenizer>>
readGgufTokenizer(const GgufContents &contents);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_GGUFMODEL_H
