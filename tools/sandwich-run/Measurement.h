//===- Measurement.h - What measuring commands share ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_MEASUREMENT_H
#define SANDWICH_TOOLS_SANDWICH_RUN_MEASUREMENT_H

#include "Arguments.h"

#include "sandwich/Runtime/Measurement/Benchmark.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sandwich::tool {

struct MeasurementArguments {
  std::string artifact;
  BenchmarkOptions benchmark;
  EngineArguments engine;
  bool json = false;
};

/// Adds ARTIFACT and the options for which tests run, how often, and what the
/// engine is told. What `arguments` has are the
/// defaults.
void addMeasurementOptions(CLI::App &command, MeasurementArguments &arguments);

/// To be called once the command line is read. Wrong usage: no test is left.
void finishMeasurementOptions(MeasurementArguments &arguments);

/// The engine for these tests. Errors: as `Artifact::open`, `benchmarkNeeds`
/// and `Engine::create`.
Result<std::unique_ptr<Engine>>
loadForMeasurement(const MeasurementArguments &arguments);

/// Success, or the error that names the tests that an interrupt kept from
/// having one of `results`.
Status measurementComplete(const BenchmarkOptions &options,
                           const std::vector<BenchmarkResult> &results);

/// A line for each phase: the CPUs of the threads of each rank.
std::string describePlacement(const std::vector<RankPlacement> &ranks);

/// What was measured and how, for `--json`.
Json describeMeasurement(const Engine &engine, const BenchmarkOptions &options,
                         bool interrupted);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_MEASUREMENT_H
