//===- ServingArguments.h - What traces are served, and how -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Arguments that replay and bench-serve share: the requests, the rates at
/// which they come, what they are to get, and where the report goes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_SERVINGARGUMENTS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_SERVINGARGUMENTS_H

#include "sandwich/Runtime/Measurement/RateExperiment.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Support/ServingTrace.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich::tool {

struct ServingArguments {
  std::string trace = "sharegpt";
  std::optional<uint64_t> requests;
  uint64_t skip = 0;
  /// Requests a second; none: as the trace says, or one after another.
  std::vector<double> rates;
  std::optional<uint64_t> seed;
  /// Milliseconds.
  std::optional<double> firstTokenObjective;
  std::optional<double> tokenObjective;
  std::vector<double> objectiveScales = {1};
  bool findsGoodput = false;
  GoodputOptions goodput;
  std::string page;
  bool json = false;
  bool quiet = false;

  bool isBuiltIn() const { return findLengthDistribution(trace); }
  /// Requests of each rate.
  std::optional<uint64_t> wantedRequests() const {
    return findsGoodput ? std::optional<uint64_t>(goodput.mostRequests)
                        : requests;
  }
  /// Those that attainment is told of.
  ServiceObjectives objectives() const;
  /// With lines on standard error, unless quiet.
  RateExperimentOptions experiment() const;
};

/// Adds --trace, --requests, --rate, --skip and --seed.
void addTraceOptions(CLI::App &command, ServingArguments &arguments);
/// Adds --ttft-slo, --tpot-slo, --slo-scale, --find-goodput and --attainment.
void addObjectiveOptions(CLI::App &command, ServingArguments &arguments);
/// Adds --html.
void addPageOption(CLI::App &command, ServingArguments &arguments);
/// Adds --quiet and --json.
void addReportOptions(CLI::App &command, ServingArguments &arguments);

/// To be called once the command line is read. Wrong usage: options that do not
/// go together.
void finishObjectiveOptions(ServingArguments &arguments);

/// The part of `trace` that the arguments ask for, without those skipped,
/// repeated where the search for goodput wants more. Error: none are left.
Result<ServingTrace> selectRequests(ServingTrace trace,
                                    const ServingArguments &arguments);

/// The file that --html names, if it does. Errors: it must not be written to,
/// or cannot.
Result<std::optional<PendingFile>> openPage(const ServingArguments &arguments);

/// Writes what the experiment gave to standard output: `head` and its members
/// as one object, or `text` and lines.
Status writeReport(const ServingArguments &arguments,
                   const RateExperiment &experiment, Json head,
                   const std::string &text, bool complete);

/// Tells on a terminal how far a run is, in one line that is written over and
/// goes away.
class ProgressLine {
public:
  explicit ProgressLine(const ServingArguments &arguments);
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;
  ~ProgressLine();

  void show(size_t done, size_t requests);

private:
  const bool draws;
  size_t drawn = 0;
};

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_SERVINGARGUMENTS_H
