//===- MemoryPlan.h - What will fit into memory -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decides, before anything is loaded, how large the KV cache becomes, and
/// finds what will not fit. docs/Memory.md tells the rule to users.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEMORY_MEMORYPLAN_H
#define SANDWICH_RUNTIME_MEMORY_MEMORYPLAN_H

#include "sandwich/Machine/Process/MemoryBudget.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// Logits of a long prompt are handed over in pieces of at most this size.
inline constexpr uint64_t maxLogitsBytes = uint64_t{64} << 20;

/// What a model takes. Sizes are bytes of one process, a rank, unless they say
/// otherwise.
struct MemoryNeeds {
  /// Of this host, which is number `host` of `hosts`.
  uint64_t ranks = 1;
  uint64_t hosts = 1;
  uint64_t host = 0;
  /// The NUMA node that each rank is bound to, if there is one.
  std::vector<std::optional<unsigned>> nodes = {};
  /// A rank's own part of the weights; all of them for a single one.
  uint64_t weights = 0;
  /// What all ranks map, of which there is one copy.
  uint64_t sharedWeights = 0;
  /// Which file weights are mapped from: models of the same one share its
  /// pages. Empty: one that nobody else maps.
  std::string weightsFile = {};
  /// Whether `weights` are a copy rather than mapped pages of their file,
  /// which the kernel can drop and read again.
  bool weightsCopied = false;
  /// Whether their elements are as wide as elements get, so that compiling for
  /// another type makes them smaller.
  bool wideWeights = false;
  /// The same of the KV cache.
  bool wideKVCache = false;
  uint64_t workspace = 0;
  uint64_t logits = 0;
  /// Everything else in the process: code, stacks, page tables.
  uint64_t program = uint64_t{16} << 20;
  /// What threads' stacks take of the address space, though hardly of memory.
  uint64_t stacks = 0;
  /// What ranks exchange data in, for all of them together.
  uint64_t exchange = 0;
  /// One block of the KV cache; not zero.
  uint64_t kvBlock = 0;
  /// Tokens that `sequences` sequences together should be able to hold.
  uint64_t wantedTokens = 0;
  uint64_t sequences = 1;
  /// Tokens of one sequence for which there must be room.
  uint64_t requiredTokens = 0;
  /// The size of the KV cache of all ranks of all hosts, if it was asked for.
  std::optional<uint64_t> kvMemory = {};
};

struct MemoryPlan {
  /// At least one.
  uint64_t kvBlocks = 0;
  /// Whether the weights do not fit below some limit and are read again and
  /// again, of which a warning tells.
  bool weightsStream = false;
  /// What is smaller or slower than it should be, and why.
  std::vector<std::string> warnings;
};

/// What is left alone of `available` bytes where nobody asked for a size of the
/// KV cache: 5%, but at least 256 MiB, though never more than a quarter.
uint64_t memoryReserve(uint64_t available);

/// The blocks that the KV cache of `needs` has at least: `kvMemory` of them, or
/// those of the required tokens.
uint64_t leastKVBlocks(const MemoryNeeds &needs);

/// The KV cache is as large as `kvMemory` says. Without it, it has blocks for
/// `wantedTokens`, but no more than are left, below every one of `limits`, by
/// weights, workspace, logits and the reserve, divided by the limit's
/// `sharers`; and then a warning says so.
///
/// What counts below a limit is what the ranks take that it is about: all of
/// them; those bound to its NUMA node, where the first of them also brings what
/// the ranks share; or one, where it is a limit of each process.
///
/// Errors, which tell what needs how much, what limits it and which option
/// makes it fit: `kvMemory` is less than a block or than `requiredTokens` take;
/// all together, without the reserve, are more than a limit leaves. Mapped
/// weights that do not fit are no error but a warning, as they can be read from
/// the file again and again; where mapped files count, they are one, too.
Result<MemoryPlan> planMemory(const MemoryNeeds &needs,
                              std::span<const MemoryLimit> limits);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEMORY_MEMORYPLAN_H
