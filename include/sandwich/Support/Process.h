//===- Process.h - Streams and signals of a tool ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_PROCESS_H
#define SANDWICH_SUPPORT_PROCESS_H

#include "sandwich/Support/Result.h"

#include <string_view>

namespace sandwich {

/// What a tool's `main` does first. Opens /dev/null for those of standard
/// input, output and error that are closed: the first files opened would
/// otherwise take their numbers, and get what is meant for a person. A reader
/// that goes away, or a file that grows too large, is a failed write from here
/// on and no signal. Libraries stay quiet, so that each line of standard error
/// is ours.
void prepareStandardStreams();

/// Writes all of `text` to standard output. A reader that went away is no
/// error: nothing more is written, and `outputClosed` tells.
Status writeStandardOutput(std::string_view text);

/// Whether the reader of standard output went away.
bool outputClosed();

/// From now on SIGINT and SIGTERM only make `interrupted` true; the second one
/// ends the process.
void catchInterrupts();

/// As `catchInterrupts`, for a tool that cannot look at `interrupted` all the
/// time. Where it has not ended half a second after the first signal, and at
/// the second signal, `exitWithError` ends it with the text of
/// `sayWhenInterrupted`.
void exitSoonWhenInterrupted();

/// What an interrupted tool says after "error: "; the text must live as long
/// as the process.
void sayWhenInterrupted(const char *text);

/// The text of `sayWhenInterrupted`.
const char *interruptedMessage();

/// Whether somebody asked the process to stop.
bool interrupted();

} // namespace sandwich

#endif // SANDWICH_SUPPORT_PROCESS_H
