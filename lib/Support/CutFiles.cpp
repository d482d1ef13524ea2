//===- CutFiles.cpp - Mapped files that shrink ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/CutFiles.h"

#include "sandwich/Support/UnfinishedOutputs.h"

#include <array>
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

/// Room for a line of /proc/self/maps: a path and 74 characters before it.
using MapsBuffer = std::array<char, 8192>;

/// The path of the file that is mapped at `address`, as part of `buffer`, or
/// nothing.
static std::string_view findMappedFile(uintptr_t address, MapsBuffer &buffer) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::string_view name;
  size_t held = 0;
  while (maps >= 0 && name.empty()) {
    const ssize_t count =
        ::read(maps, buffer.data() + held, buffer.size() - held);
    if (count <= 0)
      break;
    held += static_cast<size_t>(count);
    std::string_view rest(buffer.data(), held);
    for (size_t end; name.empty() && (end = rest.find('\n')) != rest.npos;
         rest.remove_prefix(end + 1))
      name = pathIn(rest.substr(0, end), address);
    if (name.empty())
      std::memmove(buffer.data(), rest.data(), held = rest.size());
  }
  ::close(maps);
  return name;
}

static void onBusError(int signal, siginfo_t *information, void *) {
  if (information->si_code != BUS_ADRERR) {
    // Sent by a program, or a fault of the hardware: as without the handler.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  // Other threads may be here as well.
  MapsBuffer buffer;
  const std::string_view name =
      findMappedFile(reinterpret_cast<uintptr_t>(information->si_addr), buffer);
  exitWithError({name.empty() ? "a file" : name,
                 ": cannot be read any more: it was cut while it was in use, "
                 "or its disk failed"});
}

void sandwich::exitOnCutFiles() {
  struct sigaction action = {};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}
