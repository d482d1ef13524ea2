//===- GgufBlocks.cpp - The types of GGUF tensors -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How the bits of blocks lie is ggml's (`ggml-common.h`,
/// `dequantize_row_*` in `ggml-quants.c`).
///
//===----------------------------------------------------------------------===//

#include "GgufBlocks.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace sandwich;

/// Scales of a block are small integers times one number of f16, or two.
struct sandwich::GgufBlockFormat {
  StorageFormat format;
  GroupScale (*readScale)(const std::byte *block, int64_t group);
  /// Reads the numbers of a group as `format` stores them.
  void (*readNumbers)(const std::byte *block, int64_t group, uint8_t *numbers);
};

static uint8_t byteAt(const std::byte *block, int64_t index) {
  return std::to_integer<uint8_t>(block[index]);
}

static uint8_t lowHalf(uint8_t byte) { return byte & 0xf; }
static uint8_t highHalf(uint8_t byte) { return byte >> 4; }

static float halfAt(const std::byte *block, int64_t offset) {
  _Float16 half;
  std::memcpy(&half, block + offset, sizeof(half));
  return static_cast<float>(half);
}

static constexpr int64_t smallBlock = 32, superBlock = 256;

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 with a scale and perhaps a
// minimum, the high bits of numbers of five, and the numbers; the halves of
// bytes are 16 elements apart.

static GroupScale readOnlyScale(const std::byte *block, int64_t) {
  return {halfAt(block, 0), 0};
}

static GroupScale readScaleAndMinimum(const std::byte *block, int64_t) {
  return {halfAt(block, 0), halfAt(block, 2)};
}

template <int64_t offset>
static void readHalves(const std::byte *block, int64_t, uint8_t *numbers) {
  constexpr int64_t half = smallBlock / 2;
  for (int64_t i = 0; i < half; ++i) {
    const uint8_t byte = byteAt(block, offset + i);
    numbers[i] = lowHalf(byte);
    numbers[half + i] = highHalf(byte);
  }
}

/// `added` is what turns numbers from 0 to 31 into those that are stored.
template <int64_t offset, int added>
static void readFiveBits(const std::byte *block, int64_t group,
                         uint8_t *numbers) {
  constexpr int64_t highBytes = smallBlock / 8;
  readHalves<offset + highBytes>(block, group, numbers);
  for (int64_t i = 0; i < smallBlock; ++i) {
    const int high = byteAt(block, offset + i / 8) >> i % 8 & 1;
    numbers[i] = static_cast<uint8_t>(numbers[i] + (high << 4) + added);
  }
}

static void readSignedBytes(const std::byte *block, int64_t, uint8_t *numbers) {
  for (int64_t i = 0; i < smallBlock; ++i)
    numbers[i] = byteAt(block, 2 + i) ^ 0x80;
}

// Q4_K and Q5_K: 256 elements in groups of 32. The scales and minima are
// numbers of six bits, times those of the block.

static GroupScale readSixBitScale(const std::byte *block, int64_t group) {
  const std::byte *packed = block + 4;
  int scale = 0, minimum = 0;
  if (group < 4) {
    scale = byteAt(packed, group) & 63;
    minimum = byteAt(packed, group + 4) & 63;
  } else {
    const uint8_t halves = byteAt(packed, group + 4);
    scale = lowHalf(halves) | byteAt(packed, group - 4) >> 6 << 4;
    minimum = highHalf(halves) | byteAt(packed, group) >> 6 << 4;
  }
  return {halfAt(block, 0) * static_cast<float>(scale),
          -(halfAt(block, 2) * static_cast<float>(minimum))};
}

template <int64_t offset>
static void readFourBits(const std::byte *block, int64_t group,
                         uint8_t *numbers) {
  const std::byte *bytes = block + offset + group / 2 * smallBlock;
  for (int64_t i = 0; i < smallBlock; ++i)
    numbers[i] =
        group % 2 ? highHalf(byteAt(bytes, i)) : lowHalf(byteAt(bytes, i));
}

static constexpr int64_t sixBitScalesEnd = 16;

static void readQ5K(const std::byte *block, int64_t group, uint8_t *numbers) {
  readFourBits<sixBitScalesEnd + smallBlock>(block, group, numbers);
  for (int64_t i = 0; i < smallBlock; ++i) {
    const int high = byteAt(block, sixBitScalesEnd + i) >> group & 1;
    numbers[i] = static_cast<uint8_t>(numbers[i] + (high << 4));
  }
}

// Q6_K: 256 elements in groups of 16: 128 bytes of low halves, 64 of high
// pairs of bits, 16 scales of a byte, and what these are multiplied with.

static GroupScale readQ6KScale(const std::byte *block, int64_t group) {
  constexpr int64_t scales = 128 + 64;
  const auto scale = static_cast<int8_t>(byteAt(block, scales + group));
  return {halfAt(block, scales + 16) * static_cast<float>(scale), 0};
}

static void readQ6K(const std::byte *block, int64_t group, uint8_t *numbers) {
  // Each half of the block has 64 bytes of low bits and 32 of high ones, which
  // serve four quarters of 32 elements.
  const int64_t half = group / 8, quarter = group % 8 / 2;
  const std::byte *low = block + half * 64 + quarter % 2 * 32 + group % 2 * 16;
  const std::byte *high = block + 128 + half * 32 + group % 2 * 16;
  constexpr int added = 128 - 32;
  for (int64_t i = 0; i < 16; ++i) {
    const uint8_t byte = byteAt(low, i);
    const int top = byteAt(high, i) >> 2 * quarter & 3;
    const uint8_t bottom = quarter < 2 ? lowHalf(byte) : highHalf(byte);
    numbers[i] = static_cast<uint8_t>(bottom + (top << 4) + added);
  }
}

static constexpr StorageFormat integers(NumberFormat number, int64_t group,
                                        ScaleFormat scale, GroupOffset offset) {
  return {number, group, scale, offset};
}

static constexpr GgufBlockFormat q4_0 = {
    integers(NumberFormat::Int4, 32, ScaleFormat::F16, GroupOffset::None),
    readOnlyScale, readHalves<2>};
static constexpr GgufBlockFormat q4_1 = {
    integers(NumberFormat::Int4, 32, ScaleFormat::F16, GroupOffset::Minimum),
    readScaleAndMinimum, readHalves<4>};
static constexpr GgufBlockFormat q5_0 = {
    integers(NumberFormat::Int8, 32, ScaleFormat::F16, GroupOffset::None),
    readOnlyScale, readFiveBits<2, 128 - 16>};
static constexpr GgufBlockFormat q5_1 = {
    integers(NumberFormat::Int8, 32, ScaleFormat::F16, GroupOffset::Minimum),
    readScaleAndMinimum, readFiveBits<4, 0>};
static constexpr GgufBlockFormat q8_0 = {
    integers(NumberFormat::Int8, 32, ScaleFormat::F16, GroupOffset::None),
    readOnlyScale, readSignedBytes};
static constexpr GgufBlockFormat q4_K = {
    integers(NumberFormat::Int4, 32, ScaleFormat::F32, GroupOffset::Minimum),
    readSixBitScale, readFourBits<sixBitScalesEnd>};
static constexpr GgufBlockFormat q5_K = {
    integers(NumberFormat::Int8, 32, ScaleFormat::F32, GroupOffset::Minimum),
    readSixBitScale, readQ5K};
static constexpr GgufBlockFormat q6_K = {
    integers(NumberFormat::Int8, 16, ScaleFormat::F32, GroupOffset::None),
    readQ6KScale, readQ6K};

namespace {

struct NumberedType {
  uint32_t number;
  GgufTensorType type;
};

struct NumberedName {
  uint32_t number;
  std::string_view name;
};

class GgufBlocks : public IntegerGroups {
public:
  GgufBlocks(const GgufTensorType &type, int64_t columns,
             std::span<const std::byte> blocks)
      : IntegerGroups(type.blocks->format), type(type),
        blocksPerRow(columns / static_cast<int64_t>(type.elements)),
        groupsPerBlock(static_cast<int64_t>(type.elements) /
                       type.blocks->format.groupSize),
        blocks(blocks) {}

  std::string_view name() const override { return type.name; }

  GroupScale read(int64_t row, int64_t group,
                  std::span<uint8_t> numbers) const override {
    const std::byte *block = find(row, group);
    type.blocks->readNumbers(block, group % groupsPerBlock, numbers.data());
    return type.blocks->readScale(block, group % groupsPerBlock);
  }

  GroupScale readScale(int64_t row, int64_t group) const override {
    return type.blocks->readScale(find(row, group), group % groupsPerBlock);
  }

private:
  const std::byte *find(int64_t row, int64_t group) const {
    const int64_t block = row * blocksPerRow + group / groupsPerBlock;
    return blocks.subspan(block * type.bytes, type.bytes).data();
  }

  const GgufTensorType type;
  const int64_t blocksPerRow, groupsPerBlock;
  std::span<const std::byte> blocks;
};

} // namespace

static constexpr auto tensorTypes = std::to_array<NumberedType>({
    {0, {"F32", 1, 4, ElementType::F32}},
    {1, {"F16", 1, 2, ElementType::F16}},
    {2, {"Q4_0", smallBlock, 18, ElementType::U8, &q4_0}},
    {3, {"Q4_1", smallBlock, 20, ElementType::U8, &q4_1}},
    {6, {"Q5_0", smallBlock, 22, ElementType::U8, &q5_0}},
    {7, {"Q5_1", smallBlock, 24, ElementType::U8, &q5_1}},
    {8, {"Q8_0", smallBlock, 34, ElementType::U8, &q8_0}},
    {12, {"Q4_K", superBlock, 144, ElementType::U8, &q4_K}},
    {13, {"Q5_K", superBlock, 176, ElementType::U8, &q5_K}},
    {14, {"Q6_K", superBlock, 210, ElementType::U8, &q6_K}},
    {30, {"BF16", 1, 2, ElementType::BF16}},
});

/// Those that cannot be compiled, as far as files are known to have them.
static constexpr auto otherTypes = std::to_array<NumberedName>(
    {{9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {15, "Q8_K"},
     {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
     {20, "IQ4_NL"},  {21, "IQ3_S"},  {22, "IQ2_S"},   {23, "IQ4_XS"},
     {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
     {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},
     {39, "MXFP4"}});

std::optional<GgufTensorType> sandwich::ggufTensorType(uint32_t number) {
  const auto *known =
      std::ranges::find(tensorTypes, number, &NumberedType::number);
  if (known == tensorTypes.end())
    return std::nullopt;
  return known->type;
}

std::string sandwich::describeGgufTensorType(uint32_t number) {
  const auto *known =
      std::ranges::find(otherTypes, number, &NumberedName::number);
  return known == otherTypes.end() ? std::to_string(number)
                                   : std::string(known->name);
}

std::string sandwich::listGgufTensorTypes() {
  std::string names;
  for (const NumberedType &numbered : tensorTypes)
    names += (names.empty() ? "" : ", ") + std::string(numbered.type.name);
  return names;
}

std::shared_ptr<const IntegerGroups>
sandwich::createGgufBlocks(const GgufTensorType &type, int64_t columns,
                           std::span<const std::byte> blocks) {
  return std::make_shared<GgufBlocks>(type, columns, blocks);
}
