//===- Topology.cpp - sandwich-run topology -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Artifact/OutputPlace.h"
#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Support/File.h"
#include "sandwich/Topology/Drawing/MachineDrawing.h"
#include "sandwich/Topology/Search/PlanFile.h"
#include "sandwich/Topology/Trees/SymmetricPart.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

using namespace sandwich;

namespace {
struct Arguments {
  std::string source = "host";
  std::string svgPath;
  std::string planPath;
  bool json = false;
  bool full = false;
};
} // namespace

/// Whether standard output is a terminal that wants colours (no-color.org).
static bool wantsColours() {
  const char *noColour = std::getenv("NO_COLOR");
  const char *terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (!noColour || !*noColour) &&
         terminal && std::string_view(terminal) != "dumb";
}

static Status writeSvg(const Arguments &arguments, const Machine &machine) {
  std::optional<PlanCores> plan;
  if (!arguments.planPath.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(plan, readPlanCores(arguments.planPath, machine,
                                                  /*instance=*/std::nullopt));
  }
  const std::string read[] = {arguments.planPath, arguments.source};
  SANDWICH_RETURN_IF_ERROR(checkOutputPlace(arguments.svgPath, {"", read}));
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(arguments.svgPath));
  SANDWICH_RETURN_IF_ERROR(file.write(drawSvg(machine, plan)));
  return file.commit();
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Machine machine,
                            readMachineTopology(arguments.source));
  SANDWICH_ASSIGN_OR_RETURN(SymmetricPart part,
                            largestSymmetricPart(machine.root));
  if (!arguments.svgPath.empty())
    SANDWICH_RETURN_IF_ERROR(writeSvg(arguments, machine));
  Json json = toJson(machine);
  json["symmetric_part"] = {{"cores", countParts(part.root, "core")},
                            {"left_out", part.leftOut}};
  std::string text;
  if (!arguments.json) {
    text = drawText(machine, {arguments.full, wantsColours()});
    for (const std::string &sentence : part.leftOut)
      text += "left out of plans: " + sentence + "\n";
  }
  if (arguments.source == "host") {
    // How much of this machine a process started like this one may use.
    SANDWICH_ASSIGN_OR_RETURN(CpuBudget budget, readCpuBudget());
    text += "default threads: " + std::to_string(budget.threads()) +
            ", limited by " + budget.limit() + "\n";
    json["default_threads"] = budget.threads();
    json["limited_by"] = budget.limit();
    json["cpus"] = budget.cpus;
  }
  return arguments.json ? tool::writeJson(json) : writeStandardOutput(text);
}

void tool::addTopologyCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "topology", "Draws this machine's packages, memories, caches and cores");
  command->footer(R"(Examples:
  sandwich-run topology
  sandwich-run topology --topology "synthetic:package:2 core:4 pu:2"
  sandwich-run topology --svg machine.svg

Numbers after core and cpu are the operating system's. Lines 'left out' tell
what this process may not use or what no level of the tree is, lines 'left out
of plans' what differs from the rest of the machine; docs/Topology.md tells
more. The last line tells how many threads sandwich-compile plans for by
default, and why no more.)");
  command
      ->add_option("--topology", arguments->source,
                   "Another machine: 'host', an hwloc XML file, or "
                   "'synthetic:' and a description as hwloc reads it")
      ->type_name("host|FILE.xml|synthetic:TEXT")
      ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of the drawing");
  command->add_flag("--full", arguments->full,
                    "Draws each part, also where many are equal");
  command
      ->add_option("--svg", arguments->svgPath,
                   "Also draws the machine into FILE")
      ->check(findOutputNameProblem)
      ->type_name("FILE");
  command
      ->add_option("--plan", arguments->planPath,
                   "Shows in the drawing which CPUs work in prefill and decode "
                   "with the best plan in FILE, which sandwich-compile "
                   "--plan-only --json wrote")
      ->type_name("FILE")
      ->needs("--svg");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
