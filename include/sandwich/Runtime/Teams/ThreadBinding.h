//===- ThreadBinding.h - Threads on CPUs ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which CPUs the calling thread may run on. CPUs are operating-system indexes.
/// Binding is a matter of speed only: where the system refuses it, threads run
/// where it puts them.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEAMS_THREADBINDING_H
#define SANDWICH_RUNTIME_TEAMS_THREADBINDING_H

#include <optional>
#include <vector>

struct hwloc_bitmap_s;

namespace sandwich {

/// The CPUs that the calling thread may run on, ascending, as the system tells.
/// Empty if it does not.
std::vector<unsigned> readThreadBinding();

/// Keeps the calling thread on one CPU while it lives, and then gives it back
/// what it had.
class ScopedBinding {
public:
  /// Nothing keeps the thread where it is.
  explicit ScopedBinding(std::optional<unsigned> cpu);
  ~ScopedBinding();
  ScopedBinding(const ScopedBinding &) = delete;
  ScopedBinding &operator=(const ScopedBinding &) = delete;

private:
  /// What the thread had, if it has something else now.
  hwloc_bitmap_s *before = nullptr;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEAMS_THREADBINDING_H
