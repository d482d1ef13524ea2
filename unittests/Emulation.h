//===- Emulation.h - Tests under an emulator --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_EMULATION_H
#define SANDWICH_UNITTESTS_EMULATION_H

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace sandwich::test {

/// Whether an emulator such as qemu-aarch64 runs this program, which takes ten
/// times as long then, or more. Linux knows the emulator, and no program, by
/// the links of the threads; the emulator makes up the one of the process.
inline bool isEmulated() {
  static const bool emulated = [] {
    std::error_code error;
    const auto ofThread =
        std::filesystem::read_symlink("/proc/thread-self/exe", error);
    return !error &&
           std::filesystem::read_symlink("/proc/self/exe", error) != ofThread &&
           !error;
  }();
  return emulated;
}

/// `count`, or less where an emulator runs this program: for repetitions of
/// which a few show what is to be shown.
template <typename Count> Count timesToRepeat(Count count, Count emulated) {
  return isEmulated() ? emulated : count;
}

/// Whether Linux runs `program`, which knows `--version`, if it is asked to:
/// one for another machine needs an emulator's help.
inline bool canStart(const std::string &program) {
  const char *arguments[] = {program.c_str(), "--version", nullptr};
  posix_spawn_file_actions_t silent;
  ::posix_spawn_file_actions_init(&silent);
  ::posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  pid_t process = -1;
  const int error =
      ::posix_spawn(&process, arguments[0], &silent, nullptr,
                    const_cast<char *const *>(arguments), ::environ);
  ::posix_spawn_file_actions_destroy(&silent);
  if (error != 0)
    return false;
  int status = -1;
  return ::waitpid(process, &status, 0) == process && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_EMULATION_H
