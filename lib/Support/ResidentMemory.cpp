//===- ResidentMemory.cpp - How much memory is in use ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ResidentMemory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>

using namespace sandwich;

uint64_t sandwich::residentBytes(std::span<const std::byte> memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t end = begin + memory.size();
  // One byte for each page. /proc/self/smaps would tell less: the kernel makes
  // one mapping of neighbours.
  std::array<unsigned char, 4096> pages;
  uint64_t resident = 0;
  for (uintptr_t next = begin / page * page; next < end;) {
    const uintptr_t bytes =
        std::min<uintptr_t>(pages.size() * page, end - next);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages around it.
    if (::mincore(reinterpret_cast<void *>(next), bytes, pages.data()) != 0)
      return 0;
    const auto count = static_cast<size_t>((bytes + page - 1) / page);
    resident += page * static_cast<uint64_t>(std::count_if(
                           pages.begin(),
                           pages.begin() + static_cast<std::ptrdiff_t>(count),
                           [](unsigned char state) { return state & 1; }));
    next += bytes;
  }
  return std::min<uint64_t>(resident, memory.size());
}

uint64_t sandwich::anonymousBytesOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    uint64_t kibibytes = 0;
    if (fields >> name >> kibibytes && name == "RssAnon:")
      return kibibytes << 10;
  }
  return 0;
}
