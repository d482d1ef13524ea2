//===- TwoLevelCommunicator.cpp - Ranks of several hosts ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/TwoLevelCommunicator.h"

#include "GatheredRows.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <algorithm>

using namespace sandwich;

/// Elements of each rank that go at once, to bound the buffers.
static constexpr int64_t mostElements = int64_t(1) << 18;

TwoLevelCommunicator::TwoLevelCommunicator(SharedMemoryCommunicator &local,
                                           HostCommunicator *hosts,
                                           int32_t firstRank, int32_t ranks)
    : Communicator(firstRank + local.rank(), ranks), local(local), hosts(hosts),
      buffers(SANDWICH_MAX_THREADS) {}

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
  for (int64_t begin = own.begin; begin < own.end; begin += mostElements) {
    const int64_t size = std::min(mostElements, own.end - begin);
    std::vector<float> &all = buffers[static_cast<size_t>(lane)];
    all.resize(static_cast<size_t>(size * ranks()));
    float *ofHost = all.data() + firstRank * size;
    local.gatherPart(lane, part + begin, ofHost, size);
    if (meetsHosts())
      hosts->gatherPart(lane, ofHost, all.data(), size * local.ranks());
    local.sharePart(lane, all.data(), size * ranks(), /*root=*/0);
    for (int32_t rank = 0; rank < ranks(); ++rank)
      placeElements(whole + rank * columns, columns * ranks(),
                    all.data() + rank * size, begin, size, columns);
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
