//===- Commands.h - What sandwich-run can do --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_COMMANDS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_COMMANDS_H

#include "sandwich/Support/Result.h"

#include <CLI/CLI.hpp>

#include <functional>

namespace sandwich::tool {

/// Runs a command after its arguments were read.
using Action = std::function<Status()>;

// Each adds one command to `app`; once the command line is read, `action` is
// set if it names that command.
void addBenchCommand(CLI::App &app, Action &action);
void addBenchEmbedCommand(CLI::App &app, Action &action);
void addBenchServeCommand(CLI::App &app, Action &action);
void addCharacterizeCommand(CLI::App &app, Action &action);
void addCostCommand(CLI::App &app, Action &action);
void addDevicesCommand(CLI::App &app, Action &action);
void addEmbedCommand(CLI::App &app, Action &action);
void addGenerateCommand(CLI::App &app, Action &action);
void addInspectCommand(CLI::App &app, Action &action);
void addLogitsCommand(CLI::App &app, Action &action);
void addPerplexityCommand(CLI::App &app, Action &action);
void addRankCommand(CLI::App &app, Action &action);
void addReplayCommand(CLI::App &app, Action &action);
void addServeCommand(CLI::App &app, Action &action);
void addTokenizeCommand(CLI::App &app, Action &action);
void addTopologyCommand(CLI::App &app, Action &action);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_COMMANDS_H
