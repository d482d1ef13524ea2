//===- HttpMessage.h - What clients and servers say -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_HTTP_HTTPMESSAGE_H
#define SANDWICH_HTTP_HTTPMESSAGE_H

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich {

/// Names are compared without regard to case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header of this name; nothing: there is none.
std::optional<std::string_view> findHeader(const HttpHeaders &headers,
                                           std::string_view name);

/// `text`, a part of a path, with the bytes that its "%2F" and such stand for;
/// nothing: one of them stands for nothing.
std::optional<std::string> decodePercents(std::string_view text);

struct HttpRequest {
  /// In upper case. A server is told of HEAD as GET, and its answer's body is
  /// not sent.
  std::string method = {};
  /// The target up to its query, as the client wrote it.
  std::string path = {};
  /// What follows the question mark.
  std::string query = {};
  HttpHeaders headers = {};
  std::string body = {};
  /// A server is told whether the client is on its own machine: the connection
  /// is one of TCP to a loopback address.
  bool isFromLoopback = false;

  /// The first header of this name; nothing: there is none.
  std::optional<std::string_view> header(std::string_view name) const {
    return findHeader(headers, name);
  }
};

struct HttpResponse {
  unsigned status = 200;
  std::string contentType = "application/json";
  std::string body = {};
  HttpHeaders headers = {};
};

} // namespace sandwich

#endif // SANDWICH_HTTP_HTTPMESSAGE_H
