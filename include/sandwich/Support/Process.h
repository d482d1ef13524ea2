//===- Process.h - Streams, signals and threads -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_PROCESS_H
#define SANDWICH_SUPPORT_PROCESS_H

#include "sandwich/Support/Result.h"

#include <functional>
#include <signal.h>
#include <string>
#include <string_view>
#include <thread>

namespace sandwich {

/// What a tool's `main` does first. Takes the numbers of those of standard
/// input, output and error that are closed: the first files opened would
/// otherwise get them, and what is meant for a person. Reading and writing them
/// fails as before, but for what is written to standard error. A reader that
/// goes away, or a file that grows too large, is a failed write from here on
/// and no signal. Libraries stay quiet, so that each line of standard error is
/// ours.
void prepareStandardStreams();

/// Writes all of `text` to standard output. A reader that went away is no
/// error: nothing more is written, and `outputClosed` tells.
Status writeStandardOutput(std::string_view text);

/// What a tool does last: whether standard output has taken everything, which
/// some filesystems tell only when a file is closed.
Status finishStandardOutput();

/// Whether the reader of standard output went away.
bool outputClosed();

/// From now on SIGINT, SIGTERM and SIGHUP only make `interrupted` true; a
/// second one, the same or another, ends the process.
void catchInterrupts();

/// As `catchInterrupts`, for a tool that cannot look at `interrupted` all the
/// time. Where it has not ended half a second after the first signal, and at
/// the second signal, `exitInterrupted` ends it, wherever it is.
void exitSoonWhenInterrupted();

/// From now on an interrupted process says `message` after "error: ", and
/// before it writes `output` to standard output. Both are kept as long as the
/// process lives.
void sayWhenInterrupted(const std::string &message,
                        const std::string &output = {});

/// The message of `sayWhenInterrupted`.
const char *interruptedMessage();

/// Ends the process by `exitWithError` with what `sayWhenInterrupted` was given
/// last. May be called in a signal handler.
[[noreturn]] void exitInterrupted();

/// Whether somebody asked the process to stop.
bool interrupted();

/// Blocks the signals of the calling thread and of those that it starts, and
/// returns which were blocked before. For our own threads: signals are for the
/// program's. Faults stay as they are, as one that is blocked would end the
/// process whatever its handler is.
sigset_t blockSignals();

/// A thread of our own, whose signals are blocked, that calls `run`. Error: the
/// system grants none for `purpose`.
Result<std::thread> startThread(std::string_view purpose,
                                std::function<void()> run);

/// Closes all that is open but standard input, output and error and `kept`,
/// which is none of them. For a child between `fork` and `exec`: it is safe
/// while other threads of the parent held locks. Returns false where the system
/// offers no way to do it; some may be closed then.
bool closeDescriptorsExcept(int kept);

/// Runs `work`, and tells `fail` what it threw: "cannot PURPOSE: REASON", which
/// takes no memory, as there may be none. For threads, as nobody catches what
/// they throw.
void runCatching(const char *purpose, const std::function<void()> &work,
                 const std::function<void(const char *reason)> &fail);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_PROCESS_H
