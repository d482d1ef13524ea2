//===- Report.h - A line for the user ---------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_REPORT_H
#define SANDWICH_LIB_RUNTIME_REPORT_H

#include "sandwich/Runtime/Log.h"

namespace sandwich {

/// Tells `log` one line, if there is one to tell.
inline void report(const LogCallback &log, LogLevel level,
                   const std::string &message) {
  if (log)
    log(level, message);
}

} // namespace sandwich

#endif // SANDWICH_LIB_RUNTIME_REPORT_H
