//===- ArtifactMeasurement.h - Step times of an artifact --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_PLANNING_ARTIFACTMEASUREMENT_H
#define SANDWICH_PLANNING_ARTIFACTMEASUREMENT_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Support/Result.h"

#include <string>

namespace sandwich {

/// The stage that `measureArtifact` tells.
inline constexpr std::string_view stageMeasuring = "measuring steps";

/// Loads the artifact `path`, with its own plan, measures its steps within a
/// dozen seconds (`measureStepCosts`), and writes their times into its
/// manifest; those of models that encode, whose batches nobody schedules, stay
/// without. Errors, after which the artifact is as before: this machine does
/// not run it, or has no memory for it; the disk is full; the progress
/// callback's.
Status measureArtifact(const std::string &path,
                       const CompileProgress &progress);

} // namespace sandwich

#endif // SANDWICH_PLANNING_ARTIFACTMEASUREMENT_H
