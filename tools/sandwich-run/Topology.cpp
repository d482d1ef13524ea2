//===- Topology.cpp - sandwich-run topology -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Topology/CpuBudget.h"
#include "sandwich/Topology/MachineTopology.h"

#include <memory>

using namespace sandwich;

namespace {
struct Arguments {
  std::string source = "host";
  bool json = false;
};
} // namespace

static Status run(const Arguments &arguments) {
  bool host = arguments.source == "host";
  SANDWICH_ASSIGN_OR_RETURN(
      MachineNode machine,
      readMachineTopology(host ? std::string() : arguments.source));
  if (!arguments.json)
    SANDWICH_RETURN_IF_ERROR(writeStandardOutput(drawMachine(machine)));
  Json json = {{"topology", toJson(machine)}};
  if (host) {
    // How much of this machine a process started like this one may use.
    SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
    if (!arguments.json)
      return writeStandardOutput(
          "default threads: " + std::to_string(budget.threads()) +
          ", limited by " + budget.limit() + "\n");
    json["default_threads"] = budget.threads();
    json["limited_by"] = budget.limit();
    json["cpus"] = budget.cpus;
  }
  return arguments.json ? tool::writeJson(json) : Status();
}

void tool::addTopologyCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "topology", "Draws this machine's packages, memories, caches and cores");
  command->footer(R"(Examples:
  sandwich-run topology
  sandwich-run topology --topology "synthetic:package:2 core:4 pu:2"

Numbers after core and cpu are the operating system's. The last line tells how
many threads sandwich-compile plans for by default, and why no more.)");
  command
      ->add_option("--topology", arguments->source,
                   "Another machine: 'host', an hwloc XML file, or "
                   "'synthetic:' and a description as hwloc reads it")
      ->type_name("host|FILE.xml|synthetic:TEXT")
      ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of the drawing");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
