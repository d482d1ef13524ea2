//===- IntrinsicCalls.h - Intrinsics as functions ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_KERNEL_INTRINSICCALLS_H
#define SANDWICH_UNITTESTS_KERNEL_INTRINSICCALLS_H

#include <cstdint>
#include <span>

/// The bytes from one argument to the next, which are also those of the memory
/// that a pointer points to, and those of the result, behind which that memory
/// follows.
inline constexpr int64_t argumentBytes = 128, resultBytes = 64;

/// Calls `name` with the bytes `in` as arguments and the immediate number, if
/// it has one; to `out` go the bytes of the result and of all memory.
struct IntrinsicCall {
  const char *name;
  int64_t immediate;
  void (*run)(const unsigned char *in, unsigned char *out);
};

/// Of all intrinsics of x86 that the table has.
std::span<const IntrinsicCall> intrinsicCalls();

#endif // SANDWICH_UNITTESTS_KERNEL_INTRINSICCALLS_H
