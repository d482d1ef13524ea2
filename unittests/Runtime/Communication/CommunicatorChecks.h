//===- CommunicatorChecks.h - What every communicator does ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_RUNTIME_COMMUNICATORCHECKS_H
#define SANDWICH_UNITTESTS_RUNTIME_COMMUNICATORCHECKS_H

#include "sandwich/Runtime/Communication/Communicator.h"

#include <vector>

/// What `rank` brings to the collective number `round`.
std::vector<float> makeData(int32_t rank, uint32_t round, size_t count);

bool sameBits(const std::vector<float> &a, const std::vector<float> &b);

// Every rank calls these with its communicator; they compare with plain loops.
void checkAllReduce(sandwich::Communicator &communicator, int32_t lanes,
                    uint32_t round, size_t count);
void checkAllGather(sandwich::Communicator &communicator, int32_t lanes,
                    uint32_t round, size_t rows, size_t columns);
/// All collectives in sizes at which something changes.
void checkAll(sandwich::Communicator &communicator);
/// `rounds` collectives of random kinds and sizes, without stops in between.
void runRandomly(sandwich::Communicator &communicator, int rounds);

#endif // SANDWICH_UNITTESTS_RUNTIME_COMMUNICATORCHECKS_H
