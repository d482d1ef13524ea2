//===- ApiError.h - What a client is told of a failure ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Errors of requests, without a word of HTTP but for its status.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_APIERROR_H
#define SANDWICH_API_APIERROR_H

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <optional>
#include <string>

namespace sandwich {

/// An error in the shape that OpenAI's clients turn into their exceptions.
struct ApiError {
  /// Of HTTP.
  unsigned status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  /// The field of the request that is at fault: "messages[0].role".
  std::optional<std::string> param = {};
  std::optional<std::string> code = {};
  /// Seconds after which it may be worth another try.
  std::optional<unsigned> retryAfter = {};

  /// A field of a request that is wrong.
  static ApiError ofField(std::string param, std::string message);
  static ApiError contextLength(std::string message);
  /// A list of a request with `count` entries, where `most` are allowed.
  static ApiError tooManyInputs(std::string param, size_t count, size_t most);
  /// A text or a list that has nothing to be computed.
  static ApiError emptyInput(std::string param);
  static ApiError invalidKey();
  static ApiError unknownHost(const std::string &host);
  static ApiError unknownPath(const std::string &path);
  static ApiError unknownModel(const std::string &model);
  static ApiError unknownMethod(const std::string &method,
                                const std::string &allowed);
  static ApiError overloaded(std::string message, unsigned retryAfter);
  static ApiError unavailable(std::string message);
  /// Of a status that HTTP gives a meaning.
  static ApiError ofStatus(unsigned status, std::string message);
  /// What the service says; `retryAfter` is for what passes.
  static ApiError of(const Error &error, unsigned retryAfter);

  /// {"error": {"message", "type", "param", "code"}}
  Json toJson() const;
};

} // namespace sandwich

#endif // SANDWICH_API_APIERROR_H
