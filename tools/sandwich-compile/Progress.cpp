//===- Progress.cpp - What a person is told meanwhile ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "sandwich/Support/Process.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace sandwich;
using namespace sandwich::tool;

ProgressLine::ProgressLine() : isTerminal(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::operator()(std::string_view stage, double done) {
  using namespace std::chrono;
  auto now = steady_clock::now();
  if (stage != current) {
    finishStage();
    current = stage;
    started = now;
    if (!isTerminal)
      std::fprintf(stderr, "%s\n", current.c_str());
  } else if (now - drawn < milliseconds(50) && done < 1) {
    return;
  }
  drawn = now;
  if (!isTerminal)
    return;
  constexpr int width = 30;
  std::string bar(static_cast<size_t>(done * width), '#');
  bar.resize(width, '.');
  if (done > 0) {
    double elapsed = duration<double>(now - started).count();
    std::fprintf(stderr, "\r\x1b[K%-22s [%s] %3.0f%%  %.0f s left",
                 current.c_str(), bar.c_str(), done * 100,
                 elapsed * (1 - done) / done);
  } else {
    std::fprintf(stderr, "\r\x1b[K%-22s", current.c_str());
  }
}

void ProgressLine::finishStage() {
  if (isTerminal && !current.empty())
    std::fprintf(stderr, "\r\x1b[K");
  current.clear();
}

InterruptedMessage::InterruptedMessage() { say("nothing was written"); }

void InterruptedMessage::keep(const std::string &what) {
  if (std::ranges::count(kept, what))
    return;
  say(what);
  kept.push_back(what);
}

void InterruptedMessage::say(const std::string &what,
                             const std::string &output) const {
  std::string message = "interrupted; ";
  for (const std::string &each : kept)
    message += each + "; ";
  sayWhenInterrupted(message + what, output);
}
