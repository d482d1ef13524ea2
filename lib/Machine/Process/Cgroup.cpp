//===- Cgroup.cpp - The control groups of this process --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

using namespace sandwich;

namespace {

/// One mounted cgroup hierarchy.
struct CgroupMount {
  bool unified = false;
  /// The cgroup that is visible as `mountPoint`.
  std::string root;
  std::string mountPoint;
};

} // namespace

std::vector<std::string> sandwich::splitText(const std::string &text,
                                             char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static bool contains(const std::string &commaList, const char *item) {
  std::vector<std::string> items = splitText(commaList, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

/// The hierarchies of `controller` in `/proc/self/mountinfo`, whose lines read
/// `id parent dev root mountpoint options [tags...] - type source options`.
static std::vector<CgroupMount> readMounts(const std::string &root,
                                           const char *controller) {
  std::vector<CgroupMount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields = splitText(line, ' ');
    auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4)
      continue;
    const std::string &type = dash[1];
    if (type == "cgroup2")
      mounts.push_back({true, fields[3], fields[4]});
    else if (type == "cgroup" && contains(dash[3], controller))
      mounts.push_back({false, fields[3], fields[4]});
  }
  return mounts;
}

/// This process's cgroup in the unified or the v1 hierarchy of `controller`,
/// from `/proc/self/cgroup`, whose lines read `id:controllers:path`.
static std::string readOwnCgroup(const std::string &root, bool unified,
                                 const char *controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':');
    size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : contains(controllers, controller))
      return line.substr(second + 1);
  }
  return "/";
}

std::string sandwich::readFirstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<CgroupFolder> sandwich::cgroupFolders(const std::string &root,
                                                  const char *controller) {
  std::vector<CgroupFolder> folders;
  for (const CgroupMount &mount : readMounts(root, controller)) {
    // The path is relative to the hierarchy, of which the mount may show only
    // the part below `mount.root`; a container often sees its own cgroup as
    // the mount point itself.
    std::string path = readOwnCgroup(root, mount.unified, controller);
    if (mount.root != "/" && path.rfind(mount.root, 0) == 0)
      path = path.substr(mount.root.size());
    else if (mount.root != "/" || path.find("..") != std::string::npos)
      path.clear();
    std::string mountPoint = root + mount.mountPoint;
    while (true) {
      while (!path.empty() && path.back() == '/')
        path.pop_back();
      folders.push_back({mount.unified, mountPoint + path});
      if (path.empty())
        break;
      path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return folders;
}
