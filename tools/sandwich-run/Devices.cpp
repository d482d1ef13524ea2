//===- Devices.cpp - sandwich-run devices ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Devices/Hardware.h"
#include "sandwich/Encoding/EmbeddingDevices.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Machine/Process/InstanceCpus.h"

#include <memory>

using namespace sandwich;

namespace {
struct Arguments {
  std::string file;
  bool json = false;
};
} // namespace

/// What a CPU instance of as many threads as possible would run on.
static Json describeCpu(const CpuBudget &budget) {
  const unsigned reserved = reservedCores(budget.threads());
  const std::vector<unsigned> cpus = chooseInstanceCpus(
      budget, budget.threads() - reserved, reserved, findNodeOfCpu);
  return {{"cores", budget.threads()},
          {"limit", budget.limit()},
          {"reserved_cores", reserved},
          {"instance_cpus", cpus}};
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(const CpuBudget budget, readCpuBudget());
  Json json = {{"cpu", describeCpu(budget)}, {"accelerators", Json::array()}};
  for (const FoundAccelerator &found : findAccelerators())
    json["accelerators"].push_back(
        {{"kind", found.kind}, {"path", found.path}});
  std::optional<DeviceConfiguration> configuration;
  if (!arguments.file.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(const DevicesDescription description,
                              DevicesDescription::read(arguments.file));
    Result<DeviceConfiguration> detected =
        detectDevices(description, tool::logToTerminal());
    if (!detected)
      return detected.error().inContext(arguments.file);
    configuration = *std::move(detected);
    json["overflow"] = configuration->heterogeneous;
    json["reasons"] = configuration->reasons;
    json["queues"] = Json::array();
    for (const DeviceQueue &queue : configuration->queues)
      json["queues"].push_back({{"kind", std::string(nameOf(queue.kind))},
                                {"devices", queue.devices},
                                {"instances", queue.workers}});
  }
  if (arguments.json)
    return tool::writeJson(json);
  std::string text = "CPU          " + std::to_string(budget.threads()) +
                     " cores (limited by " + budget.limit() + "), " +
                     std::to_string(reservedCores(budget.threads())) +
                     " of them left to the service and to drivers beside an "
                     "accelerator\n";
  for (const Json &found : json["accelerators"])
    text += "accelerator  " + found["kind"].get<std::string>() + " " +
            found["path"].get<std::string>() + "\n";
  if (json["accelerators"].empty())
    text += "accelerator  none has a driver here; servers elsewhere can be "
            "named in a file\n";
  if (configuration)
    text += configuration->describe();
  return writeStandardOutput(text);
}

void tool::addDevicesCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "devices", "Tells what could embed here, and who of a file gets queries");
  command->footer(R"(Examples:
  sandwich-run devices
  sandwich-run devices devices.json

A file names devices as 'serve --devices' takes them (docs/Serving.md). Each is
asked whether it is there.)");
  command->add_option("FILE", arguments->file, "The file of devices")
      ->type_name("");
  command->add_flag("--json", arguments->json, "Prints one JSON object");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
