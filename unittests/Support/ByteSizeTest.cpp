//===- ByteSizeTest.cpp - Sizes for people -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ByteSize.h"

#include <gtest/gtest.h>

using sandwich::formatBytes;

TEST(ByteSizeTest, HasFourDigitsAndAUnit) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1024), "1 KiB");
  EXPECT_EQ(formatBytes(uint64_t{32} << 20), "32 MiB");
  EXPECT_EQ(formatBytes(1500000), "1.431 MiB");
  EXPECT_EQ(formatBytes(uint64_t{3} << 50), "3072 TiB");
}
