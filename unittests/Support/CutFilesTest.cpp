//===- CutFilesTest.cpp - Mapped files that shrink -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/CutFiles.h"

#include "sandwich/Support/File.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace sandwich;

/// Reads the end of a mapped file after the file was cut.
static void readBehindTheCut(const std::string &path) {
  exitOnCutFiles();
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return;
  std::filesystem::resize_file(path, 0);
  volatile char last = file->text().back();
  (void)last;
}

TEST(CutFilesDeathTest, AreOneError) {
  std::string path = std::filesystem::temp_directory_path() /
                     ("sandwich-cut-" + std::to_string(::getpid()));
  std::ofstream(path) << std::string(100000, 'x');
  EXPECT_EXIT(readBehindTheCut(path), testing::ExitedWithCode(1),
              "^error: " + path + ": cannot be read any more: [^\n]*\n$");
  std::filesystem::remove(path);
}

TEST(CutFilesDeathTest, OtherBusErrorsStaySignals) {
  auto raise = [] {
    exitOnCutFiles();
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise(), testing::KilledBySignal(SIGBUS), "");
}
