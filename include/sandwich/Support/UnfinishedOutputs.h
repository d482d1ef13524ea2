//===- UnfinishedOutputs.h - What ends with the process ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A process may have to end where no destructor can run: in a signal handler,
/// or when an allocation fails deep inside a library without exceptions. What
/// it has begun to write is listed here, so that it is removed all the same.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_UNFINISHEDOUTPUTS_H
#define SANDWICH_SUPPORT_UNFINISHEDOUTPUTS_H

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sandwich {

/// Lists a file or folder until it is destroyed, which removes nothing. Listed
/// are at most `most` at a time, by paths shorter than PATH_MAX; any other
/// silently is not, and stays where the process ends early.
class UnfinishedOutput {
public:
  static constexpr int most = 64;

  /// Lists nothing.
  UnfinishedOutput() = default;
  /// Lists `path`, which must be nobody else's.
  explicit UnfinishedOutput(const std::string &path);
  /// Calls `make`, and lists `path` if it returns that it made it: what is
  /// there already may be another process's. The thread handles no signal in
  /// between.
  static UnfinishedOutput listWhenMade(const std::string &path,
                                       const std::function<bool()> &make);
  UnfinishedOutput(UnfinishedOutput &&other) noexcept;
  UnfinishedOutput &operator=(UnfinishedOutput &&other) noexcept;
  ~UnfinishedOutput();

private:
  int slot = -1;
};

/// Removes all that this process has listed, folders with what is in them,
/// writes `output` to standard output, and exits with status 1 after the line
/// "error: ", `message`; where standard output does not take `output`, the line
/// says that instead. Allocates nothing and takes no lock, so that it may be
/// called in a signal handler, on any thread, and where there is no memory.
/// Only what other threads make meanwhile may stay.
[[noreturn]] void exitWithError(std::initializer_list<std::string_view> message,
                                std::string_view output = {});

/// From now on, memory that operator new cannot get, and an exception that
/// nobody catches, end the process by `exitWithError`. So does a stack that
/// cannot grow, but only on x86-64, and only that of the calling thread: a
/// handler needs a stack of its own, which each thread has to provide.
/// Elsewhere it stays a signal, SIGSEGV.
void exitWhenOutOfMemory();

/// `exitWithError` for a process that could get no more memory.
[[noreturn]] void exitOutOfMemory();

} // namespace sandwich

#endif // SANDWICH_SUPPORT_UNFINISHEDOUTPUTS_H
