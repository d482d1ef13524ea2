//===- StressTest.cpp - Depths found step by step -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/StressTest.h"

using namespace sandwich;

Result<StressTest> StressTest::create(const DepthOptions &options,
                                      uint32_t step) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  if (step < 1 || step > options.mostConcurrency)
    return makeError(ErrorKind::InvalidArgument, "the step is ", step,
                     "; it must be 1 to ", options.mostConcurrency);
  return StressTest(options, step);
}

Status StressTest::record(double seconds) {
  if (!wanted)
    return makeError(ErrorKind::InvalidArgument, "no profile was asked for");
  SANDWICH_RETURN_IF_ERROR(checkSeconds("a profile", seconds));
  ++measured;
  if (!keepsSlo(seconds, options.limitSeconds())) {
    wanted.reset();
    return {};
  }
  kept = *wanted;
  if (options.mostConcurrency - kept < step)
    wanted.reset();
  else
    wanted = kept + step;
  return {};
}
