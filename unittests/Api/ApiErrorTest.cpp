//===- ApiErrorTest.cpp - What a client is told of a failure --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ApiError.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

TEST(ApiError, HasTheShapeOfOpenAI) {
  EXPECT_EQ(ApiError::ofField("n", "n is 0").toJson().dump(),
            R"({"error":{"message":"n is 0","type":"invalid_request_error",)"
            R"("param":"n","code":null}})");
  EXPECT_EQ(ApiError::contextLength("too long").toJson().dump(),
            R"({"error":{"message":"too long","type":"invalid_request_error",)"
            R"("param":null,"code":"context_length_exceeded"}})");
}

TEST(ApiError, HasStatusAndCodeThatClientsKnow) {
  const auto expect = [](const ApiError &error, unsigned status,
                         const std::string &type, const char *code,
                         const char *param = nullptr) {
    EXPECT_EQ(error.status, status);
    EXPECT_EQ(error.type, type);
    EXPECT_EQ(error.code.value_or("none"), code);
    EXPECT_EQ(error.param.value_or("none"), param ? param : "none");
  };
  expect(ApiError::invalidKey(), 401, "invalid_request_error",
         "invalid_api_key");
  expect(ApiError::unknownPath("/x"), 404, "invalid_request_error",
         "unknown_url");
  expect(ApiError::unknownModel("x"), 404, "invalid_request_error",
         "model_not_found", "model");
  expect(ApiError::tooManyInputs("x", 2, 1), 400, "invalid_request_error",
         "too_many_inputs", "x");
  expect(ApiError::emptyInput("x"), 400, "invalid_request_error", "empty_input",
         "x");
  expect(ApiError::unknownMethod("PUT", "POST"), 405, "invalid_request_error",
         "method_not_allowed");
  expect(ApiError::overloaded("x", 3), 429, "rate_limit_error",
         "rate_limit_exceeded");
  expect(ApiError::unavailable("x"), 503, "server_error", "unavailable");
  expect(ApiError::ofStatus(415, "x"), 415, "invalid_request_error", "none");
  expect(ApiError::ofStatus(500, "x"), 500, "server_error", "none");
  expect(ApiError::ofStatus(503, "x"), 503, "server_error", "unavailable");
}

TEST(ApiError, SaysWhenToTryAgainWhatPasses) {
  EXPECT_EQ(ApiError::overloaded("x", 3).retryAfter, 3u);
  EXPECT_TRUE(ApiError::unavailable("x").retryAfter);
  EXPECT_FALSE(ApiError::ofField("n", "x").retryAfter);
}

TEST(ApiError, TellsErrorsOfTheService) {
  const auto statusOf = [](ErrorKind kind) {
    return ApiError::of(makeError(kind, "why"), 7).status;
  };
  EXPECT_EQ(statusOf(ErrorKind::InvalidArgument), 400u);
  EXPECT_EQ(statusOf(ErrorKind::CacheFull), 400u);
  EXPECT_EQ(statusOf(ErrorKind::ContextExceeded), 400u);
  EXPECT_EQ(statusOf(ErrorKind::Overloaded), 429u);
  EXPECT_EQ(statusOf(ErrorKind::DeadlineExceeded), 504u);
  EXPECT_EQ(statusOf(ErrorKind::Cancelled), 503u);
  EXPECT_EQ(statusOf(ErrorKind::Unavailable), 503u);
  EXPECT_EQ(statusOf(ErrorKind::Internal), 500u);
  EXPECT_EQ(statusOf(ErrorKind::Unclassified), 500u);
  const ApiError error =
      ApiError::of(makeError(ErrorKind::Overloaded, "why"), 7);
  EXPECT_EQ(error.message, "why");
  EXPECT_EQ(error.retryAfter, 7u);
}

} // namespace
