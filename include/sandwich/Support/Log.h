//===- Log.h - What the runtime tells its user ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_LOG_H
#define SANDWICH_SUPPORT_LOG_H

#include <functional>
#include <string>

namespace sandwich {

enum class LogLevel { Information, Warning };

/// Receives one line without its end. May be empty.
using LogCallback =
    std::function<void(LogLevel level, const std::string &message)>;

/// Sends `message` to `log`, if there is one.
inline void report(const LogCallback &log, LogLevel level,
                   const std::string &message) {
  if (log)
    log(level, message);
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_LOG_H
