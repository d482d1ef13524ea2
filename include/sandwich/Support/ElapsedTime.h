//===- ElapsedTime.h - Seconds since then -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_ELAPSEDTIME_H
#define SANDWICH_SUPPORT_ELAPSEDTIME_H

#include <chrono>

namespace sandwich {

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Seconds since 1970.
inline double unixSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_ELAPSEDTIME_H
