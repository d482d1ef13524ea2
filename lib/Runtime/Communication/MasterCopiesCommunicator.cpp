//===- MasterCopiesCommunicator.cpp - All-reduce by one rank --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MasterCopiesCommunicator.h"

#include "RankSum.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace sandwich;

void MasterCopiesCommunicator::allReduce(int32_t lane, int32_t lanes,
                                         float *data, int64_t count) {
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  std::array<const float *, SharedMemorySegment::maxRanks> sources;
  for (int64_t begin = part.begin; begin < part.end; begin += boxElements()) {
    int64_t size = std::min(boxElements(), part.end - begin);
    size_t bytes = static_cast<size_t>(size) * sizeof(float);
    float *own = data + begin;
    // One step for what the others have, and one for what the master makes of
    // it.
    uint32_t step = takeSteps(lane, 2);
    if (rank() != 0) {
      std::memcpy(box(rank(), 0, lane, step), own, bytes);
      publishWritten(lane, step);
      if (!waitWritten(0, lane, step + 1))
        return;
      std::memcpy(own, box(0, rank(), lane, step + 1), bytes);
      continue;
    }
    sources[0] = own;
    for (int32_t other = 1; other < ranks(); ++other) {
      if (!waitWritten(other, lane, step))
        return;
      sources[static_cast<size_t>(other)] = box(other, 0, lane, step);
    }
    sumRanks(sources.data(), ranks(), own, size);
    writeToAll(lane, step + 1, own, size);
    publishWritten(lane, step + 1);
  }
}
