//===- HttpMessageTest.cpp - What clients and servers say -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Http/HttpMessage.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

TEST(DecodePercents, GivesTheBytesMeant) {
  EXPECT_EQ(decodePercents(""), "");
  EXPECT_EQ(decodePercents("llama-1.3b"), "llama-1.3b");
  EXPECT_EQ(decodePercents("meta%2Fllama%2f3+%20%25"), "meta/llama/3+ %");
  EXPECT_EQ(decodePercents("%00%ff"), std::string("\0\xFF", 2));
}

TEST(DecodePercents, TakesNothingElse) {
  for (const char *text : {"%", "%2", "a%2", "%zz", "%2z", "%-1", "%+1", "% 1"})
    EXPECT_EQ(decodePercents(text), std::nullopt) << text;
}

} // namespace
