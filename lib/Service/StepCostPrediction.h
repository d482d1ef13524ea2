//===- StepCostPrediction.h - What steps of an artifact take ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVICE_STEPCOSTPREDICTION_H
#define SANDWICH_LIB_SERVICE_STEPCOSTPREDICTION_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Serving/Scheduler.h"
#include "sandwich/Serving/StepCostModel.h"
#include "sandwich/Support/Result.h"

namespace sandwich {

/// What the latency model says of an engine's steps on this machine, of which
/// nothing need be measured: where its threads are, else on the first cores
/// that this process may use. Errors: the machine cannot be read, or has not as
/// many cores.
Result<StepCosts> predictStepCosts(const Engine &engine,
                                   const SchedulerLimits &limits);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVICE_STEPCOSTPREDICTION_H
