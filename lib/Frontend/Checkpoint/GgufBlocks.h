//===- GgufBlocks.h - The types of GGUF tensors -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFBLOCKS_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFBLOCKS_H

#include "sandwich/Frontend/IntegerGroups.h"
#include "sandwich/Frontend/Safetensors.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

/// A type of blocks of integers.
struct GgufBlockFormat;

/// A type of tensors: floats, or blocks of integers, of which rows have a whole
/// number.
struct GgufTensorType {
  std::string_view name;
  /// Of a block.
  uint64_t elements = 1, bytes = 0;
  /// Of floats.
  ElementType elementType = ElementType::U8;
  /// Null for floats.
  const GgufBlockFormat *blocks = nullptr;
};

/// The type that files number `number`, if it can be compiled.
std::optional<GgufTensorType> ggufTensorType(uint32_t number);

/// What such numbers mean, for errors: "IQ2_XXS", or the number.
std::string describeGgufTensorType(uint32_t number);

/// The names of all that can be compiled, for errors.
std::string listGgufTensorTypes();

/// The integers of `blocks`, rows of `columns` elements one after another.
std::shared_ptr<const IntegerGroups>
createGgufBlocks(const GgufTensorType &type, int64_t columns,
                 std::span<const std::byte> blocks);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_GGUFBLOCKS_H
