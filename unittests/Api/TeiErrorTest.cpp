//===- TeiErrorTest.cpp - Errors of text-embeddings-inference -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/TeiError.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

TEST(TeiError, HasItsShape) {
  EXPECT_EQ(
      TeiError::of(ApiError::ofField("inputs", "inputs is 5")).toJson().dump(),
      R"({"error":"inputs is 5","error_type":"Validation"})");
}

TEST(TeiError, HasStatusAndTypeThatClientsKnow) {
  const auto expect = [](const ApiError &error, unsigned status,
                         const std::string &type) {
    const TeiError answer = TeiError::of(error);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.type, type);
    EXPECT_EQ(answer.message, error.message);
    EXPECT_EQ(answer.retryAfter, error.retryAfter);
  };
  expect(ApiError{.message = "the request's body is no JSON"}, 400,
         "Validation");
  expect(ApiError::contextLength("inputs has 9 tokens"), 400, "Validation");
  expect(ApiError::tooManyInputs("inputs", 5, 4), 413, "Validation");
  expect(ApiError::emptyInput("inputs"), 400, "Empty");
  expect(ApiError::invalidKey(), 401, "Validation");
  expect(ApiError::unknownModel("m"), 404, "Validation");
  expect(ApiError::overloaded("x", 3), 429, "Overloaded");
  expect(ApiError::unavailable("x"), 503, "Unhealthy");
  expect(ApiError::of(makeError(ErrorKind::Internal, "x"), 1), 424, "Backend");
  expect(ApiError::of(makeError(ErrorKind::DeadlineExceeded, "x"), 1), 504,
         "Backend");
}

} // namespace
