//===- ByteSize.h - Sizes for people ----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_BYTESIZE_H
#define SANDWICH_SUPPORT_BYTESIZE_H

#include <cstdint>
#include <optional>
#include <string>

namespace sandwich {

/// "32 MiB": `bytes` in the largest unit of which they are at least one, with
/// four significant digits.
std::string formatBytes(uint64_t bytes);

/// The size that people write as "2GiB", "1.5 MiB" or "4096": a number and B,
/// KiB, MiB, GiB or TiB, which may be left out for bytes. A fraction of a byte
/// is left out. Nothing for any other text, and for more than 2^64 bytes.
std::optional<uint64_t> parseBytes(const std::string &text);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_BYTESIZE_H
