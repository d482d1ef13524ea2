//===- MemoryFileTest.cpp - Files in memory -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/MemoryFile.h"
#include "SystemCallFilter.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sandwich;

namespace {

/// Linux takes it from 6.3 on, and may be told to refuse files without it.
constexpr unsigned noExecSeal = 8;

bool knowsNoExecSeal() {
  const int probe = ::memfd_create("probe", MFD_CLOEXEC | noExecSeal);
  if (probe >= 0)
    ::close(probe);
  return probe >= 0;
}

/// From here on making a file with, or without, `noExecSeal` fails with
/// `error`. Whether the system can do that.
bool refuseFiles(bool withSeal, uint32_t error) {
  const uint32_t flags =
      MFD_CLOEXEC | MFD_ALLOW_SEALING | (withSeal ? noExecSeal : 0);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return filterSystemCalls(rules);
}

/// What a process ends with that makes a file where the system refuses some.
constexpr int made = 0, failed = 1, cannotTell = 2;
[[noreturn]] void makeFileWhereRefused(bool withSeal, uint32_t error) {
  if (!refuseFiles(withSeal, error))
    ::_exit(cannotTell);
  ::_exit(createMemoryFile("test") >= 0 ? made : failed);
}

TEST(MemoryFile, CanBeSealedAndMappedAsCode) {
  const int file = createMemoryFile("test");
  ASSERT_GE(file, 0);
  EXPECT_EQ(::fcntl(file, F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  EXPECT_EQ(::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
  // As the loader does, which opens it again.
  const int again = ::open(("/proc/self/fd/" + std::to_string(file)).c_str(),
                           O_RDONLY | O_CLOEXEC);
  ASSERT_GE(again, 0);
  void *code =
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, again, 0);
  EXPECT_NE(code, MAP_FAILED);
  if (code != MAP_FAILED)
    ::munmap(code, 4096);
  ::close(again);
  ::close(file);
}

TEST(MemoryFile, CannotBeRun) {
  if (!knowsNoExecSeal())
    GTEST_SKIP() << "this Linux is older than 6.3";
  const int file = createMemoryFile("test");
  struct stat status;
  ASSERT_EQ(::fstat(file, &status), 0);
  EXPECT_EQ(status.st_mode & 0111, 0u);
  EXPECT_NE(::fchmod(file, 0700), 0);
  ::close(file);
}

/// As vm.memfd_noexec = 2 has it.
TEST(MemoryFileDeathTest, IsMadeWhereOneThatCouldRunIsRefused) {
  if (!knowsNoExecSeal())
    GTEST_SKIP() << "this Linux is older than 6.3";
  if (!canFilterSystemCalls())
    GTEST_SKIP() << "this system cannot refuse calls";
  EXPECT_EXIT(makeFileWhereRefused(/*withSeal=*/false, EACCES),
              testing::ExitedWithCode(made), "");
}

/// As Linux before 6.3 has it.
TEST(MemoryFileDeathTest, IsMadeWhereTheFlagIsUnknown) {
  if (!canFilterSystemCalls())
    GTEST_SKIP() << "this system cannot refuse calls";
  EXPECT_EXIT(makeFileWhereRefused(/*withSeal=*/true, EINVAL),
              testing::ExitedWithCode(made), "");
}

} // namespace
