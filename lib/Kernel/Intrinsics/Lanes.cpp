//===- Lanes.cpp - Arithmetic of lanes ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Lanes.h"

#include <algorithm>
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

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

using Kind = Expression::Kind;

/// An integer, rounded once.
static Lane floatOf(Lane lane, LaneType type) {
  const bool isUnsigned = lane.type == LaneType::U64;
  if (type == LaneType::F64)
    return fromDouble(isUnsigned ? static_cast<double>(lane.bits)
                                 : static_cast<double>(toInteger(lane)),
                      type);
  // f32 is as wide as smaller floats need.
  return fromDouble(isUnsigned ? static_cast<float>(lane.bits)
                               : static_cast<float>(toInteger(lane)),
                    type);
}

Lane kernel::convertLane(Lane lane, LaneType type) {
  if (isFloat(type))
    return isFloat(lane.type) ? fromDouble(toDouble(lane), type)
                              : floatOf(lane, type);
  if (!isFloat(lane.type))
    return fromInteger(toInteger(lane), type);
  const double value = std::trunc(toDouble(lane));
  const int64_t bits = bitsOf(type);
  const double smallest = isSigned(type) ? -std::ldexp(1, bits - 1) : 0;
  const double end = std::ldexp(1, isSigned(type) ? bits - 1 : bits);
  // What no integer holds is the most negative one, or all ones.
  if (!(value >= smallest && value < end))
    return fromInteger(
        isSigned(type) ? static_cast<int64_t>(uint64_t(1) << (bits - 1)) : -1,
        type);
  return value >= std::ldexp(1, 63)
             ? Lane{type, static_cast<uint64_t>(value)}
             : fromInteger(static_cast<int64_t>(value), type);
}

Lane kernel::saturateLane(Lane lane, LaneType type) {
  const int64_t bits = bitsOf(type);
  const int64_t smallest = isSigned(type) ? -(int64_t(1) << (bits - 1)) : 0;
  const int64_t largest =
      (int64_t(1) << (isSigned(type) ? bits - 1 : bits)) - 1;
  if (!isFloat(lane.type))
    return fromInteger(std::clamp(toInteger(lane), smallest, largest), type);
  const double value = std::trunc(toDouble(lane));
  if (std::isnan(value))
    return Lane{type, 0};
  return fromInteger(
      static_cast<int64_t>(std::clamp(value, static_cast<double>(smallest),
                                      static_cast<double>(largest))),
      type);
}

/// The sum of a product and an addend, rounded once to the type of `sum`.
static Lane multiplyAdd(Lane x, Lane y, Lane sum) {
  if (sum.type == LaneType::F64)
    return fromDouble(std::fma(toDouble(x), toDouble(y), toDouble(sum)),
                      sum.type);
  if (sum.type == LaneType::F32)
    return fromDouble(std::fma(static_cast<float>(toDouble(x)),
                               static_cast<float>(toDouble(y)),
                               static_cast<float>(toDouble(sum))),
                      sum.type);
  // A product of 22 bits and a sum of it are exact in f64, but for the last
  // ones of numbers far apart, which no rounding to 16 bits sees.
  return fromDouble(std::fma(toDouble(x), toDouble(y), toDouble(sum)),
                    sum.type);
}

static Result<Lane> computeFloats(Kind kind, std::span<const Lane> lanes) {
  const LaneType type = lanes.front().type;
  auto number = [&](size_t i) { return toDouble(lanes[i]); };
  // Of f32 and less f64 has more than twice the digits, so that rounding its
  // result once more gives what rounding once would.
  auto rounded = [&](double value) { return fromDouble(value, type); };
  const uint64_t sign = uint64_t(1) << (bitsOf(type) - 1);
  switch (kind) {
  case Kind::Negate:
    return Lane{type, lanes[0].bits ^ sign};
  case Kind::Absolute:
    return Lane{type, lanes[0].bits & ~sign};
  case Kind::Add:
    return rounded(number(0) + number(1));
  case Kind::Subtract:
    return rounded(number(0) - number(1));
  case Kind::Multiply:
    return rounded(number(0) * number(1));
  case Kind::Divide:
    return rounded(number(0) / number(1));
  case Kind::Fma:
    return multiplyAdd(lanes[0], lanes[1], lanes[2]);
  case Kind::SquareRoot:
    return rounded(std::sqrt(number(0)));
  case Kind::Round:
    return rounded(std::nearbyint(number(0)));
  case Kind::Floor:
    return rounded(std::floor(number(0)));
  case Kind::Ceil:
    return rounded(std::ceil(number(0)));
  case Kind::Truncate:
    return rounded(std::trunc(number(0)));
  case Kind::PowerOfTwo:
    return rounded(std::exp2(number(0)));
  case Kind::Minimum:
  case Kind::Maximum: {
    if (std::isnan(number(0)) || std::isnan(number(1)))
      return rounded(std::nan(""));
    const bool takesFirst =
        kind == Kind::Minimum ? number(0) < number(1) : number(0) > number(1);
    return lanes[takesFirst ? 0 : 1];
  }
  case Kind::Equal:
    return Lane{LaneType::Bool, number(0) == number(1)};
  case Kind::NotEqual:
    return Lane{LaneType::Bool, number(0) != number(1)};
  case Kind::Less:
    return Lane{LaneType::Bool, number(0) < number(1)};
  case Kind::LessEqual:
    return Lane{LaneType::Bool, number(0) <= number(1)};
  default:
    return makeError("floats have no such operation");
  }
}

static Result<Lane> computeIntegers(Kind kind, std::span<const Lane> lanes) {
  const LaneType type = lanes.front().type;
  const bool compareBits = type == LaneType::U64;
  const int64_t x = toInteger(lanes[0]);
  const int64_t y = lanes.size() > 1 ? toInteger(lanes[1]) : 0;
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  auto wrapped = [&](uint64_t value) {
    return fromInteger(static_cast<int64_t>(value), type);
  };
  const bool less = compareBits ? ux < uy : x < y;
  switch (kind) {
  case Kind::Negate:
    return wrapped(0 - ux);
  case Kind::Not:
    return wrapped(~ux);
  case Kind::Add:
    return wrapped(ux + uy);
  case Kind::Subtract:
    return wrapped(ux - uy);
  case Kind::Multiply:
    return wrapped(ux * uy);
  case Kind::Divide:
  case Kind::Remainder:
    if (y == 0 || (y == -1 && !compareBits)) {
      if (y == 0)
        return makeError("an integer is divided by 0");
      return wrapped(kind == Kind::Divide ? 0 - ux : 0);
    }
    if (compareBits)
      return wrapped(kind == Kind::Divide ? ux / uy : ux % uy);
    return fromInteger(kind == Kind::Divide ? x / y : x % y, type);
  case Kind::And:
    return wrapped(ux & uy);
  case Kind::Or:
    return wrapped(ux | uy);
  case Kind::Xor:
    return wrapped(ux ^ uy);
  case Kind::ShiftLeft:
    return wrapped(y < 0 || y >= bitsOf(type) ? 0 : ux << y);
  case Kind::ShiftRight: {
    const bool isAll = y < 0 || y >= bitsOf(type);
    if (isSigned(type))
      return fromInteger(x >> (isAll ? bitsOf(type) - 1 : y), type);
    return wrapped(isAll ? 0 : ux >> y);
  }
  case Kind::Absolute:
    return wrapped(x < 0 ? 0 - ux : ux);
  case Kind::Minimum:
    return lanes[less ? 0 : 1];
  case Kind::Maximum:
    return lanes[less ? 1 : 0];
  case Kind::Equal:
    return Lane{LaneType::Bool, x == y};
  case Kind::NotEqual:
    return Lane{LaneType::Bool, x != y};
  case Kind::Less:
    return Lane{LaneType::Bool, less};
  case Kind::LessEqual:
    return Lane{LaneType::Bool, less || x == y};
  default:
    return makeError("integers have no such operation");
  }
}

Result<Lane> kernel::computeLane(Expression::Kind kind,
                                 std::span<const Lane> operands) {
  return isFloat(operands.front().type) ? computeFloats(kind, operands)
                                        : computeIntegers(kind, operands);
}
