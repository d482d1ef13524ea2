//===- Measurement.cpp - All-reduce schemes in turn -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measurement.h"

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Statistics.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

struct Scheme {
  std::string name;
  std::function<void(float *, int64_t)> allReduce;
  std::vector<double> seconds;
};

/// What a process says of its segments' descriptors.
struct Descriptors {
  pid_t process;
  int shifted;
  int masterCopies;
};

/// CPUs this process may use.
std::vector<int> allowedCpus() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask))
        cpus.push_back(cpu);
  return cpus;
}

/// Small integers, whose sums are exact in any order.
void fill(std::vector<float> &data, int32_t rank) {
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 64);
}

Status check(Scheme &scheme, int32_t rank, int32_t ranks, int64_t count) {
  std::vector<float> data(static_cast<size_t>(count)), term = data, sum = data;
  for (int32_t other = 0; other < ranks; ++other) {
    fill(term, other);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += term[i];
  }
  fill(data, rank);
  scheme.allReduce(data.data(), count);
  if (data != sum)
    return makeError(scheme.name, ": wrong sums of ", count, " elements");
  return {};
}

Result<std::shared_ptr<SharedMemorySegment>> attachTo(pid_t process, int file) {
  std::string path =
      "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    return systemError(path, "open it");
  auto segment = SharedMemorySegment::attach(descriptor);
  ::close(descriptor);
  return segment;
}

} // namespace

Result<Segments> Segments::create(int32_t ranks,
                                  const MeasurementOptions &options) {
  Segments segments;
  SharedMemorySegmentOptions shape;
  shape.slotBytes = options.slotBytes;
  shape.oversubscribed = static_cast<size_t>(ranks) > allowedCpus().size();
  SANDWICH_ASSIGN_OR_RETURN(segments.shifted,
                            SharedMemorySegment::create(ranks, 1, shape));
  shape.collectives = Collectives::MasterCopies;
  SANDWICH_ASSIGN_OR_RETURN(segments.masterCopies,
                            SharedMemorySegment::create(ranks, 1, shape));
  return segments;
}

Result<Segments> Segments::share(Peer &peer,
                                 const MeasurementOptions &options) {
  Segments segments;
  Descriptors descriptors{};
  if (peer.rank() == 0) {
    SANDWICH_ASSIGN_OR_RETURN(segments, create(peer.ranks(), options));
    descriptors = {::getpid(), segments.shifted->descriptor(),
                   segments.masterCopies->descriptor()};
  }
  peer.broadcast(&descriptors, sizeof(descriptors));
  if (peer.rank() == 0)
    return segments;
  SANDWICH_ASSIGN_OR_RETURN(segments.shifted,
                            attachTo(descriptors.process, descriptors.shifted));
  SANDWICH_ASSIGN_OR_RETURN(
      segments.masterCopies,
      attachTo(descriptors.process, descriptors.masterCopies));
  return segments;
}

Result<std::vector<Measurement>>
sandwich::benchmark::measure(const Segments &segments, int32_t rank, Peer *peer,
                             const MeasurementOptions &options) {
  using Clock = std::chrono::steady_clock;
  int32_t ranks = segments.shifted->ranks();
  std::vector<int> cpus = allowedCpus();
  if (cpus.empty())
    return systemError("read the affinity mask");
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpus[static_cast<size_t>(rank) % cpus.size()], &own);
  ::sched_setaffinity(0, sizeof(own), &own);
  SANDWICH_ASSIGN_OR_RETURN(
      auto shifted, SharedMemoryCommunicator::create(segments.shifted, rank));
  SANDWICH_ASSIGN_OR_RETURN(
      auto masterCopies,
      SharedMemoryCommunicator::create(segments.masterCopies, rank));

  std::vector<Measurement> measurements;
  for (int64_t bytes : options.bytes) {
    int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    std::vector<float> sum(static_cast<size_t>(count));
    std::vector<Scheme> schemes;
    schemes.push_back({"rank-shifted",
                       [&](float *data, int64_t size) {
                         shifted->allReduce(0, 1, data, size);
                       },
                       {}});
    schemes.push_back({"master copies",
                       [&](float *data, int64_t size) {
                         masterCopies->allReduce(0, 1, data, size);
                       },
                       {}});
    if (peer) {
      schemes.push_back(
          {peer->name() + ", in place",
           [&](float *data, int64_t size) { peer->allReduce(data, size); },
           {}});
      // As this one leaves its input alone, it has the sums copied in the check
      // only.
      schemes.push_back({peer->name() + ", two buffers",
                         [&](float *data, int64_t size) {
                           peer->allReduce(data, sum.data(), size);
                         },
                         {}});
    }
    for (Scheme &scheme : schemes) {
      Scheme checked = scheme;
      if (scheme.name.ends_with("two buffers"))
        checked.allReduce = [&](float *data, int64_t size) {
          scheme.allReduce(data, size);
          std::ranges::copy(sum, data);
        };
      SANDWICH_RETURN_IF_ERROR(check(checked, rank, ranks, count));
    }
    std::vector<float> data(static_cast<size_t>(count));
    for (int64_t round = 0; round <= options.rounds; ++round)
      for (Scheme &scheme : schemes) {
        // Anew each time, as sums of sums grow beyond all bounds.
        fill(data, rank);
        shifted->barrier();
        Clock::time_point begin = Clock::now();
        for (int64_t i = 0; i < options.iterations; ++i)
          scheme.allReduce(data.data(), count);
        double seconds = secondsSince(begin);
        shifted->barrier();
        // The first round warms up.
        if (round > 0)
          scheme.seconds.push_back(seconds /
                                   static_cast<double>(options.iterations));
      }
    SANDWICH_RETURN_IF_ERROR(shifted->failure());
    for (Scheme &scheme : schemes)
      measurements.push_back({scheme.name, bytes, median(scheme.seconds)});
  }
  return measurements;
}
