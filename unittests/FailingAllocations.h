//===- FailingAllocations.h - Memory that runs short on request -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Replaces the global `operator new`: to be included by one file of a program.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_FAILINGALLOCATIONS_H
#define SANDWICH_UNITTESTS_FAILINGALLOCATIONS_H

#include <cstdlib>
#include <new>

namespace sandwich::test {
/// Allocations of this thread until one fails, and no other after it; negative
/// for none that fails.
inline thread_local int untilFailure = -1;
} // namespace sandwich::test

// Not inlined, or GCC warns that one is freed that malloc did not give.
[[gnu::noinline]] void *operator new(size_t size) {
  using sandwich::test::untilFailure;
  if (untilFailure >= 0 && untilFailure-- == 0)
    throw std::bad_alloc();
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}

#endif // SANDWICH_UNITTESTS_FAILINGALLOCATIONS_H
