//===- Terminal.h - Standard output, errors and signals ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_TERMINAL_H
#define SANDWICH_TOOLS_SANDWICH_RUN_TERMINAL_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/Result.h"

#include <string>
#include <string_view>

namespace sandwich::tool {

/// Writes `value` and a newline to standard output.
Status writeJson(const Json &value);

/// Writes a line to standard error.
void writeLog(const std::string &line);

/// Sends a log to standard error.
LogCallback logToTerminal();

/// Sends the progress of a load that takes longer than a second from now to
/// standard error.
ProgressCallback progressToTerminal();

/// Sends the engine's log and its progress to standard error.
void connectToTerminal(EngineOptions &options);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_TERMINAL_H
