//===- ResidentMemory.h - How much memory is in use -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A page of a mapping takes memory from its first use on. Until then the
/// system counts that memory as available to everybody.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_RESIDENTMEMORY_H
#define SANDWICH_SUPPORT_RESIDENTMEMORY_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/types.h>

namespace sandwich {

/// How many bytes of `memory`, which is mapped, lie in pages that are in memory
/// now, as mincore tells; zero where it does not. Takes a millisecond for a
/// gigabyte of small pages.
uint64_t residentBytes(std::span<const std::byte> memory);

/// How many bytes of memory of its own, no file's, `process` has in use, as
/// /proc/PROCESS/status tells; zero where it cannot be read.
uint64_t anonymousBytesOf(pid_t process);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_RESIDENTMEMORY_H
