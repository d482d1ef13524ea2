//===- CutFilesTest.cpp - Mapped files that shrink -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/CutFiles.h"

#include "TemporaryFolder.h"
#include "sandwich/Support/File.h"

#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>

using namespace sandwich;

/// Reads the end of a mapped file after the file was cut, while `output` is
/// being written.
static void readBehindTheCut(const std::string &path,
                             const std::string &output) {
  exitOnCutFiles();
  Result<MappedFile> file = MappedFile::open(path);
  Result<PendingFile> pending = PendingFile::create(output);
  if (!file || !pending)
    return;
  std::filesystem::resize_file(path, 0);
  volatile char last = file->text().back();
  (void)last;
}

TEST(CutFilesDeathTest, AreOneError) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("cut", std::string(100000, 'x'));
  EXPECT_EXIT(readBehindTheCut(path, folder.file("output")),
              testing::ExitedWithCode(1),
              "^error: " + path + ": cannot be read any more: [^\n]*\n$");
  // Nothing is left of the output.
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(CutFilesDeathTest, OtherBusErrorsStaySignals) {
  auto raise = [] {
    exitOnCutFiles();
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise(), testing::KilledBySignal(SIGBUS), "");
}
