//===- HugePages.cpp - How much memory lies in huge pages -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/HugePages.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

using namespace sandwich;

/// The addresses "from-to" that a line of /proc/self/smaps begins with, if it
/// begins a mapping.
static std::optional<std::pair<uintptr_t, uintptr_t>>
mappedRange(const std::string &line) {
  const char *end = line.data() + line.size();
  uintptr_t from, to;
  auto [dash, error] = std::from_chars(line.data(), end, from, 16);
  if (error != std::errc() || dash == end || *dash != '-' ||
      std::from_chars(dash + 1, end, to, 16).ec != std::errc())
    return std::nullopt;
  return std::pair(from, to);
}

uint64_t sandwich::bytesInHugePages(std::span<const std::byte> memory) {
  auto begin = reinterpret_cast<uintptr_t>(memory.data());
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  uint64_t sum = 0;
  for (std::string line; std::getline(maps, line);) {
    if (auto range = mappedRange(line)) {
      ours = range->first < begin + memory.size() && range->second > begin;
    } else if (ours) {
      std::istringstream field(line);
      std::string name;
      uint64_t kibibytes;
      if (field >> name >> kibibytes &&
          (name == "AnonHugePages:" || name == "FilePmdMapped:"))
        sum += kibibytes << 10;
    }
  }
  return std::min<uint64_t>(sum, memory.size());
}
