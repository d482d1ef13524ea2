//===- MemoryBudget.cpp - How much memory this process may use ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/Process/MemoryBudget.h"

#include "Cgroup.h"
#include "sandwich/Machine/Indexes.h"
#include "sandwich/Machine/Process/MemoryBinding.h"

#include <charconv>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace sandwich;

static std::optional<uint64_t> readBytes(const std::string &text) {
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  // "max", for example, is no number.
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// The number after the word `name` in a file of lines such as
/// "MemAvailable:   22314136 kB", "Node 0 MemFree:   20147 kB" or
/// "active_file 4096", in bytes.
static std::optional<uint64_t> readField(const std::string &path,
                                         const std::string &name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words;
    for (std::string &word : splitText(line, ' '))
      if (!word.empty())
        words.push_back(std::move(word));
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] != name)
        continue;
      std::optional<uint64_t> number = readBytes(words[i + 1]);
      if (!number)
        return std::nullopt;
      bool kibibytes = i + 2 < words.size() && words[i + 2] == "kB";
      return kibibytes ? *number << 10 : *number;
    }
  }
  return std::nullopt;
}

static uint64_t difference(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

/// What the limit set in the folder of one cgroup leaves.
static std::optional<MemoryLimit> readCgroup(const CgroupFolder &folder) {
  std::string file =
      folder.path + (folder.unified ? "/memory.max" : "/memory.limit_in_bytes");
  std::optional<uint64_t> limit = readBytes(readFirstLine(file));
  std::optional<uint64_t> used = readBytes(
      readFirstLine(folder.path + (folder.unified ? "/memory.current"
                                                  : "/memory.usage_in_bytes")));
  if (!limit || !used)
    return std::nullopt;
  // In v1 the names with "total_" count the cgroups below, too, as the use
  // does.
  std::string prefix = folder.unified ? "" : "total_";
  uint64_t ofFiles = 0;
  for (const char *list : {"active_file", "inactive_file"})
    ofFiles +=
        readField(folder.path + "/memory.stat", prefix + list).value_or(0);
  return MemoryLimit{difference(*limit, difference(*used, ofFiles)),
                     "in the cgroup limit of " + file};
}

/// What is free on `memories`, which are those of a NUMA node.
static std::optional<MemoryLimit>
readNode(unsigned node, const std::vector<unsigned> &memories,
         const std::string &root) {
  MemoryLimit limit{.where = memories.size() == 1 ? "on NUMA node "
                                                  : "on NUMA nodes ",
                    .numaNode = node};
  limit.where += formatIndexes({memories.begin(), memories.end()});
  for (unsigned memory : memories) {
    std::string path = root + "/sys/devices/system/node/node" +
                       std::to_string(memory) + "/meminfo";
    std::optional<uint64_t> available = readField(path, "MemFree:");
    if (!available)
      return std::nullopt;
    for (const char *list : {"Active(file):", "Inactive(file):"})
      *available += readField(path, list).value_or(0);
    limit.available += *available;
  }
  return limit;
}

/// What is left of the address space, if that is limited.
static std::optional<MemoryLimit> readAddressSpace() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  std::optional<uint64_t> pages =
      readBytes(splitText(readFirstLine("/proc/self/statm") + " ", ' ')[0]);
  if (!pages)
    return std::nullopt;
  uint64_t used = *pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return MemoryLimit{difference(limit.rlim_cur, used),
                     "below the address space limit (ulimit -v)",
                     /*countsMappedFiles=*/true};
}

std::vector<MemoryLimit>
sandwich::readMemoryLimits(const std::vector<unsigned> &numaNodes,
                           const std::string &root) {
  std::vector<MemoryLimit> limits;
  auto add = [&](std::optional<MemoryLimit> limit) {
    if (limit)
      limits.push_back(*std::move(limit));
  };
  if (auto available = readField(root + "/proc/meminfo", "MemAvailable:"))
    limits.push_back({*available, "on this machine"});
  for (const CgroupFolder &folder : cgroupFolders(root, "memory"))
    add(readCgroup(folder));
  for (unsigned node : numaNodes)
    add(readNode(
        node, root.empty() ? memoryNodesOf(node) : std::vector<unsigned>{node},
        root));
  if (root.empty())
    add(readAddressSpace());
  return limits;
}
