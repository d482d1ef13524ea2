//===- UnfinishedOutputsTest.cpp - What ends with the process -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/UnfinishedOutputs.h"

#include "TemporaryFolder.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <new>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace sandwich;
namespace fs = std::filesystem;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANDWICH_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANDWICH_ADDRESS_SANITIZER
#endif

/// Sanitizers end the process by themselves where memory or the stack ends.
#ifdef SANDWICH_ADDRESS_SANITIZER
static constexpr bool sanitizerDecides = true;
#else
static constexpr bool sanitizerDecides = false;
#endif

namespace {

class UnfinishedOutputsDeathTest : public testing::Test {
protected:
  std::string path(const std::string &name) const { return folder.file(name); }

  /// Begins a file and a folder with files, calls `end` and returns.
  void endWithOutputs(const std::function<void()> &end) {
    auto file = PendingFile::create(path("file"));
    ASSERT_TRUE(file && file->write("text"));
    UnfinishedOutput folder(path("folder"));
    fs::create_directories(path("folder") + "/inner/most");
    // More entries than are read at once.
    for (int i = 0; i < 300; ++i)
      std::ofstream(path("folder") + "/inner/" + std::to_string(i)) << "x";
    fs::create_directory_symlink(path("kept"), path("folder") + "/link");
    end();
  }

  /// `end` exits with status 1, says `message`, and leaves what it found.
  void expectNothingLeft(const std::function<void()> &end,
                         const std::string &message) {
    fs::create_directory(path("kept"));
    std::ofstream(path("kept") + "/file") << "x";
    EXPECT_EXIT(endWithOutputs(end), testing::ExitedWithCode(1),
                "^error: " + message + "\n$");
    EXPECT_TRUE(fs::exists(path("kept") + "/file"));
    fs::remove_all(path("kept"));
    EXPECT_TRUE(fs::is_empty(path("")));
  }

  test::TemporaryFolder folder;
};

} // namespace

TEST_F(UnfinishedOutputsDeathTest, AreRemovedWithAnError) {
  expectNothingLeft([] { exitWithError({"why", " and how"}); }, "why and how");
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedOnceByOneThread) {
  expectNothingLeft(
      [] {
        std::thread other([] { exitWithError({"why"}); });
        exitWithError({"why"});
      },
      "why");
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedWhereMemoryEnds) {
  if (sanitizerDecides)
    GTEST_SKIP() << "the sanitizer ends the process";
  // More than there are addresses.
  volatile size_t bytes = size_t(1) << 60;
  expectNothingLeft(
      [&] {
        exitWhenOutOfMemory();
        ::operator delete(::operator new(bytes));
      },
      "out of memory.*");
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedWhenExceptionsAreNotCaught) {
  expectNothingLeft(
      [] {
        exitWhenOutOfMemory();
        std::thread([] { throw std::runtime_error("why"); }).join();
      },
      "why");
}

/// Some libraries use what malloc returns unseen.
TEST_F(UnfinishedOutputsDeathTest, AreRemovedWhereNullIsUsedForMemory) {
  if (sanitizerDecides)
    GTEST_SKIP() << "the sanitizer ends the process";
  expectNothingLeft(
      [] {
        exitWhenOutOfMemory();
        const struct rlimit nothing = {};
        ::setrlimit(RLIMIT_AS, &nothing);
        volatile int *volatile memory = nullptr;
        *memory = 1;
      },
      "out of memory.*");
}

/// Uses more of the stack than any limit allows.
// NOLINTNEXTLINE(misc-no-recursion): that is the point.
static int recurse(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : recurse(depth - 1) + frame[0];
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedWhereTheStackEnds) {
  if (sanitizerDecides)
    GTEST_SKIP() << "the sanitizer ends the process";
  expectNothingLeft(
      [] {
        exitWhenOutOfMemory();
        recurse(std::numeric_limits<int>::max());
      },
      "out of memory for the stack.*");
}

TEST_F(UnfinishedOutputsDeathTest, OtherBadAccessesStaySignals) {
  auto access = [] {
    exitWhenOutOfMemory();
    std::raise(SIGSEGV);
  };
  EXPECT_EXIT(access(), testing::KilledBySignal(SIGSEGV), "");
  auto nullAccess = [] {
    exitWhenOutOfMemory();
    volatile int *volatile memory = nullptr;
    *memory = 1;
  };
  EXPECT_EXIT(nullAccess(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedSoonAfterAnInterrupt) {
  for (int signal : {SIGINT, SIGTERM})
    expectNothingLeft(
        [&] {
          sayWhenInterrupted("interrupted");
          exitSoonWhenInterrupted();
          std::raise(signal);
          EXPECT_TRUE(interrupted());
          // Nobody looks at it.
          for (;;)
            ::pause();
        },
        "interrupted");
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedAtTheSecondInterrupt) {
  expectNothingLeft(
      [] {
        sayWhenInterrupted("interrupted");
        exitSoonWhenInterrupted();
        std::raise(SIGTERM);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      "interrupted");
}

/// A child that ends must not remove what its parent writes.
TEST_F(UnfinishedOutputsDeathTest, AreTheirProcessesOwn) {
  UnfinishedOutput unfinished(path("file"));
  std::ofstream(path("file")) << "x";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    exitWithError({"why"});
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::exists(path("file")));
}

TEST_F(UnfinishedOutputsDeathTest, AreFinishedWhenDestroyed) {
  {
    UnfinishedOutput finished(path("file"));
  }
  std::ofstream(path("file")) << "x";
  EXPECT_EXIT(exitWithError({"why"}), testing::ExitedWithCode(1), "why");
  EXPECT_TRUE(fs::exists(path("file")));
}

TEST_F(UnfinishedOutputsDeathTest, AreNotAllListed) {
  std::vector<UnfinishedOutput> many;
  for (int i = 0; i < UnfinishedOutput::most + 1; ++i)
    many.emplace_back(path(std::to_string(i)));
  UnfinishedOutput longer(path(std::string(10000, 'x')));
  many.clear();
}

/// Scratch folders differ, and are removed with what is in them.
TEST_F(UnfinishedOutputsDeathTest, ScratchFolders) {
  {
    auto first = ScratchFolder::create("name", path(""));
    auto second = ScratchFolder::create("name", path(""));
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->path(), second->path());
    EXPECT_TRUE(fs::is_directory(first->path()));
    std::ofstream(first->path() + "/file") << "x";
  }
  EXPECT_TRUE(fs::is_empty(path("")));
  EXPECT_FALSE(ScratchFolder::create("name", path("absent")));
}
