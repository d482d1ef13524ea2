//===- Terminal.cpp - Standard output, errors and signals -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Terminal.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace sandwich;

Status tool::writeJson(const Json &value) {
  // Text that a model made may hold anything; what is not UTF-8 is replaced.
  return writeStandardOutput(
      value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void tool::writeLog(const std::string &line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

LogCallback tool::logToTerminal() {
  return [](LogLevel level, const std::string &message) {
    writeLog((level == LogLevel::Warning ? "warning: " : "info: ") + message);
  };
}

ProgressCallback tool::progressToTerminal() {
  using Clock = std::chrono::steady_clock;
  auto next = std::make_shared<Clock::time_point>(Clock::now() +
                                                  std::chrono::seconds(1));
  return [next](uint64_t done, uint64_t total) {
    if (Clock::now() < *next)
      return;
    *next = Clock::now() + std::chrono::seconds(1);
    char line[80];
    std::snprintf(
        line, sizeof(line), "info: loading weights: %3.0f%% of %.1f GB",
        100.0 * static_cast<double>(done) / static_cast<double>(total),
        static_cast<double>(total) / 1e9);
    writeLog(line);
  };
}

void tool::connectToTerminal(EngineOptions &options) {
  options.log = logToTerminal();
  options.progress = progressToTerminal();
  options.ranks.onOwnHang = [](const Error &error) {
    writeLog("error: " + error.message);
    // What hangs holds on to everything.
    std::_Exit(1);
  };
}
