//===- WidestVectors.h - Loops with the widest vectors ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_WIDESTVECTORS_H
#define SANDWICH_SUPPORT_WIDESTVECTORS_H

/// Before a function: it is compiled for several kinds of vectors, and the
/// program's start chooses the one for the widest that this CPU has.
/// ThreadSanitizer cannot choose: that would call it before it is there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define SANDWICH_WIDEST_VECTORS                                                \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SANDWICH_WIDEST_VECTORS
#endif

#endif // SANDWICH_SUPPORT_WIDESTVECTORS_H
