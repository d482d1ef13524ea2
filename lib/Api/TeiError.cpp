//===- TeiError.cpp - Errors of text-embeddings-inference -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/TeiError.h"

using namespace sandwich;

TeiError TeiError::of(const ApiError &error) {
  TeiError answer{error.status, error.message, "Validation", error.retryAfter};
  if (error.status == 429) {
    answer.type = "Overloaded";
  } else if (error.status == 503) {
    answer.type = "Unhealthy";
  } else if (error.status >= 500) {
    answer.type = "Backend";
    if (error.status == 500)
      answer.status = 424;
  } else if (error.code == "empty_input") {
    answer.type = "Empty";
  } else if (error.code == "too_many_inputs") {
    answer.status = 413;
  }
  return answer;
}

Json TeiError::toJson() const {
  return {{"error", message}, {"error_type", type}};
}
