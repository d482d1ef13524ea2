//===- MPICommunicator.cpp - Ranks of several machines --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/MPICommunicator.h"

#include "GatheredRows.h"
#include "RankSum.h"
#include "sandwich/Runtime/PhaseABI.h"

// The C interface alone; the one for C++ left the standard with MPI 3.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {
/// MPI counts in 32 bits; so much goes in one call, and is buffered.
constexpr int64_t mostElements = int64_t(1) << 20;
constexpr size_t mostBytes = size_t(1) << 30;
/// From this size on every rank sums one segment.
constexpr int64_t leastInSegments = 16384 / sizeof(float);

/// What one thread of a rank uses. MPI lets several threads in at once only if
/// they use different communicators.
struct Lane {
  MPI_Comm communicator = MPI_COMM_NULL;
  std::vector<float> buffer;

  /// Memory for `count` elements.
  float *reserve(int64_t count) {
    if (buffer.size() < static_cast<size_t>(count))
      buffer.resize(static_cast<size_t>(count));
    return buffer.data();
  }
};
} // namespace

struct MPICommunicator::State {
  /// As many as the team has threads, and one for what one thread does alone.
  std::vector<Lane> lanes;
  std::atomic<bool> failed{false};
  mutable std::mutex mutex;
  std::string reason;

  ~State() {
    for (Lane &lane : lanes)
      if (lane.communicator != MPI_COMM_NULL)
        MPI_Comm_free(&lane.communicator);
    MPI_Finalize();
  }

  void fail(const std::string &why) {
    std::lock_guard lock(mutex);
    if (failed.exchange(true))
      return;
    reason = why;
  }

  /// Whether `code` is success; anything else fails the group.
  bool check(int code) {
    if (code == MPI_SUCCESS)
      return true;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail("MPI failed: " + std::string(text, static_cast<size_t>(length)));
    return false;
  }

  /// Waits as teams do, spinning first and sleeping then; MPI alone would spin
  /// until the next request comes.
  bool wait(MPI_Request request) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point start = Clock::now();
    for (int done = 0; true;) {
      if (!check(MPI_Test(&request, &done, MPI_STATUS_IGNORE)))
        return false;
      if (done)
        return true;
      if (Clock::now() - start > std::chrono::milliseconds(1))
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
};

MPICommunicator::MPICommunicator(int32_t rank, int32_t ranks,
                                 std::unique_ptr<State> state)
    : Communicator(rank, ranks), state(std::move(state)) {}

MPICommunicator::~MPICommunicator() = default;

Result<std::unique_ptr<MPICommunicator>>
MPICommunicator::create(int32_t lanes) {
  if (lanes < 1 || lanes > SANDWICH_MAX_THREADS)
    return makeError("the number of threads is ", lanes,
                     ", which is not between 1 and ", SANDWICH_MAX_THREADS);
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized)
    return makeError("MPI is in use in this process already");
  int support = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &support) !=
      MPI_SUCCESS)
    return makeError("cannot start MPI");
  auto state = std::make_unique<State>();
  if (support < MPI_THREAD_MULTIPLE)
    return makeError("this MPI does not work with several threads");
  state->lanes.resize(static_cast<size_t>(lanes) + 1);
  for (Lane &lane : state->lanes)
    if (!state->check(MPI_Comm_dup(MPI_COMM_WORLD, &lane.communicator)) ||
        !state->check(
            MPI_Comm_set_errhandler(lane.communicator, MPI_ERRORS_RETURN)))
      return makeError(state->reason);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return std::unique_ptr<MPICommunicator>(
      new MPICommunicator(rank, ranks, std::move(state)));
}

bool MPICommunicator::canRun(int32_t lane, int32_t lanes) {
  if (state->failed.load(std::memory_order_relaxed))
    return false;
  if (lane >= 0 && lane < lanes &&
      static_cast<size_t>(lanes) < state->lanes.size())
    return true;
  state->fail("a collective ran as thread " + std::to_string(lane) + " of " +
              std::to_string(lanes) + ", but MPI was joined for " +
              std::to_string(state->lanes.size() - 1));
  return false;
}

void MPICommunicator::allReduce(int32_t lane, int32_t lanes, float *data,
                                int64_t count) {
  if (ranks() == 1 || !canRun(lane, lanes))
    return;
  LanePart part = LanePart::of(count, lane, lanes);
  for (int64_t begin = part.begin; begin < part.end; begin += mostElements) {
    int64_t size = std::min(mostElements, part.end - begin);
    if (size < leastInSegments ? !sumAtOnce(lane, data + begin, size)
                               : !sumInSegments(lane, data + begin, size))
      return;
  }
}

// MPI_Allreduce does not promise that all ranks get the same bits.
bool MPICommunicator::sumAtOnce(int32_t index, float *data, int64_t count) {
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  float *all = lane.reserve(count * ranks());
  if (!state->check(MPI_Allgather(data, static_cast<int>(count), MPI_FLOAT, all,
                                  static_cast<int>(count), MPI_FLOAT,
                                  lane.communicator)))
    return false;
  std::vector<const float *> sources;
  for (int32_t rank = 0; rank < ranks(); ++rank)
    sources.push_back(all + rank * count);
  sumRanks(sources.data(), ranks(), data, nullptr, count);
  return true;
}

/// Rank r sums segment r, and all fetch the sums.
bool MPICommunicator::sumInSegments(int32_t index, float *data, int64_t count) {
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  std::vector<int> sizes, begins, ownSizes, ownBegins;
  LanePart own = LanePart::of(count, rank(), ranks());
  int64_t ownSize = own.end - own.begin;
  float *terms = lane.reserve(ownSize * ranks());
  std::vector<const float *> sources;
  for (int32_t rank = 0; rank < ranks(); ++rank) {
    LanePart part = LanePart::of(count, rank, ranks());
    sizes.push_back(static_cast<int>(part.end - part.begin));
    begins.push_back(static_cast<int>(part.begin));
    ownSizes.push_back(static_cast<int>(ownSize));
    ownBegins.push_back(static_cast<int>(rank * ownSize));
    sources.push_back(terms + rank * ownSize);
  }
  if (!state->check(MPI_Alltoallv(data, sizes.data(), begins.data(), MPI_FLOAT,
                                  terms, ownSizes.data(), ownBegins.data(),
                                  MPI_FLOAT, lane.communicator)))
    return false;
  sumRanks(sources.data(), ranks(), data + own.begin, nullptr, ownSize);
  return state->check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data,
                                     sizes.data(), begins.data(), MPI_FLOAT,
                                     lane.communicator));
}

void MPICommunicator::allGather(int32_t index, int32_t lanes, const float *part,
                                float *whole, int64_t rows, int64_t columns) {
  if (!canRun(index, lanes))
    return;
  Lane &lane = state->lanes[static_cast<size_t>(index)];
  LanePart own = LanePart::of(rows * columns, index, lanes);
  for (int64_t begin = own.begin; begin < own.end; begin += mostElements) {
    int64_t size = std::min(mostElements, own.end - begin);
    float *all = lane.reserve(size * ranks());
    if (!state->check(MPI_Allgather(part + begin, static_cast<int>(size),
                                    MPI_FLOAT, all, static_cast<int>(size),
                                    MPI_FLOAT, lane.communicator)))
      return;
    for (int32_t rank = 0; rank < ranks(); ++rank)
      placeElements(whole + rank * columns, columns * ranks(),
                    all + rank * size, begin, size, columns);
  }
}

void MPICommunicator::broadcast(void *data, size_t bytes, int32_t root) {
  if (!canRun(0, 1))
    return;
  auto *next = static_cast<std::byte *>(data);
  while (bytes > 0) {
    size_t size = std::min(bytes, mostBytes);
    MPI_Request request;
    if (!state->check(MPI_Ibcast(next, static_cast<int>(size), MPI_BYTE, root,
                                 state->lanes.back().communicator, &request)) ||
        !state->wait(request))
      return;
    next += size;
    bytes -= size;
  }
}

void MPICommunicator::barrier() {
  if (!canRun(0, 1))
    return;
  MPI_Request request;
  if (state->check(MPI_Ibarrier(state->lanes.back().communicator, &request)))
    state->wait(request);
}

Status MPICommunicator::failure() const {
  std::lock_guard lock(state->mutex);
  if (!state->failed)
    return {};
  return makeError(state->reason);
}
