//===- FileTest.cpp - Mapped reading and safe writing ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/File.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sandwich;

namespace {

class FileTest : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             ("sandwich-file-test-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string path(const char *name) { return folder / name; }
  size_t filesInFolder() {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }

  std::filesystem::path folder;
};

TEST_F(FileTest, WritesBesideAndRenames) {
  auto pending = PendingFile::create(path("a"));
  ASSERT_TRUE(pending);
  ASSERT_TRUE(pending->write("hello"));
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  ASSERT_TRUE(pending->commit());
  EXPECT_EQ(*readTextFile(path("a"), 100), "hello");
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(FileTest, LeavesNothingWithoutCommit) {
  {
    ASSERT_TRUE(PendingFile::create(path("a")));
  }
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(FileTest, NamesAFullDisk) {
  if (::access("/dev/full", W_OK) != 0)
    GTEST_SKIP() << "no /dev/full";
  std::filesystem::create_symlink("/dev/full", path("a"));
  auto pending = PendingFile::create(path("a"));
  ASSERT_TRUE(pending);
  auto status = pending->write("hello");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
}

/// What has the name already is another container's, or was left by a process
/// that was killed.
TEST_F(FileTest, WritesToNoFileThatIsThere) {
  const std::string first =
      path("a") + ".partial-" + std::to_string(::getpid());
  ASSERT_TRUE(PendingFile::create(path("victim"))->commit());
  std::filesystem::create_symlink(path("victim"), first);
  {
    auto one = PendingFile::create(path("a"));
    auto other = PendingFile::create(path("a"));
    ASSERT_TRUE(one && other);
    ASSERT_TRUE(one->write("hello"));
    ASSERT_TRUE(other->write("world"));
    ASSERT_TRUE(other->commit());
    EXPECT_EQ(*readTextFile(path("a"), 100), "world");
    ASSERT_TRUE(one->commit());
    EXPECT_EQ(*readTextFile(path("a"), 100), "hello");
  }
  EXPECT_TRUE(std::filesystem::is_symlink(first));
  EXPECT_TRUE(readTextFile(path("victim"), 100)->empty());
  EXPECT_EQ(filesInFolder(), 3u);
}

TEST_F(FileTest, ReadsAgainWhatItDropped) {
  std::ofstream(path("a")) << "hello";
  Result<MappedFile> file = MappedFile::open(path("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->text(), "hello");
  file->dropPages();
  EXPECT_EQ(file->text(), "hello");
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(MappedFile::open(path("absent")));
  EXPECT_FALSE(MappedFile::open(folder));
  EXPECT_FALSE(MappedFile::open("/dev/zero"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::open(path("fifo")));
}

TEST_F(FileTest, MapsAnEmptyFile) {
  ASSERT_TRUE(PendingFile::create(path("a"))->commit());
  auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(FileTest, LimitsTheSizeOfTextFiles) {
  auto pending = PendingFile::create(path("a"));
  ASSERT_TRUE(pending->write("hello"));
  ASSERT_TRUE(pending->commit());
  EXPECT_FALSE(readTextFile(path("a"), 4));
}

TEST_F(FileTest, OneHoldsALockAtATime) {
  {
    auto first = FileLock::acquire(path("lock"), 0);
    ASSERT_TRUE(first) << first.error().message;
    auto second = FileLock::acquire(path("lock"), 0.01);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message,
              path("lock") +
                  ": another process has held this lock for 0.01 seconds");
    FileLock moved = *std::move(first);
    EXPECT_FALSE(FileLock::acquire(path("lock"), 0));
  }
  EXPECT_TRUE(FileLock::acquire(path("lock"), 0));
  auto absent = FileLock::acquire(path("none/lock"), 0);
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().message.find("cannot create"), std::string::npos);
}

} // namespace
