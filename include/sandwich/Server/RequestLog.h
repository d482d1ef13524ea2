//===- RequestLog.h - A line for each request -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_REQUESTLOG_H
#define SANDWICH_SERVER_REQUESTLOG_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sandwich {

/// What is known of a request when it is over. Of its text only what the
/// operator has asked for.
struct RequestRecord {
  std::string id;
  /// Of the API: "/v1/completions".
  std::string path;
  std::string model;
  /// The status of a request whose client left before its end.
  static constexpr unsigned clientLeft = 499;

  /// Of HTTP, or `clientLeft`.
  unsigned status = 200;
  /// "stop", "length", "tool_calls"; of several texts, the last one's.
  std::string finish;
  std::string error;
  uint64_t promptTokens = 0;
  uint64_t cachedTokens = 0;
  uint64_t generatedTokens = 0;
  uint64_t preemptions = 0;
  /// In seconds; nothing for what was not reached. TTFT counts from when the
  /// request had been received, TPOT is the mean of all tokens but the first.
  std::optional<double> queueSeconds = {};
  std::optional<double> ttft = {};
  std::optional<double> tpot = {};
  double seconds = 0;
  std::optional<std::string> prompt = {};
};

enum class LogFormat { Text, Json };

/// The record as a line without its end.
std::string formatRecord(const RequestRecord &record, LogFormat format,
                         double unixSeconds);

/// Where the lines go. A file system that is full takes no lines and no
/// request: what could not be written is counted, and told once it can be.
class RequestLog {
public:
  /// `path` empty: standard error. Errors: a file that cannot be opened.
  static Result<std::unique_ptr<RequestLog>> open(const std::string &path,
                                                  LogFormat format);
  ~RequestLog();
  RequestLog(const RequestLog &) = delete;
  RequestLog &operator=(const RequestLog &) = delete;

  /// Writes later, on a thread of its own.
  void add(RequestRecord record);
  /// Lines that were lost so far.
  uint64_t lost() const;
  /// Returns when all is written, or cannot be.
  void flush();

private:
  class Writer;
  explicit RequestLog(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer;
};

} // namespace sandwich

#endif // SANDWICH_SERVER_REQUESTLOG_H
