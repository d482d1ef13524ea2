//===- CommandLine.h - The command line of a benchmark ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_BENCHMARKS_COMMANDLINE_H
#define SANDWICH_BENCHMARKS_COMMANDLINE_H

#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>

namespace sandwich {

/// Reads the command line with `app`. The status to exit with, where that was
/// all: help was printed, or what is wrong.
inline std::optional<int> readCommandLine(CLI::App &app, int argc,
                                          char **argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\nRun with --help for more information.\n",
                 wrong.what());
    return 2;
  }
}

} // namespace sandwich

#endif // SANDWICH_BENCHMARKS_COMMANDLINE_H
