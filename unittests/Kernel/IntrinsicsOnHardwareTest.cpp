//===- IntrinsicsOnHardwareTest.cpp - The table beside a CPU --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntrinsicCalls.h"
#include "sandwich/Kernel/Intrinsics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace sandwich;
using namespace sandwich::kernel;

namespace {

/// Whether this CPU has all of `features`, as compilers call them.
bool hasAll(const std::string &features) {
  __builtin_cpu_init();
  auto has = [](std::string_view feature) {
#define SANDWICH_FEATURE(NAME)                                                 \
  if (feature == NAME)                                                         \
    return __builtin_cpu_supports(NAME) != 0;
    SANDWICH_FEATURE("avx")
    SANDWICH_FEATURE("fma")
    SANDWICH_FEATURE("avx2")
    SANDWICH_FEATURE("f16c")
    SANDWICH_FEATURE("avxvnni")
    SANDWICH_FEATURE("avx512f")
    SANDWICH_FEATURE("avx512bw")
    SANDWICH_FEATURE("avx512dq")
    SANDWICH_FEATURE("avx512vl")
    SANDWICH_FEATURE("avx512vnni")
    SANDWICH_FEATURE("avx512bf16")
#undef SANDWICH_FEATURE
    ADD_FAILURE() << "nobody asks for " << feature;
    return false;
  };
  for (size_t begin = 0; begin < features.size();) {
    const size_t end = std::min(features.find(',', begin), features.size());
    if (!has(std::string_view(features).substr(begin, end - begin)))
      return false;
    begin = end + 1;
  }
  return true;
}

/// Draws numbers of which many are special.
class Numbers {
public:
  uint64_t draw(LaneType type) {
    const int64_t bits = bitsOf(type);
    uint64_t number = isFloat(type) ? drawFloat(type) : drawInteger(bits);
    return bits == 64 ? number : number & ((uint64_t(1) << bits) - 1);
  }

private:
  uint64_t drawInteger(int64_t bits) {
    switch (random() % 4) {
    case 0:
      return random() % 16;
    case 1:
      // The smallest, the largest, and their neighbours.
      return (uint64_t(1) << (bits - 1)) - 1 + random() % 3;
    default:
      return random();
    }
  }
  uint64_t drawFloat(LaneType type) {
    // No numbers that some instructions take for zero.
    const double magnitude =
        std::ldexp(1 + static_cast<double>(random() % 4096) / 4096,
                   static_cast<int>(random() % 24) - 8);
    const double values[] = {0,    0.5,   2.5,      3.5,
                             1e10, 65504, HUGE_VAL, std::nan("")};
    const double value =
        (random() % 8 == 0 ? values[random() % 8] : magnitude) *
        (random() % 2 == 0 ? 1 : -1);
    if (type == LaneType::F64)
      return std::bit_cast<uint64_t>(value);
    const auto word = std::bit_cast<uint32_t>(static_cast<float>(value));
    if (type == LaneType::F32)
      return word;
    if (type == LaneType::BF16)
      return word >> 16;
    return random();
  }

  std::mt19937_64 random{7};
};

struct Bytes {
  std::vector<unsigned char> in, out;
};

bool isNaN(Lane lane) {
  const uint64_t exponent = lane.type == LaneType::F64    ? 0x7ff0000000000000
                            : lane.type == LaneType::F32  ? 0x7f800000
                            : lane.type == LaneType::BF16 ? 0x7f80
                                                          : 0x7c00;
  const uint64_t sign = uint64_t(1) << (bitsOf(lane.type) - 1);
  return isFloat(lane.type) && (lane.bits & ~sign) > exponent;
}

/// What the table gives for one call; empty if it reads elsewhere, or compilers
/// differ.
std::vector<Lane> expect(const Intrinsic &intrinsic, const IntrinsicCall &call,
                         Bytes &bytes) {
  std::vector<Argument> arguments;
  for (size_t i = 0; i < intrinsic.parameters.size(); ++i) {
    const ParameterType &type = intrinsic.parameters[i].type;
    const auto place = static_cast<int64_t>(i) * argumentBytes;
    Argument argument;
    if (type.kind == ParameterType::Kind::Pointer) {
      argument.memory = std::as_writable_bytes(std::span(bytes.out).subspan(
          static_cast<size_t>(resultBytes + place), argumentBytes));
      std::memcpy(argument.memory.data(), bytes.in.data() + place,
                  argumentBytes);
    } else if (type.kind == ParameterType::Kind::Immediate) {
      argument.lanes.push_back(
          {type.lane, static_cast<uint32_t>(call.immediate)});
    } else {
      const int64_t bits = bitsOf(type.lane);
      for (int64_t lane = 0; lane < std::max<int64_t>(type.lanes, 1); ++lane) {
        uint64_t value = 0;
        const int64_t first = lane * bits;
        std::memcpy(&value, bytes.in.data() + place + first / 8,
                    static_cast<size_t>(std::max<int64_t>(bits / 8, 1)));
        if (bits == 1)
          value = value >> (first % 8) & 1;
        argument.lanes.push_back({type.lane, value});
      }
    }
    arguments.push_back(std::move(argument));
  }
  const bool isExtreme =
      intrinsic.value.kind == Expression::Kind::FoldMinimum ||
      intrinsic.value.kind == Expression::Kind::FoldMaximum;
  if (isExtreme && std::ranges::any_of(arguments.front().lanes, isNaN))
    return {};
  Result<std::vector<Lane>> result = evaluate(intrinsic, arguments);
  if (!result) {
    EXPECT_NE(result.error().message.find("is not there"), std::string::npos)
        << result.error().message;
    return {};
  }
  return intrinsic.store ? std::vector<Lane>{Lane{}} : *result;
}

/// How many lanes of the result are told, of `lanes`: not those behind the
/// lanes of the only argument, if they are undefined.
size_t definedLanes(const Intrinsic &intrinsic, size_t lanes) {
  const auto isUndefined = [](const Expression &expression) {
    return expression.kind == Expression::Kind::Convert &&
           expression.operands.front().kind == Expression::Kind::Undefined;
  };
  const Expression &value = intrinsic.value;
  if (isUndefined(value))
    return 0;
  if (value.kind == Expression::Kind::Select && isUndefined(value.operands[2]))
    return static_cast<size_t>(intrinsic.parameters.front().type.lanes);
  return lanes;
}

} // namespace

/// Each intrinsic computes what its expression says, whatever the arguments.
TEST(Intrinsics, ComputeWhatTheCPUDoes) {
  Numbers numbers;
  std::set<std::string> skipped;
  int64_t compared = 0;
  for (const IntrinsicCall &call : intrinsicCalls()) {
    const Intrinsic &intrinsic = *IntrinsicTable::x86().find(call.name);
    if (!hasAll(intrinsic.features)) {
      skipped.insert(intrinsic.features);
      continue;
    }
    for (int round = 0; round < 20; ++round) {
      const size_t size = intrinsic.parameters.size() * argumentBytes;
      Bytes bytes{std::vector<unsigned char>(size),
                  std::vector<unsigned char>(resultBytes + size)};
      for (size_t i = 0; i < intrinsic.parameters.size(); ++i) {
        const LaneType lane = intrinsic.parameters[i].type.lane;
        const auto laneBytes =
            static_cast<size_t>(std::max<int64_t>(bitsOf(lane) / 8, 1));
        for (size_t byte = 0; byte < argumentBytes; byte += laneBytes) {
          const uint64_t number =
              numbers.draw(lane == LaneType::Bool ? LaneType::U8 : lane);
          std::memcpy(bytes.in.data() + i * argumentBytes + byte, &number,
                      laneBytes);
        }
      }
      std::vector<unsigned char> out(bytes.out.size());
      const std::vector<Lane> expected = expect(intrinsic, call, bytes);
      if (expected.empty())
        continue;
      ++compared;
      // Aligned, as some loads and stores want it.
      alignas(64) static unsigned char aligned[64 * argumentBytes];
      std::fill(std::begin(aligned), std::end(aligned), 0);
      call.run(bytes.in.data(), aligned);
      std::memcpy(out.data(), aligned, out.size());
      SCOPED_TRACE(std::string(call.name) + " with " +
                   std::to_string(call.immediate));
      if (intrinsic.store) {
        EXPECT_EQ(out, bytes.out);
        continue;
      }
      const size_t lanes = definedLanes(intrinsic, expected.size());
      for (size_t lane = 0; lane < lanes; ++lane) {
        const int64_t bits = bitsOf(intrinsic.result->lane);
        uint64_t value = 0;
        const auto first = static_cast<int64_t>(lane) * bits;
        std::memcpy(&value, out.data() + first / 8,
                    static_cast<size_t>(std::max<int64_t>(bits / 8, 1)));
        if (bits == 1)
          value = value >> (first % 8) & 1;
        const Lane found{intrinsic.result->lane, value};
        EXPECT_TRUE(found == expected[lane] ||
                    (isNaN(found) && isNaN(expected[lane])))
            << "lane " << lane << " is 0x" << std::hex << found.bits
            << " instead of 0x" << expected[lane].bits;
      }
      if (HasFailure())
        break;
    }
  }
  EXPECT_GT(compared, 0);
  for (const std::string &features : skipped)
    std::cerr << "not compared: " << features << "\n";
}
