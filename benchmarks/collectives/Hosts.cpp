//===- Hosts.cpp - All-reduce between hosts
//--------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// To be started by mpirun, once on each host. The first prints a table: medians
// of 101 measurements of 20 calls each, the schemes in turn.
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/MPICommunicator.h"
#include "sandwich/Support/Statistics.h"

// The C interface alone; the one for C++ left the standard with MPI 3.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

using namespace sandwich;

static constexpr int measurements = 101;
static constexpr int calls = 20;

/// Microseconds that one call of `work` takes.
static double measure(Communicator &hosts, const std::function<void()> &work) {
  hosts.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    work();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
             .count() /
         calls;
}

int main() {
  Result<std::unique_ptr<MPICommunicator>> created = MPICommunicator::create();
  if (!created) {
    std::fprintf(stderr, "error: %s\n", created.error().message.c_str());
    return 1;
  }
  MPICommunicator &hosts = **created;
  if (Status status = hosts.prepare(/*lanes=*/1); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  if (hosts.rank() == 0)
    std::printf("%d hosts, microseconds\n%8s %12s %14s\n", hosts.ranks(),
                "bytes", "all-reduce", "MPI_Allreduce");
  for (int64_t bytes : {8 << 10, 32 << 10, 512 << 10}) {
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    std::vector<float> data(static_cast<size_t>(count));
    std::vector<double> own, plain;
    for (int i = 0; i < measurements; ++i) {
      own.push_back(
          measure(hosts, [&] { hosts.allReduce(0, 1, data.data(), count); }));
      plain.push_back(measure(hosts, [&] {
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }));
    }
    if (hosts.rank() == 0)
      std::printf("%8lld %12.1f %14.1f\n", static_cast<long long>(bytes),
                  median(own), median(plain));
  }
  if (Status status = hosts.leave(); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
