//===- Progress.h - What a person is told meanwhile -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_COMPILE_PROGRESS_H
#define SANDWICH_TOOLS_SANDWICH_COMPILE_PROGRESS_H

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::tool {

/// Draws each stage on one line of the terminal, or prints a line for each
/// where standard error is no terminal.
class ProgressLine {
public:
  ProgressLine();

  /// Draws that so much of `stage` is done, from 0 to 1.
  void operator()(std::string_view stage, double done);

  /// Removes the line, so that what follows begins on a clean one.
  void finishStage();

private:
  bool isTerminal;
  std::string current;
  std::chrono::steady_clock::time_point started, drawn;
};

/// Keeps what an interrupted process says at its end true: that nothing was
/// written, or what was kept.
class InterruptedMessage {
public:
  /// Nothing was written.
  InterruptedMessage();

  /// From now on `what` is kept: "the plan is in FILE".
  void keep(const std::string &what);

  /// From now on `what` is said after what is kept, and `output` goes to
  /// standard output before.
  void say(const std::string &what, const std::string &output = {}) const;

private:
  std::vector<std::string> kept;
};

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_COMPILE_PROGRESS_H
