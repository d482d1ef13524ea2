//===- GgufFuzzer.cpp - Any bytes as a GGUF file --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/Gguf.h"
#include "sandwich/Frontend/GgufModel.h"
#include "sandwich/Frontend/IntegerGroups.h"

#include <algorithm>
#include <cstdlib>

using namespace sandwich;

/// Reads all that `tensor` has, by every way there is.
static void readAll(const TensorView &tensor) {
  std::vector<float> values(static_cast<size_t>(elementCount(tensor)));
  readElements(tensor, 0, values);
  const std::optional<StorageFormat> format = naturalFormat(tensor);
  if (format.has_value() != (tensor.integers != nullptr))
    std::abort();
  if (!format)
    return;
  // Numbers that are not finite are refused, and nothing else is.
  if (!readRounded("tensor", tensor, *format, values) &&
      checkFinite("tensor", tensor, 0, values) &&
      format->scale == ScaleFormat::F32)
    std::abort();
}

/// Whatever the file claims, its tensors lie in it and can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  auto contents = readGguf(file);
  if (!contents) {
    if (contents.error().message.empty())
      std::abort();
    return 0;
  }
  size_t bytes = 0;
  for (const auto &[name, tensor] : contents->tensors) {
    bytes += tensor.bytes.size();
    readAll(tensor);
  }
  if (bytes > size)
    std::abort();
  (void)readGgufTokenizer(*contents);
  auto config = readGgufConfig(*contents);
  if (!config)
    return 0;
  auto renamed = renameGgufTensors(std::move(contents->tensors), *config);
  if (!renamed)
    return 0;
  for (const auto &[name, tensor] : *renamed)
    readAll(tensor);
  return 0;
}
