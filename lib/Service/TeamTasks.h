//===- TeamTasks.h - Tasks for the threads of a team ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVICE_TEAMTASKS_H
#define SANDWICH_LIB_SERVICE_TEAMTASKS_H

#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Sampling/Sampler.h"

namespace sandwich {

/// Runs tasks on the threads of `team`, which outlives it. What a task throws,
/// one of them if there are several, is thrown to the caller.
ParallelFor parallelOn(PhaseTeam &team);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVICE_TEAMTASKS_H
