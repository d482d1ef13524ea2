//===- MPICommunicator.h - Hosts that MPI connects --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives over MPI, for processes that share no memory. Built where CMake
/// was given SANDWICH_ENABLE_MPI. `mpirun` starts the processes.
///
/// A thread sends the other hosts heartbeats, and the reason when this host
/// fails. A host whose heartbeat is missing fails all, and so does one that
/// ends before it said `finish`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_COMMUNICATION_MPICOMMUNICATOR_H
#define SANDWICH_RUNTIME_COMMUNICATION_MPICOMMUNICATOR_H

#include "sandwich/Runtime/Communication/HostCommunicator.h"

#include <memory>
#include <span>

namespace sandwich {

/// There is one in a process at a time.
class MPICommunicator final : public HostCommunicator {
public:
  /// Joins the processes that `mpirun` started, all of which call this; it
  /// waits for them. Errors: MPI cannot be started, or not for several threads.
  static Result<std::unique_ptr<MPICommunicator>> create();
  /// Leaves MPI, once all others do, unless there was a failure: then whoever
  /// started the process sees it end without.
  ~MPICommunicator() override;

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override;
  void allGather(int32_t lane, int32_t lanes, const float *part, float *whole,
                 int64_t rows, int64_t columns) override;
  void gatherPart(int32_t lane, const float *part, float *all,
                  int64_t count) override;
  void broadcast(void *data, size_t bytes, int32_t root) override;
  void barrier() override;
  Status failure() const override;

  uint64_t bytesFor(int32_t lanes) const override;
  Status prepare(int32_t lanes) override;
  HostProgress progress() const override;
  std::string nameOf(int32_t host) const override;
  void fail(std::string_view reason) override;
  bool lostContact() const override;
  Status leave() override;

private:
  struct Messages;
  struct Lane;
  struct State;
  class Exchange;

  MPICommunicator(int32_t rank, int32_t ranks, std::unique_ptr<State> state);
  bool canRun(int32_t lane, int32_t lanes);
  bool gather(int32_t lane, const float *part, float *all, int64_t count);
  bool sumAtOnce(int32_t lane, float *data, int64_t count);
  bool sumInSegments(int32_t lane, float *data, int64_t count);
  int32_t rankAfter(int32_t distance) const {
    return (rank() + distance) % ranks();
  }

  const std::unique_ptr<State> state;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_COMMUNICATION_MPICOMMUNICATOR_H
