//===- Cgroup.h - The control groups of this process ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where the files of this process's cgroups are, for the limits that they set.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_MACHINE_PROCESS_CGROUP_H
#define SANDWICH_LIB_MACHINE_PROCESS_CGROUP_H

#include <string>
#include <vector>

namespace sandwich {

/// The folder of a cgroup that this process is in.
struct CgroupFolder {
  /// Whether it is of cgroup v2.
  bool unified = false;
  std::string path;
};

/// The folders of this process's cgroup and of the visible ones above it, under
/// cgroup v2 and in the v1 hierarchy of `controller` ("cpu", "memory"). Not all
/// need exist. Paths are looked up under `root`, which is "" but in tests.
std::vector<CgroupFolder> cgroupFolders(const std::string &root,
                                        const char *controller);

/// The parts of `text` between `separator`s.
std::vector<std::string> splitText(const std::string &text, char separator);

/// The first line of a file, or nothing of one that cannot be read.
std::string readFirstLine(const std::string &path);

} // namespace sandwich

#endif // SANDWICH_LIB_MACHINE_PROCESS_CGROUP_H
