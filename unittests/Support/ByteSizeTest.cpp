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

TEST(ByteSizeTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(sandwich::parseBytes("0"), 0u);
  EXPECT_EQ(sandwich::parseBytes("4096"), 4096u);
  EXPECT_EQ(sandwich::parseBytes("17B"), 17u);
  EXPECT_EQ(sandwich::parseBytes("3KiB"), 3072u);
  EXPECT_EQ(sandwich::parseBytes("1.5 MiB"), 1572864u);
  EXPECT_EQ(sandwich::parseBytes("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(sandwich::parseBytes("0.3B"), 0u);
  EXPECT_EQ(sandwich::parseBytes("16777215TiB"), uint64_t{16777215} << 40);
  for (const char *wrong : {"",
                            " ",
                            "GiB",
                            "-1",
                            "+1",
                            "1.",
                            "1.e5",
                            "1.-5",
                            ".5GiB",
                            "2G",
                            "2GB",
                            "2gib",
                            "2  GiB",
                            "2GiB ",
                            "2 ",
                            "0x10",
                            "1e9",
                            "16777216TiB",
                            "18446744073709551616",
                            "nan",
                            "inf"})
    EXPECT_EQ(sandwich::parseBytes(wrong), std::nullopt) << wrong;
}
