//===- Terminal.cpp - Standard output, errors and signals -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Terminal.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unistd.h>

using namespace sandwich;

static bool readerGone = false;
static volatile std::sig_atomic_t interruptCount = 0;

Status tool::writeOutput(std::string_view text) {
  while (!text.empty() && !readerGone) {
    ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<size_t>(written));
    else if (errno == EPIPE)
      readerGone = true;
    else if (errno != EINTR)
      return makeError("cannot write to standard output: ",
                       std::strerror(errno));
  }
  return {};
}

bool tool::outputClosed() { return readerGone; }

Status tool::writeJson(const Json &value) {
  // Text that a model made may hold anything; what is not UTF-8 is replaced.
  return writeOutput(value.dump(2, ' ', false, Json::error_handler_t::replace) +
                     "\n");
}

void tool::writeLog(const std::string &line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

void tool::catchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interruptCount = 1; };
  action.sa_flags = SA_RESETHAND;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool tool::interrupted() { return interruptCount != 0; }

void tool::connectToTerminal(EngineOptions &options) {
  options.log = [](LogLevel level, const std::string &message) {
    writeLog((level == LogLevel::Warning ? "warning: " : "info: ") + message);
  };
  using Clock = std::chrono::steady_clock;
  auto next = std::make_shared<Clock::time_point>(Clock::now() +
                                                  std::chrono::seconds(1));
  options.progress = [next](uint64_t done, uint64_t total) {
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
