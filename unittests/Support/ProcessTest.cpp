//===- ProcessTest.cpp - Streams, signals and threads ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Process.h"
#include "SystemCallFilter.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sandwich;

namespace {

constexpr int closedAll = 0, leftSome = 1, cannotTell = 2, reportedFailure = 3;

/// From here on the system calls `first` and `second` fail as in a system that
/// has none. Whether that can be had.
bool removeCalls(uint32_t first, uint32_t second) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return filterSystemCalls(rules);
}

/// Opens more than one buffer of a folder's entries has room for, and keeps one
/// of them.
[[noreturn]] void closeAllButOne() {
  constexpr int first = 100, count = 400, kept = 250;
  for (int i = 0; i < count; ++i)
    if (::dup2(STDERR_FILENO, first + i) < 0)
      ::_exit(cannotTell);
  if (!closeDescriptorsExcept(kept))
    ::_exit(reportedFailure);
  for (int i = 0; i < first + count; ++i)
    if ((::fcntl(i, F_GETFD) >= 0) != (i <= STDERR_FILENO || i == kept))
      ::_exit(leftSome);
  ::_exit(closedAll);
}

/// Ends by the second of two signals that ask for it.
[[noreturn]] void interruptTwice(int first, int second) {
  // Those who run the tests may have let it be ignored.
  std::signal(SIGHUP, SIG_DFL);
  catchInterrupts();
  if (interrupted())
    ::_exit(cannotTell);
  (void)::raise(first);
  if (!interrupted())
    ::_exit(reportedFailure);
  (void)::raise(second);
  ::_exit(closedAll);
}

TEST(ProcessDeathTest, EndsByTheSecondInterrupt) {
  for (int first : {SIGINT, SIGTERM, SIGHUP})
    for (int second : {SIGINT, SIGTERM, SIGHUP})
      EXPECT_EXIT(interruptTwice(first, second),
                  testing::KilledBySignal(second), "");
}

TEST(ProcessDeathTest, ClosesDescriptors) {
  EXPECT_EXIT(closeAllButOne(), testing::ExitedWithCode(closedAll), "");
}

/// `closeAllButOne` where `removeCalls` has removed `first` and `second`.
[[noreturn]] void closeAllButOneWithout(uint32_t first, uint32_t second) {
  if (!removeCalls(first, second))
    ::_exit(cannotTell);
  closeAllButOne();
}

/// As Linux before 5.9.
TEST(ProcessDeathTest, ClosesDescriptorsWithoutCloseRange) {
  if (!canFilterSystemCalls())
    GTEST_SKIP() << "this system cannot refuse calls";
  EXPECT_EXIT(closeAllButOneWithout(SYS_close_range, SYS_close_range),
              testing::ExitedWithCode(closedAll), "");
}

TEST(ProcessDeathTest, TellsWhereNothingClosesDescriptors) {
  if (!canFilterSystemCalls())
    GTEST_SKIP() << "this system cannot refuse calls";
  EXPECT_EXIT(closeAllButOneWithout(SYS_close_range, SYS_getdents64),
              testing::ExitedWithCode(reportedFailure), "");
}

TEST(ProcessDeathTest, KeepsTheFirstDescriptor) {
  auto run = [] {
    constexpr int kept = STDERR_FILENO + 1;
    if (::dup2(STDERR_FILENO, kept) != kept ||
        ::dup2(STDERR_FILENO, kept + 1) != kept + 1)
      ::_exit(cannotTell);
    if (!closeDescriptorsExcept(kept))
      ::_exit(reportedFailure);
    ::_exit(::fcntl(kept, F_GETFD) >= 0 && ::fcntl(kept + 1, F_GETFD) < 0
                ? closedAll
                : leftSome);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(closedAll), "");
}

} // namespace
