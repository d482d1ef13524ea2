//===- EncoderConfigs.h - Small encoders for tests --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_FRONTEND_ENCODERCONFIGS_H
#define SANDWICH_UNITTESTS_FRONTEND_ENCODERCONFIGS_H

#include "sandwich/Support/Json.h"

#include <string>

namespace sandwich::test {

/// The fields that no encoder can do without.
inline Json encoderConfig(const std::string &architecture) {
  return {{"architectures", {architecture}}, {"hidden_size", 8},
          {"intermediate_size", 12},         {"num_hidden_layers", 2},
          {"num_attention_heads", 2},        {"vocab_size", 10},
          {"max_position_embeddings", 6}};
}

/// The configuration of jina-embeddings-v3, which has no model_type.
inline Json jinaConfig() {
  Json config = encoderConfig("XLMRobertaModel");
  config.update({{"position_embedding_type", "rotary"},
                 {"rotary_emb_base", 20000.0},
                 {"type_vocab_size", 1},
                 {"lora_adaptations", {"query", "passage", "separation"}},
                 {"lora_rank", 2},
                 {"lora_alpha", 1},
                 {"matryoshka_dimensions", {2, 4, 8}}});
  return config;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_FRONTEND_ENCODERCONFIGS_H
