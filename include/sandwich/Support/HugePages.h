//===- HugePages.h - How much memory lies in huge pages ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_HUGEPAGES_H
#define SANDWICH_SUPPORT_HUGEPAGES_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace sandwich {

/// How many bytes of `memory`, anonymous or of a file, lie in huge pages now,
/// as /proc/self/smaps tells; zero where it cannot be read. Takes milliseconds
/// for gigabytes.
uint64_t bytesInHugePages(std::span<const std::byte> memory);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_HUGEPAGES_H
