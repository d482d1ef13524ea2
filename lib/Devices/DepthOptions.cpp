//===- DepthOptions.cpp - What queue depths are found by ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/DepthOptions.h"

using namespace sandwich;

Status DepthOptions::validate() const {
  SANDWICH_RETURN_IF_ERROR(checkSeconds("the SLO", sloSeconds));
  if (!(headroom >= 0 && headroom < 1))
    return makeError(ErrorKind::InvalidArgument, "the headroom is ", headroom,
                     "; it must be at least 0 and below 1");
  if (mostConcurrency < 2 || mostConcurrency > maxQueueDepth)
    return makeError(ErrorKind::InvalidArgument, "the most queries at a time ",
                     "are ", mostConcurrency, "; they must be 2 to ",
                     maxQueueDepth);
  if (growth < 2)
    return makeError(ErrorKind::InvalidArgument, "profiles cannot grow by ",
                     growth, "; at least by 2");
  if (leastProfiles < LatencyFit::leastPoints || mostProfiles < leastProfiles ||
      mostProfiles > LatencyFit::mostPoints)
    return makeError(ErrorKind::InvalidArgument, "profiles are ", leastProfiles,
                     " to ", mostProfiles, "; these must ascend from ",
                     LatencyFit::leastPoints, " to ", LatencyFit::mostPoints);
  if (mostTuningProfiles < 1)
    return makeError(ErrorKind::InvalidArgument,
                     "fine-tuning needs at least one measurement");
  return {};
}
