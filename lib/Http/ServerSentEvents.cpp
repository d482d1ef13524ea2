//===- ServerSentEvents.cpp - Reading event streams -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/ServerSentEvents.h"

#include <cstring>
#include <utility>

using namespace sandwich;

static constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";

/// The length of the line that `text` begins with, without its end; npos: it
/// has no end. Lines are long, and almost all end with a line feed, so that
/// two searches at the processor's pace are fastest.
static size_t findLineEnd(std::string_view text) {
  const void *feed = std::memchr(text.data(), '\n', text.size());
  const size_t within =
      feed ? static_cast<size_t>(static_cast<const char *>(feed) - text.data())
           : text.size();
  if (const void *carriage = std::memchr(text.data(), '\r', within))
    return static_cast<size_t>(static_cast<const char *>(carriage) -
                               text.data());
  return feed ? within : std::string_view::npos;
}

Status ServerSentEvents::tooLarge() const {
  return makeError("an event of the stream has more than ", mostBytes,
                   " bytes");
}

Status ServerSentEvents::addData(std::string_view value) {
  if (value.size() + hasData > mostBytes - data.size())
    return tooLarge();
  if (std::exchange(hasData, true))
    data += '\n';
  data += value;
  return {};
}

Status ServerSentEvents::readLine(std::string_view line,
                                  const Callback &onEvent) {
  if (line.empty()) {
    if (std::exchange(hasData, false))
      onEvent({type, data});
    data.clear();
    type.clear();
    return {};
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos
                               ? std::string_view()
                               : line.substr(colon + 1);
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (field == "data")
    return addData(value);
  if (field == "event")
    type = value;
  return {};
}

Status ServerSentEvents::read(std::string_view piece, const Callback &onEvent) {
  // The mark may come in pieces as well. What only begins like it is text.
  while (markBytes < byteOrderMark.size() && !piece.empty()) {
    if (piece.front() != byteOrderMark[markBytes]) {
      partial = byteOrderMark.substr(0, markBytes);
      markBytes = byteOrderMark.size();
      break;
    }
    ++markBytes;
    piece.remove_prefix(1);
  }
  while (!piece.empty()) {
    if (std::exchange(afterReturn, false) && piece.front() == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const size_t end = findLineEnd(piece);
    const std::string_view part = piece.substr(0, end);
    if (part.size() > mostBytes - partial.size())
      return tooLarge();
    if (end == std::string_view::npos) {
      partial += part;
      return {};
    }
    afterReturn = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    if (partial.empty()) {
      SANDWICH_RETURN_IF_ERROR(readLine(part, onEvent));
      continue;
    }
    partial += part;
    SANDWICH_RETURN_IF_ERROR(readLine(partial, onEvent));
    partial.clear();
  }
  return {};
}
