//===- NestLibraryTest.cpp - Nests against naive loops --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/NestLibrary.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/CheckedMath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace sandwich;

namespace {

constexpr int64_t maxRows = 64;
constexpr float untouched = 12345.0f;

/// One weight and one input of random numbers.
class Operands {
public:
  Operands(const MatmulShape &shape, MatrixISA isa, uint32_t seed)
      : shape(shape), packing(packingFor(shape, isa)),
        bf16Input(multipliesBF16(isa)),
        stride(rowStride(shape.k, bf16Input ? 2 : 4)),
        packedColumns(divideUp(shape.n, packing.panel) * packing.panel),
        resultStride((packedColumns + 15) / 16 * 16),
        input(*AnonymousMemory::allocate(maxRows * stride * 4, "input")),
        weight(
            *AnonymousMemory::allocate(packedColumns * shape.k * 4, "weight")),
        result(*AnonymousMemory::allocate(maxRows * resultStride * 4, "sums")),
        scratch(*AnonymousMemory::allocate(1 << 21, "scratch")) {
    std::mt19937 random(seed);
    // Few bits, so that f32 holds the sums exactly.
    auto next = [&] { return static_cast<float>(random() % 9) / 4 - 1; };
    inputs.resize(maxRows * shape.k);
    weights.resize(shape.n * shape.k);
    for (int64_t row = 0; row < maxRows; ++row)
      for (int64_t k = 0; k < shape.k; ++k)
        put(input, row * stride + k, bf16Input,
            inputs[row * shape.k + k] = next());
    for (int64_t n = 0; n < shape.n; ++n)
      for (int64_t k = 0; k < shape.k; ++k)
        put(weight, place(n, k), shape.bf16Weights,
            weights[n * shape.k + k] = next());
  }

  NestCall call() {
    NestCall call;
    auto describe = [](AnonymousMemory &memory) {
      return BytesDescriptor(memory.data(),
                             static_cast<int64_t>(memory.size()));
    };
    call.input = describe(input);
    call.weight = describe(weight);
    call.result = describe(result);
    call.scratch = describe(scratch);
    call.resultStride = resultStride;
    float *sums = reinterpret_cast<float *>(result.data());
    std::fill(sums, sums + maxRows * resultStride, untouched);
    return call;
  }

  /// Expects the sums of the call's part, and nothing but them.
  void expect(const NestCall &call) {
    const float *sums = reinterpret_cast<const float *>(result.data());
    for (int64_t row = 0; row < maxRows; ++row)
      for (int64_t n = 0; n < shape.n; ++n) {
        float expected = untouched;
        if (row >= call.rowBegin && row < call.rowEnd &&
            n >= call.columnBegin && n < call.columnEnd) {
          expected = 0;
          for (int64_t k = call.kBegin; k < call.kEnd; ++k)
            expected += inputs[row * shape.k + k] * weights[n * shape.k + k];
        }
        ASSERT_EQ(sums[row * resultStride + n], expected)
            << "row " << row << ", column " << n;
      }
  }

  const MatmulShape shape;
  const Packing packing;

private:
  static void put(AnonymousMemory &memory, int64_t index, bool bf16,
                  float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (bf16)
      reinterpret_cast<uint16_t *>(memory.data())[index] =
          static_cast<uint16_t>(bits >> 16);
    else
      reinterpret_cast<float *>(memory.data())[index] = value;
  }
  int64_t place(int64_t n, int64_t k) const {
    int64_t index = n / packing.panel;
    index = index * (shape.k / packing.kStep) + k / packing.kStep;
    index = index * (packing.panel / packing.tile) +
            n % packing.panel / packing.tile;
    index = index * (packing.kStep / packing.kPack) +
            k % packing.kStep / packing.kPack;
    index = index * packing.tile + n % packing.tile;
    return index * packing.kPack + k % packing.kPack;
  }

  bool bf16Input;
  int64_t stride, packedColumns, resultStride;
  AnonymousMemory input, weight, result, scratch;
  std::vector<float> inputs, weights;
};

class NestLibraryTest : public testing::TestWithParam<MatrixISA> {};

std::string targetFor(MatrixISA isa) {
  if (isa == MatrixISA::X86_AVX512_BF16)
    return "x86-64-avx512-bf16";
  return isa == MatrixISA::X86_AVX512_F32 ? "x86-64-avx512" : "x86-64-avx2";
}

} // namespace

TEST_P(NestLibraryTest, MatchesNaiveLoops) {
  MatrixISA isa = GetParam();
  Target target = *getTarget(targetFor(isa));
  auto library = NestLibrary::create(target, 2);
  if (!library)
    GTEST_SKIP() << library.error().message;
  MatmulShape shape{.n = 203, .k = 150, .bf16Weights = multipliesBF16(isa)};
  Operands operands(shape, isa, 1);
  std::mt19937 random(2);
  auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const Packing &packing = operands.packing;
  std::vector<MicroKernel> menu = microKernelMenu(isa);
  std::erase_if(
      menu, [&](const MicroKernel &kernel) { return !reads(kernel, packing); });
  for (int i = 0; i < 200; ++i) {
    Schedule schedule;
    schedule.microKernel = menu[between(0, std::ssize(menu) - 1)];
    int64_t columns = std::lcm(schedule.microKernel.columns, packing.panel);
    schedule.slice = {between(1, maxRows), columns * between(1, 6),
                      packing.kStep * between(1, shape.k / packing.kStep)};
    schedule.prefetchLines = 4;
    schedule.prefetchDistance = 64 * between(0, 1) * between(1, 64);
    schedule.order =
        between(0, 1) ? LoopOrder::RowsOuter : LoopOrder::ColumnsOuter;
    schedule.prefetchHint =
        between(0, 1) ? PrefetchHint::L1 : PrefetchHint::NonTemporal;
    schedule.stores =
        between(0, 1) ? StoreKind::Cached : StoreKind::NonTemporal;
    NestCall call = operands.call();
    call.rowBegin = between(0, maxRows);
    call.rowEnd = between(call.rowBegin, maxRows);
    call.columnBegin =
        packing.panel * between(0, (shape.n - 1) / packing.panel);
    call.columnEnd =
        std::min(call.columnBegin + packing.panel * between(0, 8), shape.n);
    int64_t unit = kUnitOf(packing);
    call.kBegin = unit * between(0, (shape.k - 1) / unit);
    call.kEnd = std::min(call.kBegin + unit * between(1, 20), shape.k);
    int64_t rows = call.rowEnd - call.rowBegin;
    auto nest = (*library)->prepare(shape, schedule, rows, rows);
    ASSERT_TRUE(nest) << nest.error().message;
    (*nest)(call);
    SCOPED_TRACE(schedule.microKernel.name() + " slice " +
                 std::to_string(schedule.slice[0]) + " " +
                 std::to_string(schedule.slice[1]) + " " +
                 std::to_string(schedule.slice[2]) + " distance " +
                 std::to_string(schedule.prefetchDistance) + " order " +
                 std::string(name(schedule.order)));
    operands.expect(call);
    if (HasFatalFailure())
      return;
  }
}

// Slices, orders, distances, parts and strips are arguments.
TEST_P(NestLibraryTest, CompilesMicroKernelsOnce) {
  MatrixISA isa = GetParam();
  auto library = NestLibrary::create(*getTarget(targetFor(isa)), 1);
  if (!library)
    GTEST_SKIP() << library.error().message;
  MatmulShape shape{.n = 256, .k = 128, .bf16Weights = multipliesBF16(isa)};
  Schedule schedule{.microKernel = {isa, 2, packingOf(isa).panel},
                    .slice = {2, 64, 64},
                    .prefetchLines = 4,
                    .prefetchDistance = 512};
  ASSERT_TRUE((*library)->prepare(shape, schedule, 2, 2));
  int64_t compiled = (*library)->compilations();
  // The nest, and the micro-kernel.
  EXPECT_EQ(compiled, 2);
  schedule.slice = {8, 32, 128};
  schedule.order = LoopOrder::ColumnsOuter;
  schedule.prefetchDistance = 4096;
  schedule.chunkK = 64;
  ASSERT_TRUE((*library)->prepare(shape, schedule, 8, 8));
  // The other order is another nest.
  EXPECT_EQ((*library)->compilations(), compiled + 1);
  // One row is another micro-kernel.
  ASSERT_TRUE((*library)->prepare(shape, schedule, 1, 1));
  EXPECT_EQ((*library)->compilations(), compiled + 2);
}

// Between two compilations, and what was compiled is kept.
TEST_P(NestLibraryTest, StopsBetweenCompilations) {
  MatrixISA isa = GetParam();
  int asked = 0, allowed = 1;
  auto library = NestLibrary::create(*getTarget(targetFor(isa)), 1,
                                     [&] { return ++asked > allowed; });
  if (!library)
    GTEST_SKIP() << library.error().message;
  MatmulShape shape{.n = 256, .k = 128, .bf16Weights = multipliesBF16(isa)};
  Schedule schedule{.microKernel = {isa, 2, packingOf(isa).panel},
                    .slice = {2, 64, 64}};
  auto nest = (*library)->prepare(shape, schedule, 2, 2);
  ASSERT_FALSE(nest);
  EXPECT_EQ(nest.error().message, "measuring was stopped");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ((*library)->compilations(), 1);
  ASSERT_FALSE((*library)->prepare(shape, schedule, 2, 2));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ((*library)->compilations(), 1);
  allowed = 100;
  EXPECT_TRUE((*library)->prepare(shape, schedule, 2, 2));
  EXPECT_EQ((*library)->compilations(), 2);
}

INSTANTIATE_TEST_SUITE_P(ISAs, NestLibraryTest,
                         testing::Values(MatrixISA::X86_AVX2_F32,
                                         MatrixISA::X86_AVX512_F32,
                                         MatrixISA::X86_AVX512_BF16),
                         [](const testing::TestParamInfo<MatrixISA> &info) {
                           return std::string(name(info.param));
                         });

TEST(NestLibraryTest, RefusesForeignTargets) {
  auto library = NestLibrary::create(*getTarget("x86-64-amx"), 1);
  if (library)
    GTEST_SKIP() << "this CPU has everything";
  EXPECT_NE(library.error().message.find("this CPU cannot run code for"),
            std::string::npos);
}
