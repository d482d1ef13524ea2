//===- ServingSimulation.h - How long requests take -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the times of steps to those of requests: a trace is served in simulated
/// time (the latency simulation of the Sandwich paper, section 4.3). Where the
/// times come from, a model or a measurement, is somebody else's.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SERVINGSIMULATION_H
#define SANDWICH_TOPOLOGY_SERVINGSIMULATION_H

#include "sandwich/Support/ServingTrace.h"

#include <cstdint>

namespace sandwich {

/// How long steps take, in seconds.
class StepTimes {
public:
  virtual ~StepTimes() = default;

  /// The prefill of a prompt of `tokens` tokens, up to its last logits.
  virtual double promptSeconds(int64_t tokens) const = 0;

  /// `steps` decode steps in a row of the same `sequences` sequences, which
  /// hold `positions` positions together at the first step and one more each at
  /// every other.
  virtual double decodeSeconds(int64_t sequences, int64_t positions,
                               int64_t steps) const = 0;
};

/// The mean time from a request's arrival to its last token, in seconds, when
/// requests are batched continuously: prompts before generating, everybody
/// who generates in one step, at most `maxBatch`. A request without an arrival
/// time comes when nothing is left to do.
double meanLatency(const StepTimes &times, const ServingTrace &trace,
                   int64_t maxBatch = usualMaxBatch);

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SERVINGSIMULATION_H
