//===- TwoLevelCommunicator.cpp - Ranks of several hosts ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/TwoLevelCommunicator.h"

#include "GatheredRows.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <algorithm>

using namespace sandwich;

/// Of all ranks together that go at once in a lane.
static constexpr int64_t mostElements = int64_t(1) << 18;

TwoLevelCommunicator::TwoLevelCommunicator(SharedMemoryCommunicator &local,
                                           HostCommunicator *hosts,
                                           int32_t firstRank, int32_t ranks)
    : Communicator(firstRank + local.rank(), ranks), local(local),
      hosts(hosts) {
  // Written to, so that the memory is there.
  for (int32_t lane = 0; lane < local.lanes(); ++lane)
    buffers.push_back(std::make_unique<float[]>(mostElements));
}

uint64_t TwoLevelCommunicator::bytesFor(int32_t lanes) {
  return static_cast<uint64_t>(lanes) * mostElements * sizeof(float);
}

void TwoLevelCommunicator::allReduce(int32_t lane, int32_t lanes, float *data,
                                     int64_t count) {
  local.allReduce(lane, lanes, data, count);
  if (meetsHosts())
    hosts->allReduce(lane, lanes, data, count);
  const LanePart part = LanePart::of(count, lane, lanes);
  local.sharePart(lane, data + part.begin, part.end - part.begin, /*root=*/0);
}

void TwoLevelCommunicator::allGather(int32_t lane, int32_t lanes,
                                     const float *part, float *whole,
                                     int64_t rows, int64_t columns) {
  const LanePart own = LanePart::of(rows * columns, lane, lanes);
  const int64_t firstRank = rank() - local.rank();
  const int64_t most = mostElements / ranks();
  if (lane < 0 || lane >= local.lanes())
    // This tells the group.
    return local.allGather(lane, lanes, part, whole, rows, columns);
  for (int64_t begin = own.begin; begin < own.end; begin += most) {
    const int64_t size = std::min(most, own.end - begin);
    float *all = buffers[static_cast<size_t>(lane)].get();
    float *ofHost = all + firstRank * size;
    local.gatherPart(lane, part + begin, ofHost, size);
    if (meetsHosts())
      hosts->gatherPart(lane, ofHost, all, size * local.ranks());
    local.sharePart(lane, all, size * ranks(), /*root=*/0);
    for (int32_t rank = 0; rank < ranks(); ++rank)
      placeElements(whole + rank * columns, columns * ranks(),
                    all + rank * size, begin, size, columns);
  }
}

void TwoLevelCommunicator::broadcast(void *data, size_t bytes, int32_t root) {
  const int32_t host = rank() / local.ranks();
  const bool own = root / local.ranks() == host;
  if (own)
    local.broadcast(data, bytes, root % local.ranks());
  if (meetsHosts())
    hosts->broadcast(data, bytes, root / local.ranks());
  if (!own)
    local.broadcast(data, bytes, /*root=*/0);
}

void TwoLevelCommunicator::barrier() {
  local.barrier();
  if (meetsHosts())
    hosts->barrier();
  local.barrier();
}

Status TwoLevelCommunicator::failure() const {
  SANDWICH_RETURN_IF_ERROR(local.failure());
  return hosts ? hosts->failure() : Status();
}
