//===- MemoryFile.cpp - Files in memory -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/MemoryFile.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace sandwich;

int sandwich::createMemoryFile(const char *name) {
  // Linux has it from 6.3 on, and the sysctl vm.memfd_noexec may demand it.
  // Pages of such a file may be mapped as code all the same: it is exec that
  // needs permission. Not all C libraries name it.
  constexpr unsigned noExecSeal = 8; // MFD_NOEXEC_SEAL
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int file = ::memfd_create(name, flags | noExecSeal);
  if (file >= 0 || errno != EINVAL)
    return file;
  return ::memfd_create(name, flags);
}

Status sandwich::fillAndSeal(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError("copy");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (::fcntl(file, F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return systemError("copy");
  return {};
}
