//===- Measurement.h - All-reduce schemes in turn ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_COLLECTIVES_MEASUREMENT_H
#define SANDWICH_BENCHMARKS_COLLECTIVES_MEASUREMENT_H

#include "Peer.h"
#include "sandwich/Runtime/Communication/SharedMemorySegment.h"
#include "sandwich/Support/Result.h"

#include <memory>
#include <string>
#include <vector>

namespace sandwich::benchmark {

struct MeasurementOptions {
  /// Sizes of messages, multiples of 4.
  std::vector<int64_t> bytes = {8192, 32768, 524288};
  /// Measurements of each scheme, in turn.
  int64_t rounds = 101;
  /// All-reduces of one measurement.
  int64_t iterations = 50;
  /// Of a slot; 0 for the default.
  uint64_t slotBytes = 0;
};

/// The median time of one all-reduce, as rank 0 sees it.
struct Measurement {
  std::string scheme;
  int64_t bytes = 0;
  double seconds = 0;
};

/// One segment for each of the schemes over shared memory.
struct Segments {
  std::shared_ptr<SharedMemorySegment> shifted;
  std::shared_ptr<SharedMemorySegment> masterCopies;

  static Result<Segments> create(int32_t ranks,
                                 const MeasurementOptions &options);
  /// Rank 0's, by way of the peer's broadcast.
  static Result<Segments> share(Peer &peer, const MeasurementOptions &options);
};

/// Called by every rank: keeps it on a CPU of its own as far as there are any,
/// checks each scheme's sums, and measures the schemes in turn, `peer`'s too
/// unless it is null. The measurements are rank 0's.
Result<std::vector<Measurement>> measure(const Segments &segments, int32_t rank,
                                         Peer *peer,
                                         const MeasurementOptions &options);

} // namespace sandwich::benchmark

#endif // SANDWICH_BENCHMARKS_COLLECTIVES_MEASUREMENT_H
