//===- AttentionElement.h - What attention reads and writes -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SCHEDULING_ATTENTIONELEMENT_H
#define SANDWICH_SCHEDULING_ATTENTIONELEMENT_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace sandwich {

/// Elements of the KV cache, and of what attention reads and writes beside it,
/// which is not of integers.
enum class AttentionElement : uint8_t { F32, BF16, F16, Int8 };

/// `f32`, `bf16`, `f16` or `int8`.
std::string_view name(AttentionElement element);
std::optional<AttentionElement> attentionElementNamed(std::string_view name);

/// Bytes of a key or a value of a head in a KV cache of `element`, with its
/// scale if it has one.
int64_t bytesOfHead(AttentionElement element, int64_t headDim);

} // namespace sandwich

#endif // SANDWICH_SCHEDULING_ATTENTIONELEMENT_H
