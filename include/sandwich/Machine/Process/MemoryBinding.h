//===- MemoryBinding.h - Memory of one NUMA node ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A NUMA node is bound to with all the memories that its cores have at hand:
/// its own and, on some machines, others beside it, as HBM beside DDR, of which
/// the fastest is filled first.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H
#define SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// Where pages lie.
struct PagePlaces {
  /// Pages that were asked about and are in memory.
  uint64_t present = 0;
  /// Those of them on other nodes.
  uint64_t elsewhere = 0;
};

/// Asks the kernel (move_pages) whether pages are on one of `nodes`: at most
/// `samples` of them that are spread evenly over `memory`. Nothing where it
/// does not tell.
std::optional<PagePlaces> placesOf(std::span<const std::byte> memory,
                                   std::span<const unsigned> nodes,
                                   size_t samples = 256);

/// The NUMA node `node` (an operating-system index) and those whose memory its
/// cores have beside its own, the fastest first as the firmware tells. What it
/// does not tell the bandwidth of is left out, but for the node itself, which
/// is then the first.
std::vector<unsigned> memoryNodesOf(unsigned node);

/// Binds the `areas` to NUMA nodes (operating-system indexes), of which there
/// is one at least: pages that come are taken from the first as long as it has
/// room, then from those near it, and those that are in memory and belong to
/// this process alone move there. A sample of the pages is verified afterwards
/// to be on one of `nodes`. Returns what the system refused or did not do, for
/// a warning. On a machine of one node there is nothing to do. Error: there is
/// no such node.
Result<std::optional<std::string>>
bindMemory(std::span<const std::span<const std::byte>> areas,
           std::span<const unsigned> nodes);

/// The NUMA node that all of `cpus` (operating-system indexes) belong to, on a
/// machine of several; nothing if there is no such node.
std::optional<unsigned> numaNodeOf(std::span<const unsigned> cpus);

} // namespace sandwich

#endif // SANDWICH_MACHINE_PROCESS_MEMORYBINDING_H
