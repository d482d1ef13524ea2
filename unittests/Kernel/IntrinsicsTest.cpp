//===- IntrinsicsTest.cpp - Tests of the table of intrinsics --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Intrinsics.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace sandwich;
using namespace sandwich::kernel;

namespace {

TEST(IntrinsicTable, HasThoseOfX86) {
  const IntrinsicTable &table = IntrinsicTable::x86();
  EXPECT_GT(table.all().size(), 400u);
  EXPECT_EQ(table.find("_mm512_no_such_ps"), nullptr);
  const Intrinsic *load = table.find("_mm512_loadu_ps");
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->parameters[0].type.kind, ParameterType::Kind::Pointer);
  EXPECT_TRUE(load->parameters[0].type.isConst);
  EXPECT_EQ(load->result->lanes, 16);
  const Intrinsic *masked = table.find("_mm512_mask_add_ps");
  ASSERT_NE(masked, nullptr);
  EXPECT_EQ(masked->parameters.size(), 4u);
  EXPECT_NE(table.find("_mm512_maskz_add_ps"), nullptr);
}

TEST(IntrinsicTable, RepeatsRulesOfBlocks) {
  Result<IntrinsicTable> table =
      IntrinsicTable::parse("[sse] # what for\n"
                            "each p, n in (_a, 2), (_b, 4) {\n"
                            "  {p}_add(x, y: i8x{n}) -> i8x{n} = \\\n"
                            "      x[i] + y[i]\n"
                            "}\n");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->all().size(), 2u);
  EXPECT_EQ(table->find("_b_add")->result->lanes, 4);
  EXPECT_EQ(table->find("_b_add")->features, "sse");
}

TEST(IntrinsicTable, NamesTheLineOfAnError) {
  struct Case {
    const char *text, *message;
  };
  const Case cases[] = {
      {"f(a: f32x4) -> f32x4 = a[i] + b[i]", "line 1: there is no 'b'"},
      {"\nf(a: f32x4, b: f64x4) -> f32x4 = a[i] + b[i]",
       "line 2: expected an operand of f32"},
      {"f(a: f32x4) -> f64x4 = a[i]", "line 1: expected an operand of f64"},
      {"f(a: f32y4) -> f32x4 = a[i]", "line 1: expected a type"},
      {"f(a: f32x0) -> f32x4 = a[i]", "line 1: expected a type"},
      {"f(a) -> f32x4 = a[i]", "line 1: expected ':' and a type"},
      {"f(a: f32x4) -> f32x4 = sine(a[i])",
       "line 1: there is no function 'sine'"},
      {"f(a: f32x4) -> f32x4 = fma(a[i], a[i])", "line 1: fma has 3 operands"},
      {"f(a: f32x4) -> f32x4 = bits_f32(f64(a[i]))",
       "line 1: bits_f32 has an operand of as many bits"},
      {"f(a: f32x4) -> f32 = fold_add(j, 3, a[j])",
       "line 1: a fold has a power of two of values"},
      {"f(a: f32x4) -> f32x4 = a[i] a", "line 1: expected the end of the rule"},
      {"f(a: f32x4) -> f32x4 = a[99999999999999999999]",
       "line 1: expected a number"},
      {"f(p: const f32*, a: f32x4): p[i] = a[i]",
       "line 1: expected a pointer to what is not const"},
      {"masked f(p: f32*, a: f32x4): p[i] = a[i]",
       "line 1: what stores is not masked by a word"},
      {"f(a: f32) -> f32 = a\nf(a: f32) -> f32 = a",
       "line 2: f is there already"},
      {"each p in (a, b) {\n}", "line 1: 2 texts for 1 names"},
      {"each p in (a) {\nf{p}() -> f32 = 0", "line 2: a block has no end"},
      {"}", "line 1: there is no block that ends"},
      {"f(a: f32) -> f32 = \\", "line 1: the rule has no end"},
  };
  for (const auto &[text, message] : cases) {
    Result<IntrinsicTable> table = IntrinsicTable::parse(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().message.substr(0, std::string(message).size()),
              message);
  }
}

/// Lanes of f32.
Argument floats(std::initializer_list<float> values) {
  Argument argument;
  for (float value : values)
    argument.lanes.push_back({LaneType::F32, std::bit_cast<uint32_t>(value)});
  return argument;
}

TEST(Intrinsics, ReadNoMemoryThatIsNotThere) {
  const Intrinsic &load = *IntrinsicTable::x86().find("_mm_loadu_ps");
  std::array<float, 3> three = {1, 2, 3};
  const Argument memory[] = {{{}, std::as_writable_bytes(std::span(three))}};
  Result<std::vector<Lane>> result = evaluate(load, memory);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "_mm_loadu_ps: element 3 of p is not there");
  // Nor what a mask leaves out.
  const Intrinsic &masked =
      *IntrinsicTable::x86().find("_mm256_maskz_loadu_epi16");
  Argument mask;
  for (int lane = 0; lane < 16; ++lane)
    mask.lanes.push_back({LaneType::Bool, lane < 6});
  const Argument arguments[] = {mask, memory[0]};
  EXPECT_TRUE(evaluate(masked, arguments));
}

TEST(Intrinsics, RefuseOtherArguments) {
  const Intrinsic &add = *IntrinsicTable::x86().find("_mm_add_ps");
  auto messageOf = [&](std::span<const Argument> arguments) {
    Result<std::vector<Lane>> result = evaluate(add, arguments);
    return result ? "" : result.error().message;
  };
  const Argument four = floats({1, 2, 3, 4});
  Argument integers = four;
  integers.lanes[2].type = LaneType::I32;
  EXPECT_EQ(messageOf({}), "_mm_add_ps has 2 parameters, not 0");
  EXPECT_EQ(messageOf(std::array{four, floats({1})}),
            "_mm_add_ps: b has 4 lanes");
  EXPECT_EQ(messageOf(std::array{integers, four}),
            "_mm_add_ps: a has lanes of f32");
  EXPECT_EQ(messageOf(std::array{four, four}), "");
  const Intrinsic &shift = *IntrinsicTable::x86().find("_mm_slli_epi32");
  Argument words, bits;
  for (int lane = 0; lane < 4; ++lane)
    words.lanes.push_back({LaneType::I32, 1});
  bits.lanes.push_back({LaneType::I32, 33});
  Result<std::vector<Lane>> result = evaluate(shift, std::array{words, bits});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "_mm_slli_epi32: m is between 0 and 32");
}

TEST(Intrinsics, ReduceAsTreesDo) {
  const Intrinsic &reduce = *IntrinsicTable::x86().find("_mm512_reduce_add_ps");
  Argument lanes;
  for (int lane = 0; lane < 16; ++lane)
    lanes.lanes.push_back(
        {LaneType::F32, std::bit_cast<uint32_t>(lane == 0   ? 1e8F
                                                : lane == 8 ? -1e8F
                                                            : 0.25F)});
  Result<std::vector<Lane>> result = evaluate(reduce, std::array{lanes});
  ASSERT_TRUE(result);
  // From left to right the quarters would be lost.
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>((*result)[0].bits)),
            3.5F);
}

} // namespace
