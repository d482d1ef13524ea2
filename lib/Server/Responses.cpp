//===- Responses.cpp - Answers that are complete --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Responses.h"

using namespace sandwich;

HttpResponse sandwich::toResponse(const Json &json, unsigned status) {
  return {.status = status,
          .body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpResponse sandwich::toResponse(const ApiError &error) {
  HttpResponse response = toResponse(error.toJson(), error.status);
  if (error.retryAfter)
    response.headers.emplace_back("Retry-After",
                                  std::to_string(*error.retryAfter));
  if (error.status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}
