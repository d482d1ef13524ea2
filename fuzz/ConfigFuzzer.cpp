//===- ConfigFuzzer.cpp - Any bytes as a config.json ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/ModelConfig.h"

#include <cmath>
#include <cstdlib>

using namespace sandwich;

/// Whatever is accepted, its tensors have sizes that do not overflow and its
/// frequencies are numbers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto config = parseModelConfig(text);
  if (!config) {
    if (config.error().message.empty())
      std::abort();
    return 0;
  }
  for (float frequency : ropeInverseFrequencies(*config))
    if (!std::isfinite(frequency) || frequency <= 0)
      std::abort();
  for (const ExpectedTensor &tensor : expectedTensors(*config)) {
    int64_t bytes = sizeof(float);
    for (int64_t dimension : tensor.shape)
      if (dimension <= 0 || __builtin_mul_overflow(bytes, dimension, &bytes))
        std::abort();
  }
  if (!addGenerationConfig(*config, text))
    std::abort();
  return 0;
}
