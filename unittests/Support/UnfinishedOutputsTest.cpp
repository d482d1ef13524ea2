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

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
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

  size_t countFiles() const {
    return std::distance(fs::directory_iterator(folder.path()), {});
  }

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

/// Whether a process has no more addresses than it is told to have.
static bool limitsAddresses() {
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit nothing = {};
    ::setrlimit(RLIMIT_AS, &nothing);
    ::_exit(::mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0) == MAP_FAILED
                ? 0
                : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Some libraries use what malloc returns unseen.
TEST_F(UnfinishedOutputsDeathTest, AreRemovedWhereNullIsUsedForMemory) {
  if (sanitizerDecides)
    GTEST_SKIP() << "the sanitizer ends the process";
  if (!limitsAddresses())
    GTEST_SKIP() << "nothing limits the addresses of a process here";
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

#if defined(__x86_64__) || defined(__aarch64__)
/// Uses more of the stack than the limit below allows.
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
        // Without a limit the stack would grow until the machine has no memory.
        struct rlimit limit = {};
        ::getrlimit(RLIMIT_STACK, &limit);
        constexpr rlim_t enough = rlim_t(8) << 20;
        limit.rlim_cur = std::min(limit.rlim_max, enough);
        ::setrlimit(RLIMIT_STACK, &limit);
        recurse(std::numeric_limits<int>::max());
      },
      "out of memory for the stack.*");
}
#endif

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

/// Does something for half a minute in which nobody looks at `interrupted`, and
/// exits.
static void workUninterrupted(const std::function<void()> &something) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds longer(30);
  for (const Clock::time_point end = Clock::now() + longer; Clock::now() < end;)
    something();
  std::_Exit(0);
}

TEST_F(UnfinishedOutputsDeathTest, AreRemovedSoonAfterAnInterrupt) {
  for (int signal : {SIGINT, SIGTERM})
    for (void (*something)() : {+[] {}, +[] { ::usleep(1000); }})
      expectNothingLeft(
          [&] {
            sayWhenInterrupted("interrupted");
            exitSoonWhenInterrupted();
            std::raise(signal);
            EXPECT_TRUE(interrupted());
            workUninterrupted(something);
          },
          "interrupted");
}

/// Signals are handled on any thread.
TEST_F(UnfinishedOutputsDeathTest, AreRemovedAfterAnInterruptOfAnotherThread) {
  expectNothingLeft(
      [] {
        sayWhenInterrupted("interrupted");
        exitSoonWhenInterrupted();
        std::thread([] { std::raise(SIGINT); }).join();
        EXPECT_TRUE(interrupted());
        workUninterrupted([] {});
      },
      "interrupted");
}

/// Runs `end` with standard output in the file `output`.
static void endInto(const std::string &output,
                    const std::function<void()> &end) {
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(file, STDOUT_FILENO);
  end();
}

/// What was said last counts, and its text need not be kept by the caller.
TEST_F(UnfinishedOutputsDeathTest, TellWhatWasFoundBeforeAnInterrupt) {
  const auto interrupt = [] {
    exitSoonWhenInterrupted();
    sayWhenInterrupted("interrupted", "nothing");
    sayWhenInterrupted("interrupted; " + std::string(100, 'x'),
                       std::string(100000, 'y'));
    std::raise(SIGINT);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(endInto(path("output"), interrupt), testing::ExitedWithCode(1),
              "^error: interrupted; x{100}\n$");
  EXPECT_EQ(*readTextFile(path("output"), 1 << 20), std::string(100000, 'y'));
  if (::access("/dev/full", W_OK) != 0)
    return;
  EXPECT_EXIT(
      endInto("/dev/full", interrupt), testing::ExitedWithCode(1),
      "^error: cannot write to standard output: No space left on device\n$");
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

/// A process with this one's number, in another container, may write here too.
TEST_F(UnfinishedOutputsDeathTest, AreNotWhatOthersMade) {
  const auto end = [&] {
    const std::string number = std::to_string(::getpid());
    std::ofstream(path("file.partial-") + number) << "x";
    fs::create_directory(path("folder-") + number);
    std::ofstream(path("folder-") + number + "/file") << "x";
    auto file = PendingFile::create(path("file"));
    auto folder = ScratchFolder::create("folder", path(""));
    const auto refused =
        UnfinishedOutput::listWhenMade(path("kept"), [&] { return false; });
    std::ofstream(path("kept")) << "x";
    exitWithError({file && folder ? "why" : "cannot create"});
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(1), "why");
  EXPECT_EQ(countFiles(), 3u);
  for (const fs::directory_entry &left :
       fs::recursive_directory_iterator(folder.path()))
    EXPECT_TRUE(left.is_directory() || left.file_size() == 1) << left.path();
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
  const std::string beyond = path(std::to_string(UnfinishedOutput::most));
  const auto end = [&] {
    std::vector<UnfinishedOutput> many;
    many.emplace_back(path(std::string(10000, 'x')));
    for (int i = 0; i <= UnfinishedOutput::most; ++i) {
      many.emplace_back(path(std::to_string(i)));
      std::ofstream(path(std::to_string(i))) << "x";
    }
    exitWithError({"why"});
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(1), "why");
  EXPECT_TRUE(fs::exists(beyond));
  EXPECT_EQ(countFiles(), 1u);
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
