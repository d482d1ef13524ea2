//===- Communicator.h - What tensor-parallel ranks exchange -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The collectives of the ranks of one model. A rank is a process with a team
/// of threads; a lane is the threads of one number, one in each rank. Thread t
/// meets only the other threads of its lane, so a collective needs no barrier
/// inside a rank: it begins when the data of the lane's own part is there, and
/// its result is complete once all lanes have returned.
///
/// After a failure collectives return at once and leave what they should have
/// written unspecified, because compiled code cannot take an error; whoever
/// ran that code asks `failure` afterwards.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_COMMUNICATOR_H
#define SANDWICH_RUNTIME_COMMUNICATION_COMMUNICATOR_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>

namespace sandwich {

/// Part `lane` of [0, count), divided among `lanes` so that no two lanes write
/// to one cache line, nor to the one that is fetched with it, if element 0 is
/// aligned. Parts differ by 32 elements at most and may be empty.
struct LanePart {
  int64_t begin = 0;
  int64_t end = 0;

  static LanePart of(int64_t count, int32_t lane, int32_t lanes) {
    constexpr int64_t granule = 32;
    int64_t granules = (count + granule - 1) / granule;
    auto edge = [&](int64_t i) {
      int64_t position = granules * i / lanes * granule;
      return position < count ? position : count;
    };
    return {edge(lane), edge(int64_t(lane) + 1)};
  }
};

/// Every rank calls the same collectives with the same arguments (but for
/// pointers) in the same order in each lane.
class Communicator {
public:
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  virtual ~Communicator() = default;

  /// In [0, ranks()).
  int32_t rank() const { return ownRank; }
  int32_t ranks() const { return rankCount; }
  /// Among those ranks that run on this host.
  virtual int32_t rankOnHost() const { return ownRank; }
  virtual int32_t ranksOnHost() const { return rankCount; }

  /// Replaces `data`, [count], by its sum over the ranks, in f32 and in the
  /// order of ranks, on several hosts of hosts and of the ranks of each, so
  /// that every rank gets the same bits. Called by the threads `lane` in [0,
  /// lanes) of each rank, each of which sums its `LanePart`.
  virtual void allReduce(int32_t lane, int32_t lanes, float *data,
                         int64_t count) = 0;

  /// Puts every rank's `part`, [rows, columns], side by side: rank r's element
  /// [i, j] becomes element [i, r * columns + j] of `whole`, [rows, columns *
  /// ranks], on every rank. `part` lies outside of `whole`. Called as
  /// `allReduce`; each thread distributes its `LanePart` of rows * columns.
  virtual void allGather(int32_t lane, int32_t lanes, const float *part,
                         float *whole, int64_t rows, int64_t columns) = 0;

  /// Replaces `bytes` bytes at `data` by those of rank `root`. Called by one
  /// thread of each rank, also while others are in another collective.
  virtual void broadcast(void *data, size_t bytes, int32_t root) = 0;

  /// Returns once all ranks have called it. Called as `broadcast`.
  virtual void barrier() = 0;

  /// Success, or why collectives no longer work: which rank failed, and how.
  virtual Status failure() const = 0;

protected:
  Communicator(int32_t rank, int32_t ranks) : ownRank(rank), rankCount(ranks) {}

private:
  const int32_t ownRank;
  const int32_t rankCount;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_COMMUNICATOR_H
