//===- StepCostMeasurement.h - What an engine's steps take ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The costs that the scheduler goes by, measured on an engine, and as an
/// artifact keeps them.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVICE_STEPCOSTMEASUREMENT_H
#define SANDWICH_SERVICE_STEPCOSTMEASUREMENT_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Serving/StepCostModel.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <optional>

namespace sandwich {

struct StepCostMeasurementOptions {
  /// What is predicted to take longer in all is not measured. The two smallest
  /// steps of each phase are in any case, as one tells nothing of larger ones.
  double seconds = 1;
  /// Of each step, whose median counts; at least 1. A step of up to 16 tokens
  /// runs once more before, when other things were in the caches.
  int samples = 1;
  /// Called between steps with the share of `seconds` that is spent, from 0 to
  /// 1. An error ends the measurement with it.
  std::function<Status(double done)> progress = {};
};

/// Measures steps of more and more tokens in both phases, and what they take
/// behind a long text. The engine has no sequences, and its prefix cache is
/// empty afterwards. Errors: of the engine; the progress callback's.
Result<StepCosts>
measureStepCosts(Engine &engine,
                 const StepCostMeasurementOptions &options = {});

/// The times that an artifact has; nothing: they were not measured.
std::optional<StepCosts> stepCostsOf(const proto::Manifest &manifest);

/// The same in a manifest's words.
proto::StepTimes toStepTimes(const StepCosts &costs);

} // namespace sandwich

#endif // SANDWICH_SERVICE_STEPCOSTMEASUREMENT_H
