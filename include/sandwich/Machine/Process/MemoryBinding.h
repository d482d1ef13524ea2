//===- MemoryBinding.h - Memory of one NUMA node ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H
#define SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sandwich {

/// Where pages lie.
struct PagePlaces {
  /// Pages that were asked about and are in memory.
  uint64_t present = 0;
  /// Those of them on another node.
  uint64_t elsewhere = 0;
};

/// Asks the kernel (move_pages) on which nodes at most `samples` pages lie that
/// are spread evenly over `memory`. Nothing where it does not tell.
std::optional<PagePlaces> placesOf(std::span<const std::byte> memory,
                                   unsigned node, size_t samples = 256);

/// Binds the `areas` to NUMA node `node` (an operating-system index): pages
/// that come are taken there, and those that are in memory and belong to this
/// process alone move there. A sample of the pages is verified afterwards.
/// Returns what the system refused or did not do, for a warning. On a machine
/// of one node there is nothing to do. Error: there is no such node.
Result<std::optional<std::string>>
bindMemory(std::span<const std::span<const std::byte>> areas, unsigned node);

/// The NUMA node that all of `cpus` (operating-system indexes) belong to, on a
/// machine of several; nothing if there is no such node.
std::optional<unsigned> numaNodeOf(std::span<const unsigned> cpus);

} // namespace sandwich

#endif // SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H
