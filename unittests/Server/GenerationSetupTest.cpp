//===- GenerationSetupTest.cpp - From requests to what is generated -------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenerationSetup.h"
#include "LoadedModel.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

std::optional<uint64_t> choose(uint64_t promptTokens,
                               std::optional<uint64_t> wanted,
                               std::optional<uint64_t> usual = {}) {
  LoadedModel model;
  model.contextLength = 100;
  auto chosen = chooseMaxTokens(model, promptTokens, wanted, usual);
  if (const auto *tokens = std::get_if<uint64_t>(&chosen))
    return *tokens;
  const auto &error = std::get<ApiError>(chosen);
  EXPECT_EQ(error.status, 400u);
  EXPECT_EQ(error.code, "context_length_exceeded");
  // Both numbers.
  EXPECT_NE(error.message.find(std::to_string(promptTokens)), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("100"), std::string::npos) << error.message;
  return std::nullopt;
}

TEST(ChooseMaxTokens, TakesWhatIsAskedForOrRefuses) {
  EXPECT_EQ(choose(90, 10), 10u);
  EXPECT_EQ(choose(1, 99), 99u);
  EXPECT_EQ(choose(99, 1), 1u);
  EXPECT_EQ(choose(90, 11), std::nullopt);
  EXPECT_EQ(choose(1, uint64_t{1} << 40), std::nullopt);
}

TEST(ChooseMaxTokens, TakesWhatThereIsRoomForOtherwise) {
  EXPECT_EQ(choose(90, {}), 10u);
  EXPECT_EQ(choose(90, {}, 16), 10u);
  EXPECT_EQ(choose(10, {}, 16), 16u);
}

TEST(ChooseMaxTokens, NeedsRoomForATokenWhereOneIsMade) {
  EXPECT_EQ(choose(100, {}), std::nullopt);
  EXPECT_EQ(choose(100, 1), std::nullopt);
  EXPECT_EQ(choose(100, 0), 0u);
  EXPECT_EQ(choose(101, 0), std::nullopt);
  EXPECT_EQ(choose(101, {}), std::nullopt);
}

} // namespace
