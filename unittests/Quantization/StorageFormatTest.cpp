//===- StorageFormatTest.cpp - Names and sizes of formats -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/StorageFormat.h"

#include "gtest/gtest.h"

#include <utility>

using namespace sandwich;

namespace {

TEST(StorageFormat, NamesAreReadBack) {
  for (const char *name :
       {"f32", "bf16", "int8-row-f32", "int8-g32-f16", "int4-g128-f16",
        "int4-g32-f32-minimum", "int4-row-f16", "fp8-row-f32", "fp8-g32-f16"}) {
    Result<StorageFormat> format = StorageFormat::parse(name);
    ASSERT_TRUE(format) << format.error().message;
    EXPECT_EQ(format->name(), name);
  }
  EXPECT_EQ(*StorageFormat::parse("int4-g32-f16-minimum"),
            (StorageFormat{NumberFormat::Int4, 32, ScaleFormat::F16,
                           GroupOffset::Minimum}));
}

TEST(StorageFormat, OtherNamesAreRefused) {
  for (const char *name : {"",
                           "-",
                           "int3",
                           "f16",
                           "f32-g32-f16",
                           "bf16-row-f32",
                           "int4",
                           "int4-g32",
                           "int4-g32-bf16",
                           "int4-32-f16",
                           "int4-g0-f16",
                           "int4-g-f16",
                           "int4-g+32-f16",
                           "int4-g032-f16",
                           "int4-g32-f16-none",
                           "int4-g32-f16-zero",
                           "int4-g32-f16-minimum-",
                           "int4-g24-f16",
                           "int4-g-32-f16",
                           "int4-g131072-f16",
                           "int4-g99999999999999999999-f16",
                           "int4-g32-f16 ",
                           "fp8",
                           "fp8-g32",
                           "fp8-g24-f16",
                           "fp8-row-f32-minimum",
                           "fp8-e4m3-f32"})
    EXPECT_FALSE(StorageFormat::parse(name)) << name;
  EXPECT_EQ(StorageFormat::parse("fp8-row-f32-minimum").error().message,
            "fp8 has no minimum, as its numbers have signs");
  EXPECT_NE(StorageFormat::parse("int4-g24-f16").error().message.find("24"),
            std::string::npos);
}

TEST(StorageFormat, OptionsHaveUsualGroups) {
  for (auto [option, name] :
       {std::pair("int8", "int8-g32-f16"), std::pair("int4", "int4-g32-f16"),
        std::pair("fp8", "fp8-row-f32"), std::pair("bf16", "bf16"),
        std::pair("fp8-g128-f16", "fp8-g128-f16")})
    EXPECT_EQ(StorageFormat::parseOption(option)->name(), name);
}

TEST(StorageFormat, FP8IsQuantizedButNoInteger) {
  const StorageFormat format = *StorageFormat::parse("fp8-g128-f16");
  EXPECT_TRUE(format.isQuantized());
  EXPECT_FALSE(format.hasIntegers());
  EXPECT_EQ(format.bits(), 8);
  EXPECT_EQ(format.storedZero(), 0);
  EXPECT_EQ(groupBytes(format, 32, 128), 32 * 128 + 64);
}

TEST(StorageFormat, GroupsDivideK) {
  const StorageFormat groups = *StorageFormat::parse("int4-g64-f16");
  EXPECT_TRUE(verify(groups, 128));
  Status status = verify(groups, 96);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("int4-g64-f16"), std::string::npos);
  EXPECT_NE(status.error().message.find("96"), std::string::npos);
  const StorageFormat rows = *StorageFormat::parse("int8-row-f16");
  EXPECT_TRUE(verify(rows, 5504));
  EXPECT_FALSE(verify(rows, 100));
  EXPECT_FALSE(verify(rows, int64_t(1) << 17));
  EXPECT_TRUE(verify(StorageFormat::bf16(), 7));
}

TEST(StorageFormat, SizesCountScalesAndOffsets) {
  EXPECT_EQ(groupBytes(*StorageFormat::parse("int4-g32-f16"), 32, 32),
            512 + 64);
  EXPECT_EQ(groupBytes(*StorageFormat::parse("int8-g64-f32-minimum"), 16, 64),
            1024 + 2 * 64);
  EXPECT_EQ(groupBytes(StorageFormat::bf16(), 32, 1), 64);
  EXPECT_EQ(bitsPerWeight(*StorageFormat::parse("int4-g32-f16"), 2048), 4.5);
  EXPECT_EQ(bitsPerWeight(*StorageFormat::parse("int8-g32-f16"), 2048), 8.5);
  EXPECT_EQ(bitsPerWeight(*StorageFormat::parse("int8-row-f16"), 2048),
            8 + 16.0 / 2048);
  EXPECT_EQ(bitsPerWeight(StorageFormat::f32(), 2048), 32);
}

} // namespace
