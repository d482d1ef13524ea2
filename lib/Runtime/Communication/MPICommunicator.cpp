//===- MPICommunicator.cpp - Hosts that MPI connects ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/MPICommunicator.h"

#include "GatheredRows.h"
#include "MPIConnection.h"
#include "RankSum.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {
/// Of all hosts together that a lane buffers.
constexpr int64_t mostElements = int64_t(1) << 19;
/// MPI counts in 32 bits.
constexpr size_t mostBytes = size_t(1) << 30;
/// From this size on every one of more than two hosts sums one segment.
constexpr int64_t leastInSegments = 16384 / sizeof(float);
/// Tags above those of the lanes.
constexpr int broadcastTag = SANDWICH_MAX_THREADS;
constexpr int barrierTag = SANDWICH_MAX_THREADS + 1;
} // namespace

/// Messages that are under way, one to and one from each other host.
struct MPICommunicator::Messages {
  std::vector<MPI_Request> requests;

  explicit Messages(int32_t hosts) {
    requests.reserve(2 * static_cast<size_t>(hosts));
  }
};

/// What one thread uses, in memory that was written to and so is there. Nothing
/// is allocated in a collective, where compiled
/// code and other hosts cannot be told of it.
struct MPICommunicator::Lane : Messages {
  std::unique_ptr<float[]> buffer = std::make_unique<float[]>(mostElements);
  std::vector<const float *> sources;

  explicit Lane(int32_t hosts)
      : Messages(hosts), sources(static_cast<size_t>(hosts)) {}
};

struct MPICommunicator::State {
  std::unique_ptr<MPIConnection> connection;
  std::vector<Lane> lanes;
  /// Of broadcasts, and of barriers.
  Messages broadcasts, barriers;
};

/// Messages between this host and others, all of which are under way at once.
class MPICommunicator::Exchange {
public:
  Exchange(MPIConnection &connection, Messages &messages, int tag)
      : connection(connection), requests(messages.requests), tag(tag) {
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
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<MPIConnection> connection,
                            MPIConnection::open());
  const int32_t host = connection->host();
  const int32_t hosts = connection->hosts();
  std::unique_ptr<State> state(new State{.connection = std::move(connection),
                                         .lanes = {},
                                         .broadcasts = Messages(hosts),
                                         .barriers = Messages(hosts)});
  return std::unique_ptr<MPICommunicator>(
      new MPICommunicator(host, hosts, std::move(state)));
}

uint64_t MPICommunicator::bytesFor(int32_t lanes) const {
  return static_cast<uint64_t>(lanes) * mostElements * sizeof(float);
}

Status MPICommunicator::prepare(int32_t lanes) try {
  state->lanes.reserve(static_cast<size_t>(lanes));
  while (state->lanes.size() < static_cast<size_t>(lanes))
    state->lanes.emplace_back(ranks());
  return {};
} catch (const std::bad_alloc &) {
  return makeError("there is not enough memory for what ", lanes,
                   " threads exchange with the other hosts");
}

bool MPICommunicator::canRun(int32_t lane, int32_t lanes) {
  if (state->connection->hasFailed())
    return false;
  if (lane >= 0 && lane < lanes &&
      static_cast<size_t>(lanes) <= state->lanes.size())
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
  const int64_t most = mostElements / ranks();
  for (int64_t begin = part.begin; begin < part.end; begin += most) {
    int64_t size = std::min(most, part.end - begin);
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
  float *all = lane.buffer.get();
  Exchange exchange(*state->connection, lane, index);
  lane.sources[static_cast<size_t>(rank())] = data;
  for (int32_t distance = 1; distance < ranks(); ++distance) {
    const int32_t other = rankAfter(distance);
    lane.sources[static_cast<size_t>(other)] = all + other * count;
    exchange.receive(other, all + other * count, count);
  }
  for (int32_t distance = 1; distance < ranks(); ++distance)
    exchange.send(rankAfter(distance), data, count);
  if (!exchange.wait())
    return false;
  sumRanks(lane.sources.data(), ranks(), data, count);
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
  float *terms = lane.buffer.get();
  lane.sources[static_cast<size_t>(rank())] = data + own.begin;
  {
    Exchange exchange(*state->connection, lane, index);
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      const int32_t other = rankAfter(distance);
      lane.sources[static_cast<size_t>(other)] = terms + other * size;
      exchange.receive(other, terms + other * size, size);
    }
    for (int32_t distance = 1; distance < ranks(); ++distance) {
      const int32_t other = rankAfter(distance);
      exchange.send(other, data + partOf(other).begin, sizeOf(other));
    }
    if (!exchange.wait())
      return false;
  }
  sumRanks(lane.sources.data(), ranks(), data + own.begin, size);
  Exchange exchange(*state->connection, lane, index);
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
  Exchange exchange(*state->connection,
                    state->lanes[static_cast<size_t>(index)], index);
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
  const int64_t most = mostElements / ranks();
  for (int64_t begin = own.begin; begin < own.end; begin += most) {
    int64_t size = std::min(most, own.end - begin);
    float *all = lane.buffer.get();
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
  while (bytes > 0 && !state->connection->hasFailed()) {
    const size_t size = std::min(bytes, mostBytes);
    Exchange exchange(*state->connection, state->broadcasts, broadcastTag);
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
  if (state->connection->hasFailed())
    return;
  Exchange exchange(*state->connection, state->barriers, barrierTag);
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
