//===- SavedDepths.h - Depths that were found before ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_SAVEDDEPTHS_H
#define SANDWICH_DEVICES_SAVEDDEPTHS_H

#include "sandwich/Devices/DepthEstimator.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Of one device.
struct SavedDepth {
  std::string name;
  /// Absent: a single query takes too long (equation 11).
  std::optional<LatencyLine> line = std::nullopt;
  uint32_t depth = 0;

  bool operator==(const SavedDepth &) const = default;
};

/// What depths and lines hold for: with another model, another SLO or other
/// devices beside them they are others.
struct DepthsSubject {
  std::string modelChecksum;
  double sloSeconds = 1;
  /// The most preferred first.
  std::vector<std::string> devices;
};

/// The depths of all devices with what they were measured for, so that a
/// service that starts again need not measure. A file of JSON:
///
///   {"version": 1, "model_checksum": "…", "slo_seconds": 1,
///    "devices": [{"name": "npu0", "alpha": 0.009, "beta": 0.24, "depth": 84}]}
struct SavedDepths {
  std::string modelChecksum;
  double sloSeconds = 1;
  /// The most preferred first.
  std::vector<SavedDepth> devices;

  /// What `estimate` found, for the model of this checksum.
  static SavedDepths from(const DepthEstimate &estimate,
                          std::string modelChecksum);

  /// Errors (InvalidArgument) name the field and the reason: one that is
  /// absent, unknown, of another type or out of its range; another version; no
  /// device or more than `maxDevices`; two of one name; a depth without a line.
  static Result<SavedDepths> parse(std::string_view json);

  /// The same from a file, which errors name; as `readTextFile`.
  static Result<SavedDepths> read(const std::string &path);

  /// What `parse` reads.
  std::string describe() const;

  /// Writes beside `path` and renames, so that there is never a part of a file.
  /// Errors: as `PendingFile`; what `read` would refuse.
  Status write(const std::string &path) const;

  /// Why these depths do not hold for `subject`, as one sentence without its
  /// end; nothing: they do.
  std::optional<std::string> reasonToIgnore(const DepthsSubject &subject) const;

  bool operator==(const SavedDepths &) const = default;
};

} // namespace sandwich

#endif // SANDWICH_DEVICES_SAVEDDEPTHS_H
