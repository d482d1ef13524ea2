//===- SystemCallFilter.h - Systems that refuse some calls ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SUPPORT_SYSTEMCALLFILTER_H
#define SANDWICH_UNITTESTS_SUPPORT_SYSTEMCALLFILTER_H

#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <span>
#include <sys/prctl.h>

namespace sandwich {

/// Whether the system has filters: it tells the address, and no number, to be
/// wrong.
inline bool canFilterSystemCalls() {
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) != 0 &&
         errno == EFAULT;
}

/// From here on `rules` decide about each system call of this process. Whether
/// that can be had.
inline bool filterSystemCalls(std::span<sock_filter> rules) {
  const sock_fprog program = {static_cast<unsigned short>(rules.size()),
                              rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_SUPPORT_SYSTEMCALLFILTER_H
