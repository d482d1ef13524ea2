//===- ServerSentEvents.h - Reading event streams ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_HTTP_SERVERSENTEVENTS_H
#define SANDWICH_HTTP_SERVERSENTEVENTS_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace sandwich {

/// Both parts live as long as the call that tells of it.
struct ServerSentEvent {
  /// Of the field `event`; empty: there was none.
  std::string_view type;
  /// The lines of the fields `data`, with a line feed between them.
  std::string_view data;
};

/// Reads a body of type text/event-stream (HTML standard, section 9.2.6) in
/// pieces that end anywhere. Fields other than `event` and `data`, and
/// comments, are skipped; what follows the last empty line is no event.
class ServerSentEvents {
public:
  /// An event, and a line of it, has so many bytes at most.
  explicit ServerSentEvents(size_t mostBytes = size_t{1} << 20)
      : mostBytes(mostBytes) {}

  using Callback = std::function<void(const ServerSentEvent &)>;

  /// Calls `onEvent` for each event that `piece` completes. Error: one is too
  /// large; nothing more is to be read then.
  Status read(std::string_view piece, const Callback &onEvent);

private:
  Status readLine(std::string_view line, const Callback &onEvent);
  Status addData(std::string_view value);
  Status tooLarge() const;

  const size_t mostBytes;
  /// A line that is not complete.
  std::string partial;
  std::string type;
  std::string data;
  bool hasData = false;
  /// A line feed that comes next belongs to the line before.
  bool afterReturn = false;
  /// Bytes of a byte order mark that were there; all three: it is over.
  size_t markBytes = 0;
};

} // namespace sandwich

#endif // SANDWICH_HTTP_SERVERSENTEVENTS_H
