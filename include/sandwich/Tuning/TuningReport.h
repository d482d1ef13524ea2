//===- TuningReport.h - What tuning did, in pictures ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_TUNINGREPORT_H
#define SANDWICH_TUNING_TUNINGREPORT_H

#include "sandwich/Tuning/ModelTuner.h"

#include <string>

namespace sandwich {

/// A page of HTML that needs nothing else: for each matmul the schedules over
/// the number of tokens, their speed against the machine's limit, what tuning
/// cost, and the search paths that were longest. `model` is the page's title.
std::string writeTuningReport(const TunedModel &tuned,
                              const std::string &model);

} // namespace sandwich

#endif // SANDWICH_TUNING_TUNINGREPORT_H
