//===- ChildProcesses.h - What a test has started ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CHILDPROCESSES_H
#define SANDWICH_UNITTESTS_CHILDPROCESSES_H

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace sandwich::test {

/// The processes that threads of this one have started.
inline std::vector<pid_t> childProcesses() {
  std::vector<pid_t> children;
  for (const auto &thread :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;)
      children.push_back(child);
  }
  return children;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CHILDPROCESSES_H
