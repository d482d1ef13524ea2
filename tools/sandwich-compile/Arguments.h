//===- Arguments.h - The command line of the compiler -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_COMPILE_ARGUMENTS_H
#define SANDWICH_TOOLS_SANDWICH_COMPILE_ARGUMENTS_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Planning/Planner.h"
#include "sandwich/Support/Result.h"

#include <optional>
#include <string>
#include <vector>

namespace sandwich::tool {

/// What the command line asks for.
struct Arguments {
  CompileOptions compile;
  /// How `compile` is planned for; `compile` in it is the same.
  PlanOptions plan;
  bool planOnly = false;
  /// The file of a plan to compile for, or "auto"; empty without --plan.
  std::string planName;
  std::optional<std::string> measureMachineFile;
  /// Files of reports, by their extension of HTML or JSON, and the text that
  /// they are of.
  std::vector<std::string> quantizationReports;
  std::optional<std::string> reportText;
  bool threadsAreGiven = false;
  /// Prints the plan as JSON.
  bool json = false;
  bool quiet = false;
};

/// Reads the command line into `arguments`. Returns the status that the process
/// ends with where there is nothing to do: help was printed, or what is wrong.
std::optional<int> readArguments(int argc, char **argv, Arguments &arguments);

/// Whether all that is written can be without harm to what is read, or to each
/// other.
Status checkPlaces(const Arguments &arguments);

/// Writes `text` to standard output, and nothing after it.
Status writeAll(const std::string &text);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_COMPILE_ARGUMENTS_H
