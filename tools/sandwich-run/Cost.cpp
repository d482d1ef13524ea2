//===- Cost.cpp - sandwich-run cost ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Devices/DeviceCostReport.h"
#include "sandwich/Support/File.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace sandwich;

namespace {
struct CostArguments {
  std::string file;
  std::optional<double> slo;
  /// Alpha and beta; empty: not told.
  std::vector<double> accelerator;
  std::vector<double> cpu;
  std::optional<double> acceleratorPrice;
  std::optional<double> cpuPrice;
  std::optional<uint64_t> instancesPerMachine;
  std::vector<double> queriesPerSecond;
  std::optional<double> peakQueries;
  std::string svgPath;
  bool json = false;
};
} // namespace

/// What the file says, and the options instead where they say something.
static Result<CostDescription> findDescription(const CostArguments &arguments) {
  CostDescription description;
  if (!arguments.file.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(description, readCostDescription(arguments.file));
  }
  if (arguments.slo)
    description.sloSeconds = *arguments.slo;
  if (!arguments.accelerator.empty())
    description.accelerator.line = {arguments.accelerator[0],
                                    arguments.accelerator[1]};
  if (!arguments.cpu.empty())
    description.cpu.line = {arguments.cpu[0], arguments.cpu[1]};
  if (arguments.acceleratorPrice)
    description.accelerator.price = *arguments.acceleratorPrice;
  if (arguments.cpuPrice)
    description.cpu.price = *arguments.cpuPrice;
  if (arguments.instancesPerMachine)
    description.instancesPerMachine = *arguments.instancesPerMachine;
  if (!arguments.queriesPerSecond.empty())
    description.queriesPerSecond = arguments.queriesPerSecond;
  if (arguments.peakQueries)
    description.peakQueries = arguments.peakQueries;
  return description;
}

static Status writeSvg(const CostArguments &arguments,
                       const CostDescription &description,
                       const DeviceCost &cost) {
  const std::string read[] = {arguments.file};
  SANDWICH_RETURN_IF_ERROR(checkOutputPlace(arguments.svgPath, {"", read}));
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(arguments.svgPath));
  SANDWICH_RETURN_IF_ERROR(file.write(drawCost(description, cost)));
  return file.commit();
}

static Status run(const CostArguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const CostDescription description,
                            findDescription(arguments));
  SANDWICH_ASSIGN_OR_RETURN(const DeviceCost cost,
                            DeviceCost::compute(description));
  if (!arguments.svgPath.empty())
    SANDWICH_RETURN_IF_ERROR(writeSvg(arguments, description, cost));
  return arguments.json ? tool::writeJson(costToJson(description, cost))
                        : writeStandardOutput(describeCost(description, cost));
}

static void addDeviceOptions(CLI::App &command, CostArguments &arguments) {
  tool::addNumberListOption(command, "--accelerator", arguments.accelerator, 0,
                            maxDeviceSeconds,
                            "Seconds for each query and for each batch of an "
                            "accelerator instance")
      ->expected(2)
      ->type_name("ALPHA,BETA");
  tool::addNumberListOption(
      command, "--cpu", arguments.cpu, 0, maxDeviceSeconds,
      "The same of a CPU instance; without, there is no overflow")
      ->expected(2)
      ->type_name("ALPHA,BETA");
  command
      .add_option("--accelerator-price", arguments.acceleratorPrice,
                  "Price of one accelerator")
      ->check(tool::numberRange(0, maxCostNumber))
      ->type_name("PRICE");
  command
      .add_option("--cpu-price", arguments.cpuPrice,
                  "What a CPU instance costs beyond the server, where it is "
                  "anyway")
      ->check(tool::numberRange(0, maxCostNumber))
      ->type_name("PRICE");
  command
      .add_option("--instances-per-machine", arguments.instancesPerMachine,
                  "Accelerator instances that share one CPU instance")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
}

void tool::addCostCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<CostArguments>();
  CLI::App *command = app.add_subcommand(
      "cost", "Tells how many accelerators a service needs, and what overflow "
              "to the CPU saves");
  command->footer(R"(Examples:
  sandwich-run cost --slo=2 --accelerator=0.0192,0.144 --cpu=0.076,0.32 \
      --accelerator-price=8000 --queries-per-second=100,300,1180,500
  sandwich-run cost service.json --svg cost.svg
  sandwich-run cost service.json --slo=1 --peak=2000 --json

A batch of C queries takes ALPHA * C + BETA seconds. As many as keep the SLO are
the concurrency of an instance; those of the CPU are added where a peak flows
over to it. By the peak, there are so many instances that all queries of the
busiest second can come at once and keep the SLO. By the average, the instances
can do the mean of the day, and queries wait at peaks. Where a single query takes
the CPU longer than the SLO, there is no overflow.

FILE holds an object of JSON; options go before what it says:
  {"slo_seconds": 2, "instances_per_machine": 1, "currency": "EUR",
   "accelerator": {"name": "V100", "alpha": 0.0192, "beta": 0.144,
                   "price": 8000, "devices_per_instance": 1},
   "cpu": {"name": "Xeon", "profiles": [[1, 0.4], [8, 0.93], [16, 1.54]]},
   "queries_per_second": [100, 300, 1180, 500], "peak_queries": 1500}
Profiles are pairs of queries at a time and seconds, through which a line is
fitted. queries_per_second are of equal parts of a day, as many as you like.

docs/RationaleWindVE.md tells more.)");
  command->add_option("FILE", arguments->file, "What the service is like")
      ->type_name("FILE.json");
  command
      ->add_option("--slo", arguments->slo,
                   "Seconds that a query may take; by default 1")
      ->check(tool::numberRange(1e-6, maxDeviceSeconds))
      ->type_name("SECONDS");
  addDeviceOptions(*command, *arguments);
  tool::addNumberListOption(*command, "--queries-per-second",
                            arguments->queriesPerSecond, 0, maxCostNumber,
                            "Of equal parts of a day")
      ->type_name("N,N");
  command
      ->add_option("--peak", arguments->peakQueries,
                   "Queries that come at once, where that is not the busiest "
                   "second of the day")
      ->check(tool::numberRange(0, maxCostNumber))
      ->type_name("N");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of lines");
  command->add_option("--svg", arguments->svgPath, "Also draws it into FILE")
      ->check(findOutputNameProblem)
      ->type_name("FILE");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
