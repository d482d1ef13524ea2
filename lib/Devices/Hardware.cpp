//===- Hardware.cpp - Accelerators that are there -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Hardware.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

using namespace sandwich;

namespace {
struct Driver {
  const char *kind;
  /// Below /dev, and what names of files there begin with; a number follows.
  const char *folder;
  std::string_view prefix;
};
} // namespace

static constexpr Driver drivers[] = {
    {"NVIDIA GPU", "", "nvidia"},
    {"Ascend NPU", "", "davinci"},
    {"accelerator", "accel", "accel"},
};

static bool isNumbered(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::ranges::all_of(name.substr(prefix.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<FoundAccelerator>
sandwich::findAccelerators(const std::string &root) {
  std::vector<FoundAccelerator> found;
  for (const Driver &driver : drivers) {
    const std::filesystem::path folder =
        std::filesystem::path(root + "/dev") / driver.folder;
    std::error_code failure;
    std::vector<std::string> paths;
    std::filesystem::directory_iterator files(folder, failure), end;
    for (; !failure && files != end; files.increment(failure))
      if (isNumbered(files->path().filename().string(), driver.prefix))
        paths.push_back(files->path().string());
    // Shorter names have smaller numbers.
    std::ranges::sort(paths, [](const std::string &a, const std::string &b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    for (std::string &path : paths)
      found.push_back({driver.kind, std::move(path)});
  }
  return found;
}
