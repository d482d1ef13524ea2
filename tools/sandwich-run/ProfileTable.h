//===- ProfileTable.h - Where the time of a phase goes ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_PROFILETABLE_H
#define SANDWICH_TOOLS_SANDWICH_RUN_PROFILETABLE_H

#include "sandwich/Runtime/Teams/StepProfiler.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

namespace sandwich::tool {

/// Writes a table of the operations, those that took longest first.
Status printProfile(const PhaseProfile &profile);

/// The same as JSON.
Json toJson(const PhaseProfile &profile);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_PROFILETABLE_H
