//===- SafetensorsFuzzer.cpp - Any bytes as a safetensors file ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/Safetensors.h"

#include <algorithm>
#include <cstdlib>

using namespace sandwich;

/// Whatever the header claims, the views lie in the file, tile it, and their
/// elements can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = std::as_bytes(std::span(data, size));
  auto table = readTensorTable(file);
  if (!table) {
    if (table.error().message.empty())
      std::abort();
    return 0;
  }
  size_t covered = 0;
  for (const auto &[name, tensor] : *table) {
    covered += tensor.bytes.size();
    if (!isUsableElementType(tensor.elementType))
      continue;
    std::vector<float> values(tensor.bytes.size() * 8 /
                              bitsPerElement(tensor.elementType));
    readElements(tensor, 0, values);
    std::vector<uint16_t> rounded(values.size());
    roundToBFloat16(values, rounded);
    if (!checkFinite(name, tensor, 0, values) &&
        std::ranges::none_of(
            rounded, [](uint16_t bits) { return (bits & 0x7f80) == 0x7f80; }))
      std::abort();
  }
  if (covered > size)
    std::abort();
  return 0;
}
