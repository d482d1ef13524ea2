//===- KnownProcessors.h - Published figures of processors ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_MACHINE_KNOWNPROCESSORS_H
#define SANDWICH_LIB_MACHINE_KNOWNPROCESSORS_H

#include "sandwich/Target/Target.h"

#include <array>
#include <string>
#include <string_view>

namespace sandwich {

/// The units that figures are written in.
inline constexpr double giga = 1e9;
inline constexpr double nano = 1e-9;

/// Published figures of one family of processors. Zero is unknown.
struct KnownProcessor {
  /// How the names of its models begin, behind that of the maker, with a digit
  /// for each '#': "EPYC 7##2".
  std::array<std::string_view, 2> models;
  std::string_view name;
  /// Channels of memory of a socket and their million transfers a second of
  /// eight bytes, and the share of that which reads reach.
  double channels = 0, megatransfers = 0, readShare = 0;
  /// What one core reads, and what all cores of an L3 read where a socket has
  /// several, in GB/s.
  double coreGigabytes = 0, sliceGigabytes = 0;
  /// What the cores of a socket read over its links, in GB/s.
  double linkGigabytes = 0;
  /// The share that one core reads from another node of its socket, or of
  /// another socket, whichever is less.
  double remoteShare = 0;
  /// From core to core in nanoseconds, where the smallest part with both is an
  /// L3 slice, the socket, the machine.
  double sliceHandoff = 0, packageHandoff = 0, machineHandoff = 0;
  double latencyNanoseconds = 0;
  std::string_view source;

  /// Whether `text` begins with the name of the family or of one of its models.
  bool isNamedBy(std::string_view text) const;
};

/// The family of `cpuModel`, or null.
const KnownProcessor *findKnownProcessor(std::string_view cpuModel);

/// "Kunpeng 920, EPYC Rome, ...", for people.
std::string knownProcessorNames();

/// What processors with the instructions of a target have in the middle: what
/// counts where the model is not known.
struct Generation {
  double gigahertz;
  /// Operations of one core for each cycle in matmuls, as reached.
  double f32PerCycle, bf16PerCycle, int8PerCycle;
  /// What one core reads; what a node's memory gives for each core, and at
  /// least; in GB/s.
  double coreGigabytes, gigabytesPerCore, nodeGigabytes;
  double latencyNanoseconds;
  std::string_view name;
};

const Generation &generationOf(const Target &target);

} // namespace sandwich

#endif // SANDWICH_LIB_MACHINE_KNOWNPROCESSORS_H
