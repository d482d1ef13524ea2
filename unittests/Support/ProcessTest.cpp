//===- ProcessTest.cpp - Streams, signals and threads ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Process.h"

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
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
  const sock_fprog program = {std::size(rules), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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

TEST(ProcessDeathTest, ClosesDescriptors) {
  EXPECT_EXIT(closeAllButOne(), testing::ExitedWithCode(closedAll), "");
}

/// As Linux before 5.9.
TEST(ProcessDeathTest, ClosesDescriptorsWithoutCloseRange) {
  auto run = [] {
    if (!removeCalls(SYS_close_range, SYS_close_range))
      ::_exit(cannotTell);
    closeAllButOne();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(closedAll), "");
}

TEST(ProcessDeathTest, TellsWhereNothingClosesDescriptors) {
  auto run = [] {
    if (!removeCalls(SYS_close_range, SYS_getdents64))
      ::_exit(cannotTell);
    closeAllButOne();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(reportedFailure), "");
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
