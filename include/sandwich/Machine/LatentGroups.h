//===- LatentGroups.h - Groups of cores that no system shows ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the latent shared structures of the Sandwich paper, sections 4.1 and
/// 4.2: cores that share something of which the topology tells nothing, seen by
/// what they lose when they work together. Who measures is behind an interface,
/// so that the search runs on simulated machines too.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_MACHINE_LATENTGROUPS_H
#define SANDWICH_MACHINE_LATENTGROUPS_H

#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// Measures some CPUs of a machine, once each time it is asked. CPUs of a call
/// are of different cores of one part. Its errors end the search.
class PairProbe {
public:
  virtual ~PairProbe() = default;

  /// What a cache line takes from one CPU to the other.
  virtual Result<double> handoffSeconds(unsigned first, unsigned second) = 0;
  /// What all of `cpus` read of their memory at the same time, added up.
  virtual Result<double> bytesPerSecond(std::span<const unsigned> cpus) = 0;
  /// What all of `cpus` compute at the same time from their registers, added
  /// up.
  virtual Result<double> flopsPerSecond(std::span<const unsigned> cpus) = 0;
  /// Since the probe was made.
  virtual double elapsedSeconds() const = 0;
};

struct LatentSearchOptions {
  /// How long the search may take, by the clock of the probe.
  double seconds = 60;
  /// Of what is drawn: which cores work together, and when.
  uint64_t seed = 1;
  /// Hears how much is done, from 0 to 1. An error ends the search with it.
  std::function<Status(double done)> progress;
};

/// Groups, and what as many cores as one has read in bytes per second.
struct FoundGroups {
  /// Of its parameters only `handoffSeconds`, where it is shorter inside a
  /// group; a limit follows from what is read.
  LatentGroup group;
  /// Whether one group's cores read less than as many of different groups.
  bool sharesReading = false;
  /// Cores one at a time, added up; of as many groups as there are, at the same
  /// time; and of one group.
  double bytesAlone = 0, bytesApart = 0, bytesTogether = 0;
};

struct LatentSearch {
  std::vector<FoundGroups> groups;
  /// What else was seen, or why nothing was looked for; a sentence each.
  std::vector<std::string> notes;
};

/// How long a search on a machine of so many cores may take: two seconds and
/// three tenths for each core, at most a minute.
double latentSearchSeconds(uint64_t cores);

/// Looks for groups among cores that are siblings: alike parts ("l3", "numa",
/// ...) have several each, and the topology has nothing between. Groups are
/// what a TopoTree can have, of equal size and one stride.
///
/// Hand-offs are measured pair by pair, reading and computing in sets of two up
/// to half of a part's cores: that four cores of a Kunpeng's cluster share a
/// limit hardly shows in two of them. Half of the sets are drawn evenly, the
/// others as some grouping would have them. Of each core its own effect is
/// taken away, of each moment what all lose, and outliers are clipped. The
/// grouping whose pairs explain best what is left is a candidate if it
/// does so much better than any other and than distance, and if chance
/// explains as much in fewer than one of a thousand tries that shuffle the
/// pairs. One part is searched, more if they are small.
///
/// A candidate becomes a group if fresh measurements confirm it, in up to
/// sixteen parts: whole groups against as many cores spread over groups, which
/// chance makes as different in fewer than one of a thousand shuffles. They
/// must lose at least 2%, and no part may be without.
///
/// Errors: those of `probe` and of `options.progress`.
Result<LatentSearch> findLatentGroups(const MachineNode &machine,
                                      PairProbe &probe,
                                      const LatentSearchOptions &options);

} // namespace sandwich

#endif // SANDWICH_MACHINE_LATENTGROUPS_H
