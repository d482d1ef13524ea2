//===- SamplingArguments.h - How tokens are chosen --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_SAMPLINGARGUMENTS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_SAMPLINGARGUMENTS_H

#include "sandwich/Sampling/SamplingOptions.h"
#include "sandwich/Sampling/StopConditions.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sandwich::tool {

/// What a command is told of the tokens it generates.
struct SamplingArguments {
  SamplingOptions sampling;
  StopOptions stop;
  /// Stop tokens as they are written.
  std::vector<uint64_t> stopTokens;
};

/// Adds all options of `SamplingOptions` and `StopOptions` but that for
/// log-probabilities, of which each command knows best how to show them.
void addSamplingOptions(CLI::App &command, SamplingArguments &arguments);

/// To be called once the command line is read. Wrong usage: a value out of its
/// range.
void finishSamplingOptions(SamplingArguments &arguments);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_SAMPLINGARGUMENTS_H
