//===- MasterCopiesCommunicator.cpp - All-reduce by one rank --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/MasterCopiesCommunicator.h"

#include "RankSum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

using namespace sandwich;

Result<std::unique_ptr<MasterCopiesCommunicator>>
MasterCopiesCommunicator::create(std::shared_ptr<SharedMemorySegment> segment,
                                 int32_t rank) {
  SANDWICH_RETURN_IF_ERROR(segment->join(rank));
  return std::unique_ptr<MasterCopiesCommunicator>(
      new MasterCopiesCommunicator(std::move(segment), rank));
}

// A slot is written again only when its readers are done: the master waits for
// what ranks write after they have copied its last sums, and ranks write after
// those sums, for which the master has read all that they wrote before.
void MasterCopiesCommunicator::allReduce(int32_t lane, int32_t lanes,
                                         float *data, int64_t count) {
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  std::array<const float *, SharedMemorySegment::maxRanks> sources;
  for (int64_t begin = part.begin; begin < part.end; begin += slotElements()) {
    int64_t size = std::min(slotElements(), part.end - begin);
    size_t bytes = static_cast<size_t>(size) * sizeof(float);
    float *own = data + begin;
    uint32_t step = takeSteps(lane, 1);
    if (rank() != 0) {
      std::memcpy(slot(rank(), lane, step), own, bytes);
      publishWritten(lane, step);
      if (!waitSummed(0, lane, step))
        return;
      std::memcpy(own, slot(0, lane, step), bytes);
      continue;
    }
    sources[0] = own;
    for (int32_t other = 1; other < ranks(); ++other) {
      if (!waitWritten(other, lane, step))
        return;
      sources[static_cast<size_t>(other)] = slot(other, lane, step);
    }
    sumRanks(sources.data(), ranks(), own, slot(0, lane, step), size);
    publishSummed(lane, step);
  }
}
