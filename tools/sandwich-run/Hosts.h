//===- Hosts.h - Running on several hosts -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_HOSTS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_HOSTS_H

#include "Arguments.h"

#include <functional>

namespace sandwich::tool {

/// Calls `run`. With `--mpi`, that happens on the first host only, which tells
/// what is wrong on any of them; the others run what it asks for and end
/// silently. Error: this program was built without MPI.
Status runOnHosts(EngineArguments &arguments, const std::string &artifact,
                  const std::function<Status()> &run);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_HOSTS_H
