//===- AnonymousMemory.h - Large zeroed memory ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The KV cache, the workspace, the logits and copied weights live in private
/// mappings for which huge pages are asked. A page takes memory when it is
/// first written, so a mapping may be as large as the model could ever need.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_ANONYMOUSMEMORY_H
#define SANDWICH_SUPPORT_ANONYMOUSMEMORY_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sandwich {

/// A private zeroed mapping, aligned to a huge page where it is large enough
/// to hold one and to a page otherwise. Moves, never copies.
class AnonymousMemory {
public:
  /// How much of the memory will be written.
  enum class Fill {
    Partly,
    /// All of it, so that more than the machine has is refused at once.
    Wholly,
  };

  /// Maps `bytes`; zero bytes make an empty object. `purpose` is how an error
  /// names the memory: "the KV cache".
  static Result<AnonymousMemory> allocate(uint64_t bytes,
                                          const std::string &purpose,
                                          Fill fill = Fill::Partly);

  AnonymousMemory() = default;
  AnonymousMemory(AnonymousMemory &&other) noexcept;
  AnonymousMemory &operator=(AnonymousMemory &&other) noexcept;
  ~AnonymousMemory();

  std::byte *data() const { return start; }
  uint64_t size() const { return bytes; }
  std::span<const std::byte> contents() const { return {start, bytes}; }

  /// From now on writing to it is a fault. Error: the system refuses.
  Status makeReadOnly();

private:
  /// What was mapped; `start` is the first aligned address in it.
  void *mapping = nullptr;
  uint64_t mappedBytes = 0;
  std::byte *start = nullptr;
  uint64_t bytes = 0;
};

} // namespace sandwich

#endif // SANDWICH_SUPPORT_ANONYMOUSMEMORY_H
