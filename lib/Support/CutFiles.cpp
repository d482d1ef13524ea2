//===- CutFiles.cpp - Mapped files that shrink ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/CutFiles.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <unistd.h>

using namespace sandwich;

// All of this runs inside of a signal handler: no allocation, no locks, no
// standard streams.

/// The hexadecimal number at the beginning of `text`, which it is taken from.
static uintptr_t takeHexadecimal(std::string_view &text) {
  uintptr_t number = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    char c = text.front();
    if (c >= '0' && c <= '9')
      number = number << 4 | static_cast<uintptr_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      number = number << 4 | static_cast<uintptr_t>(c - 'a' + 10);
    else
      break;
  }
  return number;
}

/// The path in `line` of /proc/self/maps, `START-END MODE OFFSET DEVICE INODE
/// PATH`, if `address` lies in it, or nothing.
static std::string_view pathIn(std::string_view line, uintptr_t address) {
  uintptr_t start = takeHexadecimal(line);
  line.remove_prefix(line.empty() ? 0 : 1);
  uintptr_t end = takeHexadecimal(line);
  size_t path = line.find('/');
  if (address < start || address >= end || path == line.npos)
    return {};
  return line.substr(path);
}

static void print(std::string_view text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

static void onBusError(int signal, siginfo_t *information, void *) {
  if (information->si_code != BUS_ADRERR) {
    // Sent by a program, or a fault of the hardware: as without the handler.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  // A second thread's fault waits for the first to end the program.
  static std::atomic_flag busy;
  while (busy.test_and_set())
    ::pause();
  auto address = reinterpret_cast<uintptr_t>(information->si_addr);
  // One line is at most a path and 74 characters before it.
  static char buffer[8192];
  std::string_view name;
  int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t held = 0;
  while (maps >= 0 && name.empty()) {
    ssize_t count = ::read(maps, buffer + held, sizeof(buffer) - held);
    if (count <= 0)
      break;
    held += static_cast<size_t>(count);
    std::string_view rest(buffer, held);
    for (size_t end; name.empty() && (end = rest.find('\n')) != rest.npos;
         rest.remove_prefix(end + 1))
      name = pathIn(rest.substr(0, end), address);
    if (name.empty())
      std::memmove(buffer, rest.data(), held = rest.size());
  }
  print("error: ");
  print(name.empty() ? "a file" : name);
  print(": cannot be read any more: it was cut while it was in use, or its "
        "disk failed\n");
  ::_exit(1);
}

void sandwich::exitOnCutFiles() {
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}
