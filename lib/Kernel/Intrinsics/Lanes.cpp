//===- Lanes.cpp - Arithmetic of lanes ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include <array>
#include <bit>
#include <cmath>

using namespace sandwich;
using namespace sandwich::kernel;

namespace {

struct TypeFacts {
  std::string_view name;
  int64_t bits;
  bool isFloat, isSigned;
};

} // namespace

static constexpr std::array<TypeFacts, 13> types = {{
    {"bool", 1, false, false},
    {"i8", 8, false, true},
    {"u8", 8, false, false},
    {"i16", 16, false, true},
    {"u16", 16, false, false},
    {"i32", 32, false, true},
    {"u32", 32, false, false},
    {"i64", 64, false, true},
    {"u64", 64, false, false},
    {"f16", 16, true, true},
    {"bf16", 16, true, true},
    {"f32", 32, true, true},
    {"f64", 64, true, true},
}};

static const TypeFacts &factsOf(LaneType type) {
  return types[static_cast<size_t>(type)];
}

std::string_view kernel::name(LaneType type) { return factsOf(type).name; }

std::optional<LaneType> kernel::laneTypeNamed(std::string_view name) {
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i].name == name)
      return static_cast<LaneType>(i);
  return std::nullopt;
}

int64_t kernel::bitsOf(LaneType type) { return factsOf(type).bits; }
bool kernel::isFloat(LaneType type) { return factsOf(type).isFloat; }
bool kernel::isSigned(LaneType type) { return factsOf(type).isSigned; }

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

namespace {

/// Of floats of 16 bits: how many are behind the point, and the exponent of
/// the smallest normal number.
struct SmallFloat {
  int fractionBits, smallestExponent;
};

} // namespace

static SmallFloat smallFloatOf(LaneType type) {
  return type == LaneType::F16 ? SmallFloat{10, -14} : SmallFloat{7, -126};
}

double kernel::toDouble(Lane lane) {
  if (lane.type == LaneType::F64)
    return std::bit_cast<double>(lane.bits);
  const auto word = static_cast<uint32_t>(lane.bits);
  if (lane.type == LaneType::F32)
    return std::bit_cast<float>(word);
  if (lane.type == LaneType::BF16)
    return std::bit_cast<float>(word << 16);
  const auto [fractionBits, smallestExponent] = smallFloatOf(lane.type);
  const uint32_t fraction = word & ((1U << fractionBits) - 1);
  const uint32_t exponentBits = 15 - fractionBits;
  const uint32_t exponent = (word >> fractionBits) & ((1U << exponentBits) - 1);
  double magnitude;
  if (exponent == (1U << exponentBits) - 1)
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, smallestExponent - fractionBits);
  else
    magnitude = std::ldexp((1U << fractionBits) | fraction,
                           static_cast<int>(exponent) - 1 + smallestExponent -
                               fractionBits);
  return (word >> 15) != 0 ? -magnitude : magnitude;
}

Lane kernel::fromDouble(double value, LaneType type) {
  if (type == LaneType::F64)
    return {type, std::bit_cast<uint64_t>(value)};
  if (type == LaneType::F32)
    return {type, std::bit_cast<uint32_t>(static_cast<float>(value))};
  const auto [fractionBits, smallestExponent] = smallFloatOf(type);
  const int exponentBits = 15 - fractionBits;
  const uint64_t infinity = ((uint64_t(1) << exponentBits) - 1) << fractionBits;
  const uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value))
    return {type, sign | infinity | (uint64_t(1) << (fractionBits - 1))};
  if (magnitude == 0)
    return {type, sign};
  // In units of the last place, of which f64 holds any number exactly; what is
  // rounded up to the next exponent is right as well.
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, smallestExponent);
  if (std::isinf(value) || exponent > 1 - smallestExponent)
    return {type, sign | infinity};
  const auto units = static_cast<uint64_t>(
      std::nearbyint(std::ldexp(magnitude, fractionBits - exponent)));
  const uint64_t biased = static_cast<uint64_t>(exponent - smallestExponent)
                          << fractionBits;
  // Normal numbers have the leading one, which counts as 1 of the exponent.
  return {type, sign | (biased + units)};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

int64_t kernel::toInteger(Lane lane) {
  const int64_t bits = bitsOf(lane.type);
  if (bits == 64 || !isSigned(lane.type))
    return static_cast<int64_t>(lane.bits);
  const auto unused = 64 - bits;
  return static_cast<int64_t>(lane.bits << unused) >> unused;
}

Lane kernel::fromInteger(int64_t value, LaneType type) {
  const int64_t bits = bitsOf(type);
  const auto kept = static_cast<uint64_t>(value);
  return {type, bits == 64 ? kept : kept & ((uint64_t(1) << bits) - 1)};
}
