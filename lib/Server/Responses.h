//===- Responses.h - Answers that are complete ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_RESPONSES_H
#define SANDWICH_LIB_SERVER_RESPONSES_H

#include "sandwich/Api/ApiError.h"
#include "sandwich/Http/HttpServer.h"
#include "sandwich/Support/Json.h"

namespace sandwich {

HttpResponse toResponse(const Json &json, unsigned status = 200);
HttpResponse toResponse(const ApiError &error);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_RESPONSES_H
