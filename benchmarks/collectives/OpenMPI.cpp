//===- OpenMPI.cpp - All-reduce by OpenMPI --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

// The C interface alone; the one for C++ left the standard with MPI 3.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

using namespace sandwich::benchmark;

namespace {
class OpenMPI final : public Peer {
public:
  OpenMPI() { MPI_Init(nullptr, nullptr); }
  ~OpenMPI() override { MPI_Finalize(); }

  std::string name() const override {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::string text(version, static_cast<size_t>(length));
    return text.substr(0, text.find(','));
  }
  int32_t rank() const override {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  int32_t ranks() const override {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
  }
  void allReduce(float *data, int64_t count) override {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  }
  void allReduce(const float *data, float *sum, int64_t count) override {
    MPI_Allreduce(data, sum, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  void broadcast(void *data, size_t bytes) override {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
};
} // namespace

// The shared-memory transport alone; the benchmark pins the processes itself.
std::vector<std::string>
sandwich::benchmark::peerCommand(int32_t ranks, const std::string &program) {
  return {SANDWICH_MPIEXEC,
          "--allow-run-as-root",
          "--oversubscribe",
          "--bind-to",
          "none",
          "--mca",
          "btl",
          "self,vader",
          "-np",
          std::to_string(ranks),
          program};
}

std::unique_ptr<Peer> sandwich::benchmark::joinPeer() {
  return std::make_unique<OpenMPI>();
}
