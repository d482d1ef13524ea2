//===- MicroKernelMenuTest.cpp - Which micro-kernels there are -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace sandwich;

namespace {

bool has(const std::vector<MicroKernel> &menu, const MicroKernel &kernel) {
  return std::ranges::find(menu, kernel) != menu.end();
}

/// Every name in the grammar whose micro-kernel fits is on the menu, and no
/// other.
TEST(MicroKernelMenu, HoldsWhatFitsTheRegisters) {
  for (MatrixISA isa : allMatrixISAs()) {
    std::vector<MicroKernel> menu = microKernelMenu(isa);
    RegisterFile file = registerFileOf(isa);
    std::set<std::string> names;
    for (const MicroKernel &kernel : menu) {
      EXPECT_TRUE(verify(kernel)) << kernel.name();
      EXPECT_EQ(kernel.columns % file.columns, 0) << kernel.name();
      EXPECT_TRUE(names.insert(kernel.name()).second) << kernel.name();
      Result<MicroKernel> parsed = MicroKernel::parse(kernel.name());
      ASSERT_TRUE(parsed);
      EXPECT_EQ(*parsed, kernel);
    }
    for (int64_t rows = 1; rows <= 64; ++rows)
      for (int64_t columns = 1; columns <= 256; ++columns) {
        MicroKernel kernel{isa, rows, columns};
        bool read = false;
        for (const Packing &packing : packingsOf(isa))
          read |= reads(kernel, packing);
        bool wanted = verify(kernel) && read && rows % file.rows == 0;
        EXPECT_EQ(has(menu, kernel), wanted) << kernel.name();
      }
  }
}

TEST(MicroKernelMenu, HoldsTheKnownGoodOnes) {
  std::vector<MicroKernel> menu = microKernelMenu(MatrixISA::X86_AVX512_BF16);
  for (auto [rows, columns] : {std::pair{12, 32}, {8, 48}, {6, 64}, {1, 32}})
    EXPECT_TRUE(has(menu, {MatrixISA::X86_AVX512_BF16, rows, columns}));
  EXPECT_FALSE(has(menu, {MatrixISA::X86_AVX512_BF16, 16, 32}));
  menu = microKernelMenu(MatrixISA::X86_AMX_BF16);
  EXPECT_TRUE(has(menu, {MatrixISA::X86_AMX_BF16, 32, 32}));
  EXPECT_TRUE(has(menu, {MatrixISA::X86_AMX_BF16, 16, 64}));
  menu = microKernelMenu(MatrixISA::ARM_NEON_F32);
  EXPECT_TRUE(has(menu, {MatrixISA::ARM_NEON_F32, 8, 12}));
  menu = microKernelMenu(MatrixISA::ARM_NEON_BF16);
  EXPECT_TRUE(has(menu, {MatrixISA::ARM_NEON_BF16, 8, 12}));
  menu = microKernelMenu(MatrixISA::ARM_SVE_BF16);
  EXPECT_TRUE(has(menu, {MatrixISA::ARM_SVE_BF16, 12, 32}));
}

/// The operands of rows or of columns stay in registers, whichever are fewer.
TEST(MicroKernelMenu, CountsTheFewerOperands) {
  auto fits = [](MatrixISA isa, int64_t rows, int64_t columns) {
    return bool(verify(MicroKernel{isa, rows, columns}));
  };
  EXPECT_TRUE(fits(MatrixISA::X86_AVX2_F32, 3, 32));
  EXPECT_FALSE(fits(MatrixISA::X86_AVX2_F32, 4, 32));
  EXPECT_TRUE(fits(MatrixISA::X86_AVX512_F32, 1, 256));
  EXPECT_TRUE(fits(MatrixISA::X86_AVX512_F32, 14, 32));
  EXPECT_FALSE(fits(MatrixISA::X86_AVX512_F32, 15, 32));
  // Six tiles for sums and rows of input, whole tiles of rows.
  EXPECT_TRUE(fits(MatrixISA::X86_AMX_BF16, 32, 32));
  EXPECT_TRUE(fits(MatrixISA::X86_AMX_BF16, 16, 80));
  EXPECT_FALSE(fits(MatrixISA::X86_AMX_BF16, 16, 96));
  EXPECT_FALSE(fits(MatrixISA::X86_AMX_BF16, 32, 48));
  EXPECT_FALSE(fits(MatrixISA::X86_AMX_BF16, 48, 16));
  EXPECT_FALSE(fits(MatrixISA::X86_AMX_BF16, 24, 32));
  // The two rows of an operand take two registers while they are loaded.
  EXPECT_TRUE(fits(MatrixISA::ARM_NEON_BF16, 58, 2));
  EXPECT_FALSE(fits(MatrixISA::ARM_NEON_BF16, 60, 2));
  EXPECT_TRUE(fits(MatrixISA::ARM_NEON_BF16, 2, 60));
}

/// Loads of vectors without a known length take addresses.
TEST(MicroKernelMenu, LeavesAddressesForScalableVectors) {
  EXPECT_TRUE(verify(MicroKernel{MatrixISA::ARM_SVE_BF16, 56, 8}));
  Status tall = verify(MicroKernel{MatrixISA::ARM_SVE_BF16, 58, 8});
  ASSERT_FALSE(tall);
  EXPECT_EQ(tall.error().message,
            "ARM_SVE_BF16_58x8 needs addresses for 29 pairs of rows; there are "
            "some for 28");
  EXPECT_TRUE(verify(MicroKernel{MatrixISA::ARM_SVE_BF16, 2, 64}));
  Status wide = verify(MicroKernel{MatrixISA::ARM_SVE_BF16, 4, 64});
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().message,
            "ARM_SVE_BF16_4x64 needs addresses for 8 registers of columns; "
            "beside more than 2 rows there are some for 7");
}

TEST(MicroKernelMenu, MatrixMultiplyOfArmNeedsPairs) {
  Status odd = verify(MicroKernel{MatrixISA::ARM_NEON_BF16, 7, 12});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().message,
            "ARM_NEON_BF16_7x12 needs a multiple of 2 rows");
  EXPECT_FALSE(verify(MicroKernel{MatrixISA::ARM_NEON_BF16, 8, 11}));
  // 4 x 8 registers of sums leave none.
  EXPECT_FALSE(verify(MicroKernel{MatrixISA::ARM_NEON_BF16, 8, 16}));
  EXPECT_TRUE(verify(MicroKernel{MatrixISA::ARM_NEON_BF16, 12, 8}));
}

TEST(MicroKernelMenu, MatrixMultiplyOfIntegersHasSumsOfEightColumns) {
  using enum MatrixISA;
  EXPECT_TRUE(verify(MicroKernel{ARM_NEON_I8MM, 8, 32}));
  const auto errorOf = [](int64_t rows, int64_t columns) {
    Status status = verify(MicroKernel{ARM_NEON_I8MM, rows, columns});
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(errorOf(7, 16), "ARM_NEON_I8MM_7x16 needs a multiple of 2 rows");
  EXPECT_EQ(errorOf(10, 16),
            "ARM_NEON_I8MM_10x16 needs 36 registers, ARM_NEON_I8MM has 32");
  for (int64_t columns : {12, 48})
    EXPECT_EQ(errorOf(2, columns),
              "ARM_NEON_I8MM_2x" + std::to_string(columns) +
                  " needs a multiple of 8 columns, at most 32");
  std::vector<MicroKernel> menu = microKernelMenu(ARM_NEON_I8MM);
  EXPECT_TRUE(has(menu, {ARM_NEON_I8MM, 8, 16}));
}

TEST(MicroKernelMenu, PackingsHoldTheDefault) {
  for (MatrixISA isa : allMatrixISAs()) {
    std::vector<Packing> packings = packingsOf(isa);
    EXPECT_NE(std::ranges::find(packings, packingOf(isa)), packings.end());
    for (const Packing &packing : packings) {
      EXPECT_EQ(packing.panel % packing.tile, 0);
      EXPECT_EQ(packing.kStep % packing.kPack, 0);
      EXPECT_TRUE(std::ranges::any_of(
          microKernelMenu(isa),
          [&](const MicroKernel &kernel) { return reads(kernel, packing); }));
    }
  }
}

TEST(MicroKernelMenu, PanelsDivideOrAreDivided) {
  Packing panel32 = packingOf(MatrixISA::X86_AVX512_BF16);
  auto readsPanel = [&](int64_t columns) {
    return reads(MicroKernel{MatrixISA::X86_AVX512_BF16, 1, columns}, panel32);
  };
  EXPECT_TRUE(readsPanel(16));
  EXPECT_TRUE(readsPanel(32));
  EXPECT_TRUE(readsPanel(64));
  EXPECT_FALSE(readsPanel(48));
  // The same panel, but elements in another order.
  EXPECT_FALSE(reads(MicroKernel{MatrixISA::X86_AVX512_F32, 1, 32}, panel32));
  EXPECT_FALSE(reads(MicroKernel{MatrixISA::X86_AMX_BF16, 16, 32}, panel32));
  // No menu has panels of 24 columns on x86: epilogues write whole vectors.
  EXPECT_FALSE(reads(MicroKernel{MatrixISA::X86_AVX2_F32, 4, 8},
                     Packing{.panel = 24, .tile = 24, .kStep = 1, .kPack = 1}));
}

TEST(MicroKernelMenu, FollowsTheTarget) {
  Target amx = *getTarget("x86-64-amx");
  auto isaFor = [&](int64_t k, bool bf16) {
    MatmulShape shape{.n = 64,
                      .k = k,
                      .storage =
                          bf16 ? StorageFormat::bf16() : StorageFormat::f32(),
                      .packing = {}};
    return microKernelMenu(shape, amx).front().isa;
  };
  EXPECT_EQ(isaFor(64, true), MatrixISA::X86_AMX_BF16);
  EXPECT_EQ(isaFor(48, true), MatrixISA::X86_AVX512_BF16);
  EXPECT_EQ(isaFor(64, false), MatrixISA::X86_AVX512_F32);
  Target arm = *getTarget("aarch64-neon-bf16");
  EXPECT_EQ(arm.matrixISAs,
            (std::vector{MatrixISA::ARM_NEON_F32, MatrixISA::ARM_NEON_DOTPROD,
                         MatrixISA::ARM_NEON_I8MM, MatrixISA::ARM_NEON_BF16}));
  EXPECT_EQ(getTarget("aarch64-neon")->matrixISAs,
            (std::vector{MatrixISA::ARM_NEON_F32}));
  EXPECT_EQ(amx.matrixISAs.size(), 7u);
}

TEST(MicroKernelMenu, HasIntegersWhereInputsMayBeRounded) {
  using enum MatrixISA;
  MatmulShape shape{.n = 64,
                    .k = 64,
                    .storage = *StorageFormat::parseOption("int4"),
                    .roundsInput = true};
  const auto isaFor = [&](std::string_view target) {
    return microKernelMenu(shape, *getTarget(target)).front().isa;
  };
  EXPECT_EQ(isaFor("x86-64-avx2"), X86_AVX2_INT8);
  EXPECT_EQ(isaFor("x86-64-avx-vnni"), X86_AVX_VNNI);
  EXPECT_EQ(isaFor("x86-64-avx512"), X86_AVX2_INT8);
  EXPECT_EQ(isaFor("x86-64-avx512-vnni"), X86_AVX512_VNNI);
  EXPECT_EQ(isaFor("x86-64-avx512-bf16"), X86_AVX512_VNNI);
  EXPECT_EQ(isaFor("aarch64-neon-dotprod"), ARM_NEON_DOTPROD);
  for (const char *target :
       {"aarch64-neon-i8mm", "aarch64-neon-bf16", "aarch64-sve-bf16"})
    EXPECT_EQ(isaFor(target), ARM_NEON_I8MM) << target;
  EXPECT_EQ(isaFor("aarch64-sve"), ARM_SVE_F32);
  shape.roundsInput = false;
  EXPECT_EQ(isaFor("x86-64-avx512-vnni"), X86_AVX512_F32);
  EXPECT_EQ(isaFor("aarch64-neon-dotprod"), ARM_NEON_F32);
  EXPECT_EQ(isaFor("x86-64-avx512-bf16"), X86_AVX512_BF16);
  shape.roundsInput = true;
  shape.storage = StorageFormat::bf16();
  EXPECT_EQ(isaFor("x86-64-avx512-vnni"), X86_AVX512_F32);
  // Tiles are beside integers, if sums may depend on the rows.
  shape.storage = *StorageFormat::parseOption("int4");
  auto isasFor = [&](std::string_view target) {
    std::set<MatrixISA> isas;
    for (const MicroKernel &kernel : microKernelMenu(shape, *getTarget(target)))
      isas.insert(kernel.isa);
    return isas;
  };
  EXPECT_EQ(isasFor("x86-64-amx"), (std::set{X86_AVX512_VNNI, X86_AMX_BF16}));
  EXPECT_EQ(isasFor("x86-64-avx512-bf16"), std::set{X86_AVX512_VNNI});
  shape.deterministic = true;
  EXPECT_EQ(isasFor("x86-64-amx"), std::set{X86_AVX512_VNNI});
  // Tiles of integers give the same bits.
  for (const char *format : {"int8-g32-f16", "int8-g64-f16", "int8-g128-f16"}) {
    shape.storage = *StorageFormat::parse(format);
    EXPECT_EQ(isasFor("x86-64-amx"), (std::set{X86_AVX512_VNNI, X86_AMX_INT8}))
        << format;
    EXPECT_EQ(isasFor("x86-64-avx512-bf16"), std::set{X86_AVX512_VNNI});
  }
  for (const char *format :
       {"int8-g80-f16", "int8-g128-f16-minimum", "int4-g128-f16"}) {
    shape.storage = *StorageFormat::parse(format);
    EXPECT_EQ(isasFor("x86-64-amx"), std::set{X86_AVX512_VNNI}) << format;
  }
  shape.storage = *StorageFormat::parseOption("int4");
  shape.deterministic = false;
  shape.roundsInput = false;
  EXPECT_EQ(isasFor("x86-64-amx"), (std::set{X86_AVX512_BF16, X86_AMX_BF16}));
  // Sums of groups take registers, too.
  EXPECT_TRUE(verify(MicroKernel{X86_AVX512_VNNI, 6, 32}));
  EXPECT_FALSE(verify(MicroKernel{X86_AVX512_VNNI, 7, 32}));
}

} // namespace
