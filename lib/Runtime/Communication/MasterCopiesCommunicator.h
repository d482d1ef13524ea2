//===- MasterCopiesCommunicator.h - All-reduce by one rank ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The all-reduce that section 6.2 of the Sandwich paper starts from, which is
/// kept to compare with: all ranks copy to the master, rank 0, it sums, and all
/// copy the sums back.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_COMMUNICATION_MASTERCOPIESCOMMUNICATOR_H
#define SANDWICH_LIB_RUNTIME_COMMUNICATION_MASTERCOPIESCOMMUNICATOR_H

#include "sandwich/Runtime/Communication/SharedMemoryCommunicator.h"

namespace sandwich {

/// Differs from its base in `allReduce` alone. Made by
/// `SharedMemoryCommunicator::create` for `Collectives::MasterCopies`.
class MasterCopiesCommunicator final : public SharedMemoryCommunicator {
public:
  using SharedMemoryCommunicator::SharedMemoryCommunicator;

  void allReduce(int32_t lane, int32_t lanes, float *data,
                 int64_t count) override;
};

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_COMMUNICATION_MASTERCOPIESCOMMUNICATOR_H
