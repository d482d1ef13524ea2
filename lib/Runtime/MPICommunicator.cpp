//===- MPICommunicator.cpp - Hosts that MPI connects ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/MPICommunicator.h"

#include "GatheredRows.h"
#include "MPIConnection.h"
#include "RankSum.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {
/// MPI counts in 32 bits; so much goes in one call, and is buffered.
constexpr int64_t mostElements = int64_t(1) << 20;
constexpr size_t mostBytes = size_t(1) << 30;
/// From this size on every one of more than two hosts sums one segment.
constexpr int64_t leastInSegments = 16384 / sizeof(float);
/// Tags above those of the lanes.
constexpr int broadcastTag = SANDWICH_MAX_THREADS;
constexpr int barrierTag = SANDWICH_MAX_THREADS + 1;
} // namespace

/// What one thread uses.
struct MPICommunicator::Lane {
  std::vector<float> buffer;
  std::vector<MPI_Request> requests;

  /// Memory for `count` elements.
  float *reserve(int64_t count) {
    if (buffer.size() < static_cast<size_t>(count))
      buffer.resize(static_cast<size_t>(count));
    return buffer.data();
  }
};

struct MPICommunicator::State {
  std::unique_ptr<MPIConnection> connection;
  std::vector<Lane> lanes = std::vector<Lane>(SANDWICH_MAX_THREADS);
};

/// Messages between this host and others, all of which are under way at once.
class MPICommunicator::Exchange {
public:
  Exchange(MPIConnection &connection, std::vector<MPI_Request> &requests,
           int tag)
      : connection(connection), requests(requests), tag(tag) {
    requests.clear();
  }

  void send(int32_t host, const void *data, size_t bytes) {
    ok = ok && connection.check(MPI_Isend(data, static_cast<int>(bytes),
                                          MPI_BYTE, host, tag,
                                          connection.communicator(), add()));
  }
  void receive(int32_t host, void *data, size_t bytes) {
    ok = ok && connection.check(MPI_Irecv(data, static_cast<int>(bytes),
                                          MPI_BYTE, host, tag,
                                          connection.communicator(), add()));
  }
  void send(int32_t host, const float *data, int64_t count) {
    send(host, static_cast<const void *>(data),
         static_cast<size_t>(count) * sizeof(float));
  }
  void receive(int32_t host, float *data, int64_t count) {
    receive(host, static_cast<void *>(data),
            static_cast<size_t>(count) * sizeof(float));
  }
  bool wait() { return connection.wait(requests) && ok; }

private:
  MPI_Request *add() { return &requests.emplace_back(MPI_REQUEST_NULL); }

  MPIConnection &connection;
  std::vector<MPI_Request> &requests;
  const int tag;
  bool ok = true;
};

MPICommunicator::MPICommunicator(int32_t rank, int32_t ranks,
                                 std::unique_ptr<State> state)
    : HostCommunicator(rank, ranks), state(std::move(state)) {}

MPICommunicator::~MPICommunicator() = default;

Result<std::unique_ptr<MPICommunicator>> MPICommunicator::create() {
  auto state = std::make_unique<State>();
  SANDWICH_ASSIGN_OR_RETURN(state->connection, MPIConnection::open());
  const int32_t host = state->connection->host();
  const int32_t hosts = state->connection->hosts();
  return std::unique_ptr<MPICommunicator>(
      new MPICommunicator(host, hosts, std::move(state)));
}

bool MPICommunicator::canRun(int32_t lane, int32_t lanes) {
  if (state->connection->hasFailed())
    return false;
  if (lane >= 0 && lane < lanes && lanes <= SANDWICH_MAX_THREADS)
    return true;
  state->connection->fail("ran a collective as thread " + std::to_string(lane) +
                          " of " + std::to_string(lanes));
  return false;
}

void MPICommunicator::allReduce(int32_t lane, int32_t lanes, float *data,
                                int64_t count) {
  MPIConnection::Collective collective(*state->connection);
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  for (int64_t begin = part.begin; begin < part.end; begin += mostElements) {
    int64_t size = std::min(mostElements, part.end - begin);
    // Two hosts send each other as much either way.
    if (ranks() == 2 || size < leastInSegments
            ? !sumAtOnce(lane, data + begin, size)
            : !sumInSegments(lane, data + begin, size))
      return;
  }
}

// MPI_Allreduce does not promise that all ranks get the same bits.
bool MPICommunicator::sumAtOnce(int32_t index, float *data, int64_t count) {
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  float *all = lane.reserve(count * ranks());
  Exchange exchange(*state->connection, lane.requests, index);
  std::vector<const float *> sources(static_cast<size_t>(ranks()), data);
  for (int32_t distance = 1; distance < ranks(); ++distance) {
    const int32_t other = rankAfter(distance);
    sources[static_cast<size_t>(other)] = all + other * count;
    exchange.receive(other, all + other * count, count);
  }
  for (int32_t distance = 1; distance < ranks(); ++distance)
    exchange.send(rankAfter(distance), data, count);
  if (!exchange.wait())
    return false;
  sumRanks(sources.data(), ranks(), data, nullptr, count);
  return true;
}

/// Host r sums segment r, and all fetch the sums.
bool MPICommunicator::sumInSegments(int32_t index, float *data, int64_t count) {
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  auto partOf = [&](int32_t rank) {
    return LanePart::of(count, rank, ranks());
  };
  auto sizeOf = [&](int32_t rank) {
    return partOf(rank).end - partOf(rank).begin;
  };
  const LanePart own = partOf(rank());
  const int64_t size = sizeOf(rank());
  float *terms = lane.reserve(size * ranks());
  std::vector<const float *> sources(static_cast<size_t>(ranks()),
                                     data + own.begin);
  {
    Exchange exchange(*state->connection, lane.requests, index);
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      const int32_t other = rankAfter(distance);
      sources[static_cast<size_t>(other)] = terms + other * size;
      exchange.receive(other, terms + other * size, size);
    }
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      const int32_t other = rankAfter(distance);
      exchange.send(other, data + partOf(other).begin, sizeOf(other));
    }
    if (!exchange.wait())
      return false;
  }
  sumRanks(sources.data(), ranks(), data + own.begin, nullptr, size);
  Exchange exchange(*state->connection, lane.requests, index);
  for (int32_t distance = 1; distance < ranks(); ++distance) {
    const int32_t other = rankAfter(distance);
    exchange.receive(other, data + partOf(other).begin, sizeOf(other));
  }
  for (int32_t distance = 1; distance < ranks(); ++distance)
    exchange.send(rankAfter(distance), data + own.begin, size);
  return exchange.wait();
}

bool MPICommunicator::gather(int32_t index, const float *part, float *all,
                             int64_t count) {
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  Exchange exchange(*state->connection, lane.requests, index);
  for (int32_t distance = 1; distance < ranks(); ++distance)
    exchange.receive(rankAfter(distance), all + rankAfter(distance) * count,
                     count);
  for (int32_t distance = 1; distance < ranks(); ++distance)
    exchange.send(rankAfter(distance), part, count);
  if (part != all + rank() * count)
    std::copy_n(part, count, all + rank() * count);
  return exchange.wait();
}

void MPICommunicator::gatherPart(int32_t lane, const float *part, float *all,
                                 int64_t count) {
  MPIConnection::Collective collective(*state->connection);
  if (canRun(lane, lane + 1))
    gather(lane, part, all, count);
}

void MPICommunicator::allGather(int32_t index, int32_t lanes, const float *part,
                                float *whole, int64_t rows, int64_t columns) {
  MPIConnection::Collective collective(*state->connection);
  if (!canRun(index, lanes))
    return;
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  LanePart own = LanePart::of(rows * columns, index, lanes);
  for (int64_t begin = own.begin; begin < own.end; begin += mostElements) {
    int64_t size = std::min(mostElements, own.end - begin);
    float *all = lane.reserve(size * ranks());
    if (!gather(index, part + begin, all, size))
      return;
    for (int32_t rank = 0; rank < ranks(); ++rank)
      placeElements(whole + rank * columns, columns * ranks(),
                    all + rank * size, begin, size, columns);
  }
}

void MPICommunicator::broadcast(void *data, size_t bytes, int32_t root) {
  MPIConnection::Collective collective(*state->connection, /*counts=*/false);
  auto *next = static_cast<std::byte *>(data);
  while (bytes > 0 && canRun(0, 1)) {
    const size_t size = std::min(bytes, mostBytes);
    std::vector<MPI_Request> requests;
    Exchange exchange(*state->connection, requests, broadcastTag);
    if (rank() != root)
      exchange.receive(root, static_cast<void *>(next), size);
    else
      for (int32_t distance = 1; distance < ranks(); ++distance)
        exchange.send(rankAfter(distance), static_cast<const void *>(next),
                      size);
    if (!exchange.wait())
      return;
    next += size;
    bytes -= size;
  }
}

void MPICommunicator::barrier() {
  MPIConnection::Collective collective(*state->connection);
  if (!canRun(0, 1))
    return;
  std::vector<MPI_Request> requests;
  Exchange exchange(*state->connection, requests, barrierTag);
  for (int32_t distance = 1; distance < ranks(); ++distance) {
    exchange.receive(rankAfter(distance), static_cast<void *>(nullptr), 0);
    exchange.send(rankAfter(distance), static_cast<const void *>(nullptr), 0);
  }
  exchange.wait();
}

Status MPICommunicator::failure() const { return state->connection->failure(); }

HostProgress MPICommunicator::progress() const {
  return state->connection->progress();
}

std::string MPICommunicator::nameOf(int32_t host) const {
  return state->connection->nameOf(host);
}

void MPICommunicator::fail(std::string_view reason) {
  state->connection->fail(reason);
}

bool MPICommunicator::lostContact() const {
  return state->connection->lostContact();
}

Status MPICommunicator::leave() { return state->connection->leave(); }
