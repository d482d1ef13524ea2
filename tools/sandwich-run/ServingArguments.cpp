//===- ServingArguments.cpp - What traces are served, and how -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ServingArguments.h"

#include "Arguments.h"
#include "Terminal.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace sandwich;
using tool::ServingArguments;

ServiceObjectives ServingArguments::objectives() const {
  auto seconds = [](std::optional<double> milliseconds) {
    return milliseconds ? std::optional(*milliseconds / 1e3) : std::nullopt;
  };
  return ServiceObjectives{seconds(firstTokenObjective),
                           seconds(tokenObjective)}
      .scaled(objectiveScales.size() == 1 ? objectiveScales.front() : 1);
}

RateExperimentOptions ServingArguments::experiment() const {
  RateExperimentOptions options;
  options.rates = rates;
  options.findsGoodput = findsGoodput;
  options.goodput = goodput;
  options.objectives = objectives();
  options.objectiveScales = objectiveScales;
  if (!quiet)
    options.tell = writeLog;
  return options;
}

void tool::addTraceOptions(CLI::App &command, ServingArguments &arguments) {
  command
      .add_option("--trace", arguments.trace,
                  "sharegpt, lmsys, or a file of requests")
      ->capture_default_str();
  command
      .add_option("--requests", arguments.requests,
                  "How many of them (default: all of a file, 64 otherwise)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N");
  addNumberListOption(
      command, "--rate,--requests-per-second", arguments.rates, 1e-6, 1e6,
      "Mean rates at which requests arrive, at random; those of "
      "a file as well (default: as the file says, otherwise "
      "one after another)");
  command
      .add_option("--skip", arguments.skip,
                  "Requests to leave out at the beginning")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->type_name("N");
  command
      .add_option("--seed", arguments.seed,
                  "Of lengths and arrivals that are drawn; each seed has its "
                  "own (default: 1, the trace that plans are for)")
      ->type_name("S");
}

void tool::addObjectiveOptions(CLI::App &command, ServingArguments &arguments) {
  const CLI::Validator positive = numberRange(1e-6, 1e9);
  command
      .add_option("--ttft-slo", arguments.firstTokenObjective,
                  "Milliseconds to the first token that requests may take")
      ->check(positive)
      ->type_name("MS");
  command
      .add_option("--tpot-slo", arguments.tokenObjective,
                  "Milliseconds that each token after it may take")
      ->check(positive)
      ->type_name("MS");
  addNumberListOption(command, "--slo-scale", arguments.objectiveScales, 1e-3,
                      1e3, "Multiplies both (default: 1)");
  CLI::Option *finds =
      command.add_flag("--find-goodput", arguments.findsGoodput,
                       "Looks for the highest rate that keeps the SLO");
  command
      .add_option("--attainment", arguments.goodput.attainment,
                  "Share of requests that have to keep it")
      ->check(numberRange(0.01, 0.999))
      ->type_name("SHARE")
      ->needs(finds)
      ->capture_default_str();
}

void tool::addPageOption(CLI::App &command, ServingArguments &arguments) {
  command
      .add_option("--html", arguments.page,
                  "Also draws charts into FILE, a page that needs no other "
                  "file")
      ->check(findOutputNameProblem)
      ->type_name("FILE");
}

void tool::addReportOptions(CLI::App &command, ServingArguments &arguments) {
  command.add_flag("-q,--quiet", arguments.quiet,
                   "No progress on standard error");
  command.add_flag("--json", arguments.json,
                   "Prints one JSON object instead of lines");
}

void tool::finishObjectiveOptions(ServingArguments &arguments) {
  const bool hasObjectives =
      arguments.firstTokenObjective || arguments.tokenObjective;
  if (arguments.objectiveScales.size() > 1 && !hasObjectives)
    throw CLI::ValidationError(
        "--slo-scale: several are for --ttft-slo or --tpot-slo");
  if (!arguments.findsGoodput)
    return;
  if (!hasObjectives)
    throw CLI::ValidationError("--find-goodput needs --ttft-slo or --tpot-slo");
  if (arguments.rates.size() > 1 || arguments.objectiveScales.size() > 1)
    throw CLI::ValidationError(
        "--find-goodput takes one --rate to begin with, and one --slo-scale");
  GoodputOptions &goodput = arguments.goodput;
  if (!arguments.rates.empty())
    goodput.firstRate = arguments.rates.front();
  goodput.lowestRate = goodput.firstRate / 256;
  goodput.highestRate = goodput.firstRate * 256;
  goodput.mostRequests = arguments.requests.value_or(goodput.mostRequests);
  goodput.leastRequests = std::min(goodput.leastRequests, goodput.mostRequests);
}

Result<ServingTrace> tool::selectRequests(ServingTrace trace,
                                          const ServingArguments &arguments) {
  const std::optional<uint64_t> wanted = arguments.wantedRequests();
  if (arguments.skip >= trace.size())
    return makeError(arguments.trace, ": it has ", trace.size(),
                     " requests, and --skip leaves none");
  trace.erase(trace.begin(),
              trace.begin() + static_cast<std::ptrdiff_t>(arguments.skip));
  if (arguments.findsGoodput)
    for (size_t i = 0; trace.size() < *wanted; ++i)
      trace.push_back(ServingRequest(trace[i]));
  if (wanted)
    trace.resize(std::min<uint64_t>(trace.size(), *wanted));
  // The clock starts with the first one that is left.
  if (arguments.skip > 0 && trace.front().arrivalSeconds) {
    const double first = *trace.front().arrivalSeconds;
    for (ServingRequest &request : trace)
      *request.arrivalSeconds -= first;
  }
  return trace;
}

Result<std::optional<PendingFile>>
tool::openPage(const ServingArguments &arguments) {
  if (arguments.page.empty())
    return std::optional<PendingFile>();
  const std::string read[] = {arguments.trace};
  SANDWICH_RETURN_IF_ERROR(checkOutputPlace(arguments.page, {"", read}));
  SANDWICH_ASSIGN_OR_RETURN(PendingFile page,
                            PendingFile::create(arguments.page));
  return std::optional(std::move(page));
}

Status tool::writeReport(const ServingArguments &arguments,
                         const RateExperiment &experiment, Json head,
                         const std::string &text, bool complete) {
  if (arguments.json) {
    head.update(experiment.toJson());
    head["interrupted"] = !complete;
    return writeJson(head);
  }
  return writeStandardOutput(text + experiment.describeRuns() +
                             (complete ? experiment.describeGoodput() : ""));
}

tool::ProgressLine::ProgressLine(const ServingArguments &arguments)
    : draws(!arguments.quiet && ::isatty(STDERR_FILENO) == 1) {}

tool::ProgressLine::~ProgressLine() {
  if (draws)
    std::fprintf(stderr, "\r\x1b[K");
}

void tool::ProgressLine::show(size_t done, size_t requests) {
  if (draws && done != drawn)
    std::fprintf(stderr, "\r\x1b[K%zu of %zu requests", drawn = done, requests);
}
