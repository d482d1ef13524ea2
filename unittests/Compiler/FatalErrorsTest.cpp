//===- FatalErrorsTest.cpp - Signals of a process that compiles -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/FatalErrors.h"

#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Support/CutFiles.h"
#include "sandwich/Support/Process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace sandwich;

/// What handles the signals that a tool says something of.
static std::map<int, void (*)(int)> handlers() {
  std::map<int, void (*)(int)> found;
  for (int number :
       {SIGINT, SIGTERM, SIGHUP, SIGBUS, SIGSEGV, SIGPIPE, SIGXFSZ}) {
    struct sigaction action = {};
    if (::sigaction(number, nullptr, &action) == 0)
      found[number] = action.sa_handler;
  }
  return found;
}

/// Ends the process with 0 where linking leaves its signals as they were.
[[noreturn]] static void linkWithOurSignals() {
  exitOnFatalErrors();
  prepareStandardStreams();
  exitOnCutFiles();
  exitSoonWhenInterrupted();
  const std::map<int, void (*)(int)> before = handlers();
  // What is linked does not matter: lld makes its temporary file first, and
  // then finds that there is nothing to link.
  (void)linkSharedObject("");
  std::_Exit(handlers() == before ? 0 : 1);
}

TEST(FatalErrorsDeathTest, LinkingLeavesSignals) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(linkWithOurSignals(), testing::ExitedWithCode(0), "");
}
