//===- DepthTuning.h - Depths of devices that work together -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEPTHTUNING_H
#define SANDWICH_DEVICES_DEPTHTUNING_H

#include "sandwich/Devices/DepthOptions.h"

#include <optional>
#include <span>
#include <vector>

namespace sandwich {

/// Fine-tunes estimated depths with all devices busy at once (WindVE, IV.B.2
/// and V.B), as they share memory, cores and drivers: steps from each estimate
/// until a depth keeps the SLO and its neighbour does not. All devices are
/// measured by the same measurements. A device whose depth was found goes on to
/// be measured beside the others, and goes down again if they make it too slow.
class DepthTuning {
public:
  /// `estimates`: of each device; one of 0 stays idle. Errors: as
  /// `DepthOptions::validate`.
  static Result<DepthTuning> create(const DepthOptions &options,
                                    std::span<const uint32_t> estimates);

  /// How many queries to send to each device at a time, to all at once.
  /// Nothing: done.
  const std::optional<std::vector<uint32_t>> &next() const { return wanted; }

  /// The latencies of what `next` asked for; those of idle devices are not
  /// looked at. Errors (InvalidArgument): nothing was asked for; another number
  /// of latencies than of devices; as `checkSeconds`.
  Status record(std::span<const double> seconds);

  /// Of each device the most queries that kept the SLO, so far.
  std::vector<uint32_t> depths() const;

  size_t profiles() const { return measured; }

private:
  struct Device {
    /// The most queries known to keep the SLO; 0: none are.
    uint32_t kept = 0;
    /// The fewest known not to.
    uint32_t broken = 0;
    /// What is measured next.
    uint32_t trial = 0;
    uint32_t step = 1;

    bool isFound() const { return broken - kept <= 1; }
    void learn(bool keeps);
    void choose(uint32_t most);
  };

  explicit DepthTuning(const DepthOptions &options) : options(options) {}

  void choose();

  DepthOptions options;
  std::vector<Device> devices;
  std::optional<std::vector<uint32_t>> wanted;
  size_t measured = 0;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEPTHTUNING_H
