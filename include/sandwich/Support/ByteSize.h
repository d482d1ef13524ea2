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
#include <string>

namespace sandwich {

/// "32 MiB": `bytes` in the largest unit of which they are at least one, with
/// four significant digits.
std::string formatBytes(uint64_t bytes);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_BYTESIZE_H
