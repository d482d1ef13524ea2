//===- ApiError.cpp - What a client is told of a failure ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ApiError.h"

using namespace sandwich;

ApiError ApiError::ofField(std::string param, std::string message) {
  return {.message = std::move(message), .param = std::move(param)};
}

ApiError ApiError::contextLength(std::string message) {
  return {.message = std::move(message), .code = "context_length_exceeded"};
}

ApiError ApiError::tooManyInputs(std::string param, size_t count, size_t most) {
  ApiError error = ofField(param, param + " has " + std::to_string(count) +
                                      " entries; it must have at most " +
                                      std::to_string(most));
  error.code = "too_many_inputs";
  return error;
}

ApiError ApiError::emptyInput(std::string param) {
  ApiError error = ofField(param, param + " is empty");
  error.code = "empty_input";
  return error;
}

ApiError ApiError::invalidKey() {
  return {.status = 401,
          .message = "this server needs an API key, as 'Authorization: Bearer "
                     "KEY', and the request has none that it knows",
          .code = "invalid_api_key"};
}

ApiError ApiError::unknownHost(const std::string &host) {
  return {.status = 403,
          .message = "this server is asked as 'localhost' or by an address, "
                     "and the request is for '" +
                     host + "'; --allowed-host allows other names",
          .type = "permission_error",
          .code = "unknown_host"};
}

ApiError ApiError::unknownPath(const std::string &path) {
  return {.status = 404,
          .message = "there is no '" + path +
                     "' here; see /v1/models, "
                     "/v1/completions, /v1/chat/completions, /tokenize, "
                     "/detokenize, /health, /ready, /status, /metrics and "
                     "/version",
          .code = "unknown_url"};
}

ApiError ApiError::unknownModel(const std::string &model) {
  return {.status = 404,
          .message = "the model '" + model +
                     "' is not served here; /v1/models lists those that are",
          .param = "model",
          .code = "model_not_found"};
}

ApiError ApiError::unknownMethod(const std::string &method,
                                 const std::string &allowed) {
  return {.status = 405,
          .message = method + " is not for this path, which takes " + allowed,
          .code = "method_not_allowed"};
}

ApiError ApiError::overloaded(std::string message, unsigned retryAfter) {
  return {.status = 429,
          .message = std::move(message),
          .type = "rate_limit_error",
          .code = "rate_limit_exceeded",
          .retryAfter = retryAfter};
}

ApiError ApiError::unavailable(std::string message) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .code = "unavailable",
          .retryAfter = 1};
}

ApiError ApiError::ofStatus(unsigned status, std::string message) {
  if (status == 503)
    return unavailable(std::move(message));
  ApiError error{.status = status, .message = std::move(message)};
  if (status >= 500)
    error.type = "server_error";
  return error;
}

ApiError ApiError::of(const Error &error, unsigned retryAfter) {
  switch (error.kind) {
  case ErrorKind::InvalidArgument:
  case ErrorKind::CacheFull:
    return {.message = error.message};
  case ErrorKind::ContextExceeded:
    return contextLength(error.message);
  case ErrorKind::Overloaded:
    return overloaded(error.message, retryAfter);
  case ErrorKind::DeadlineExceeded:
    return {.status = 504,
            .message = error.message,
            .type = "server_error",
            .code = "deadline_exceeded"};
  case ErrorKind::Cancelled:
  case ErrorKind::Unavailable:
    return unavailable(error.message);
  case ErrorKind::Internal:
  case ErrorKind::Unclassified:
    break;
  }
  return {.status = 500, .message = error.message, .type = "server_error"};
}

Json ApiError::toJson() const {
  auto orNull = [](const std::optional<std::string> &text) {
    return text ? Json(*text) : Json();
  };
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", orNull(param)},
            {"code", orNull(code)}}}};
}
