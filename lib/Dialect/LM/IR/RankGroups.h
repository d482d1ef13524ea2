//===- RankGroups.h - How many ranks there can be ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_DIALECT_LM_IR_RANKGROUPS_H
#define SANDWICH_LIB_DIALECT_LM_IR_RANKGROUPS_H

#include "sandwich/Support/TensorParallelism.h"

namespace sandwich::lm {

/// Whether so many ranks can run a model together, each a part of it.
inline bool isGroup(int64_t ranks) {
  return ranks >= 2 && ranks <= maxTensorParallelRanks;
}

} // namespace sandwich::lm

#endif // SANDWICH_LIB_DIALECT_LM_IR_RANKGROUPS_H
