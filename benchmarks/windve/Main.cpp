//===- Main.cpp - WindVE, with simulated devices --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CommandLine.h"
#include "Dispatch.h"
#include "Experiments.h"

#include "sandwich/Support/Process.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {
struct Experiment {
  const char *name;
  const char *description;
  Status (*print)(const ExperimentOptions &options);
};
} // namespace

static constexpr Experiment experiments[] = {
    {"table1", "Queries at a time, bge", printTable1},
    {"table2", "Queries at a time, jina", printTable2},
    {"table3", "Depths by regression and by stress tests", printTable3},
    {"figure4", "Lines of latency, with outliers", printFigure4},
    {"figure5", "By the length of queries", printFigure5},
    {"figure6", "By the number of cores", printFigure6},
};

int main(int argc, char **argv) try {
  prepareStandardStreams();
  CLI::App app{
      "The tables and figures of section V of WindVE, with simulated "
      "devices, beside the paper's, and what a dispatch takes here.\n\n"
      "  sandwich-benchmark-windve table1\n"
      "  sandwich-benchmark-windve all --noise=0.01 --seed=7\n"
      "  sandwich-benchmark-windve dispatch --rate=2000\n",
      "sandwich-benchmark-windve"};
  app.require_subcommand(1);
  app.fallthrough();
  ExperimentOptions options;
  app.add_option("--noise", options.noise,
                 "Standard deviation of a latency, as a share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the noise")->capture_default_str();
  for (const Experiment &experiment : experiments)
    app.add_subcommand(experiment.name, experiment.description);
  const CLI::App *all = app.add_subcommand("all", "All of these");
  CLI::App *dispatch = app.add_subcommand(
      "dispatch", "What a query takes to a device and back, on this machine");
  DispatchOptions dispatchOptions;
  dispatch
      ->add_option("--rate", dispatchOptions.queriesPerSecond,
                   "Queries a second")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  dispatch
      ->add_option("--seconds", dispatchOptions.seconds,
                   "For each length of answers")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  if (std::optional<int> status = readCommandLine(app, argc, argv))
    return *status;
  if (dispatch->parsed()) {
    if (const Status status = printDispatch(dispatchOptions); !status) {
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
      return 1;
    }
  }
  for (const Experiment &experiment : experiments) {
    if (!all->parsed() && !app.got_subcommand(experiment.name))
      continue;
    if (const Status status = experiment.print(options); !status) {
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
      return 1;
    }
    if (all->parsed())
      std::printf("\n");
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
