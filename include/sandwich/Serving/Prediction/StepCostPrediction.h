//===- StepCostPrediction.h - Step times that a model tells -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a scheduler goes by where nothing was measured yet: the latency model's
/// times of a few steps.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVING_PREDICTION_STEPCOSTPREDICTION_H
#define SANDWICH_SERVING_PREDICTION_STEPCOSTPREDICTION_H

#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Serving/Scheduler.h"
#include "sandwich/Serving/ServingSimulator.h"
#include "sandwich/Serving/StepCostModel.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Topology/Prediction/LatencyModel.h"

namespace sandwich {

/// A few of the steps that `seconds` knows, up to those of `limits`.
StepCosts sampleStepCosts(const StepSeconds &seconds,
                          const SchedulerLimits &limits);

/// What `model` says of a model's steps on `cores`, whose weights lie where the
/// processes' cores of prefill are. Errors: those of `LatencyModel::speedOf`.
Result<StepCosts> predictStepCosts(const LatencyModel &model,
                                   const ModelWork &work,
                                   const PlanCores &cores,
                                   const SchedulerLimits &limits);

} // namespace sandwich

#endif // SANDWICH_SERVING_PREDICTION_STEPCOSTPREDICTION_H
