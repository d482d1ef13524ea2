//===- MPICommunicator.h - Ranks of several machines ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives over MPI, for ranks that share no memory. Built where CMake was
/// given SANDWICH_ENABLE_MPI. Which ranks exist, and that all end when one
/// does, is up to `mpiexec`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MPICOMMUNICATOR_H
#define SANDWICH_RUNTIME_MPICOMMUNICATOR_H

#include "sandwich/Runtime/Communicator.h"

#include <memory>

namespace sandwich {

/// There is one in a process at a time.
class MPICommunicator final : public Communicator {
public:
  /// Joins the ranks that `mpiexec` started, with teams of up to `lanes`
  /// threads. Errors: MPI cannot be started, or not for several threads.
  static Result<std::unique_ptr<MPICommunicator>> create(int32_t lanes);
  ~MPICommunicator() override;

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override;
  void allGather(int32_t lane, int32_t lanes, const float *part, float *whole,
                 int64_t rows, int64_t columns) override;
  void broadcast(void *data, size_t bytes, int32_t root) override;
  void barrier() override;
  Status failure() const override;

private:
  struct State;

  MPICommunicator(int32_t rank, int32_t ranks, std::unique_ptr<State> state);
  bool canRun(int32_t lane, int32_t lanes);
  bool sumAtOnce(int32_t lane, float *data, int64_t count);
  bool sumInSegments(int32_t lane, float *data, int64_t count);

  const std::unique_ptr<State> state;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MPICOMMUNICATOR_H
