//===- Collectives.h - How the ranks of a host sum --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_COLLECTIVES_H
#define SANDWICH_RUNTIME_COMMUNICATION_COLLECTIVES_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace sandwich {

/// The all-reduce of ranks that share memory; all add in the order of ranks, so
/// the bits are the same. The "communication op" of the Sandwich paper's
/// ablation (section 7.4, table 1).
enum class Collectives : uint32_t {
  /// `rank-shifted`: rank r begins with rank r + 1 and goes round from there,
  /// so that nobody waits for a master (section 6.2).
  RankShifted,
  /// `master-copies`, what section 6.2 starts from, kept to compare with: all
  /// copy to rank 0, it sums, and all copy the sums back.
  MasterCopies,
};

/// In the order of their values, from 0.
std::span<const Collectives> allCollectives();
std::string_view name(Collectives collectives);
/// Error: an unknown name; it lists the known ones.
Result<Collectives> collectivesNamed(std::string_view name);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_COLLECTIVES_H
