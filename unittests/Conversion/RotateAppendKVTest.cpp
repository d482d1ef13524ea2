//===- RotateAppendKVTest.cpp - The epilogue of query, key and value ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestMemory.h"

#include <bit>
#include <cstddef>
#include <tuple>

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr int64_t k = 24;
constexpr float epsilon = 1e-3f;

struct RotateCase {
  std::string name;
  int64_t queryHeads, cacheHeads, headDim;
  Kind cacheKind;
  bool bf16Query, bias, norms;
  /// Columns of the matmul's slice.
  int64_t sliceColumns;
  /// Threads that share the columns, the rows and K.
  int64_t columnThreads, rowThreads = 1, partsOfK = 1;

  int64_t threads() const { return columnThreads * rowThreads * partsOfK; }
  int64_t channels() const { return (queryHeads + 2 * cacheHeads) * headDim; }
};
void PrintTo(const RotateCase &test, std::ostream *out) { *out << test.name; }

/// The layers of a weight in memory; only the one that is read holds numbers.
class LayeredWeight {
public:
  LayeredWeight(int64_t size, AlignedBytes &memory, size_t &used)
      : offset(used), stride((size * 4 + 63) / 64 * 64),
        elements{memory.data() + used + CacheShape::layer * stride, false} {
    Elements{memory.data() + used, false}.fill(
        CacheShape::layers * stride / 4,
        std::numeric_limits<float>::quiet_NaN());
    used += CacheShape::layers * stride;
  }
  std::string define(const std::string &name, const std::string &shape,
                     const std::string &packing = "") const {
    std::ostringstream ir;
    ir << "lm.weight @" << name << " : tensor<" << shape << "xf32> layers "
       << CacheShape::layers << " from [\"" << name << "{}\"]" << packing
       << " at " << offset << " stride " << stride << "\n";
    return ir.str();
  }

  int64_t offset, stride;
  Elements elements;
};

class RotateAppendKVTest : public testing::TestWithParam<RotateCase> {
protected:
  RotateAppendKVTest()
      : test(GetParam()), random(5), memory(1 << 21),
        weight((test.channels() + 31) / 32 * 32 * k, memory, used),
        bias(test.channels(), memory, used),
        queryNorm(test.headDim, memory, used),
        keyNorm(test.headDim, memory, used), tableOffset(used),
        table{memory.data() + used, false},
        sumsOffset(tableOffset + maxTokens * test.headDim * 4),
        activations(false, k, test.bf16Query, test.queryHeads * test.headDim,
                    8) {
    for (int64_t n = 0; n < test.channels(); ++n)
      for (int64_t i = 0; i < k; ++i)
        weight.elements.set(packed(n, i), uniform(random));
    bias.elements.fillRandom(test.channels(), random);
    queryNorm.elements.fillRandom(test.headDim, random);
    keyNorm.elements.fillRandom(test.headDim, random);
    table.fillRandom(maxTokens * test.headDim, random);
    activations.input.fillRandom(maxTokens * k, random);
  }

  int64_t packed(int64_t n, int64_t i) const {
    return (n / 32 * k + i) * 32 + n % 32;
  }
  int64_t sumsBytes() const {
    return test.partsOfK * maxTokens * ((test.channels() + 31) / 32 * 32) * 4 +
           64;
  }
  std::string source() const;
  /// The head of a token as it is stored, one value for each channel.
  std::vector<double> expectedHead(int64_t token, int64_t head) const;
  void check(CompiledProgram &program, const std::vector<int32_t> &positions,
             const std::vector<int32_t> &sequences);

  const RotateCase &test;
  std::mt19937 random;
  std::uniform_real_distribution<float> uniform{-1, 1};
  AlignedBytes memory;
  size_t used = 0;
  LayeredWeight weight, bias, queryNorm, keyNorm;
  size_t tableOffset;
  Elements table;
  size_t sumsOffset;
  Activations activations;
};

std::string RotateAppendKVTest::source() const {
  CacheShape cache{test.cacheHeads, test.headDim, test.cacheKind};
  std::ostringstream ir;
  std::string headDim = std::to_string(test.headDim);
  std::string tableType = "memref<?x" + headDim + "xf32>";
  std::string sumsType = "memref<" + std::to_string(sumsBytes()) + "xi8>";
  ir << weight.define(
            "w", std::to_string(test.channels()) + "x" + std::to_string(k),
            " packing #gemm.packing<panel = 32, tile = 32, k_step = 1, "
            "k_pack = 1>")
     << bias.define("b", std::to_string(test.channels()))
     << queryNorm.define("query_norm", headDim)
     << keyNorm.define("key_norm", headDim) << "func.func @program("
     << programArguments(cache.type()) << ") attributes {"
     << programAttribute(test.threads(), maxTokens)
     << "} {\n%c0 = arith.constant 0 : index\n"
        "%tokens = memref.dim %positions, %c0 : memref<?xi32>\n"
     << activations.views("%tokens", "%tokens")
     << "%table_offset = arith.constant " << tableOffset
     << " : index\n%table = memref.view %weights[%table_offset][%tokens] : "
        "memref<?xi8> to "
     << tableType << "\n%sums_offset = arith.constant " << sumsOffset
     << " : index\n%sums = memref.view %weights[%sums_offset][] : "
        "memref<?xi8> to "
     << sumsType << "\n%layer = arith.constant " << CacheShape::layer
     << " : index\ngemm.matmul %input, @w" << (test.bias ? " bias @b" : "")
     << "[%layer] epilogue(<rotate_append_kv>) rotary(%table : " << tableType
     << ") cache(%cache : " << cache.type()
     << ") slots(%slots : memref<?xi32>) "
     << (test.norms ? "query_norm @query_norm key_norm @key_norm "
                      "epsilon 1.0e-3 "
                    : "")
     << "schedules(<? : <micro_kernel = X86_AVX2_F32_2x32, slice = [7, "
     << test.sliceColumns << ", 16], threads = [" << test.rowThreads << ", "
     << test.columnThreads << ", " << test.partsOfK
     << "], prefetch = [0, 0]>>) partial_sums(%sums : " << sumsType
     << ") into %destination : " << activations.inputType() << " into "
     << activations.destinationType() << "\nreturn\n}\n";
  return ir.str();
}

std::vector<double> RotateAppendKVTest::expectedHead(int64_t token,
                                                     int64_t head) const {
  std::vector<double> x(test.headDim), result(test.headDim);
  double squares = 0;
  for (int64_t c = 0; c < test.headDim; ++c) {
    int64_t n = head * test.headDim + c;
    if (test.bias)
      x[c] = bias.elements.get(n);
    for (int64_t i = 0; i < k; ++i)
      x[c] += static_cast<double>(activations.input.get(token * k + i)) *
              weight.elements.get(packed(n, i));
    squares += x[c] * x[c];
  }
  if (head >= test.queryHeads + test.cacheHeads)
    return x;
  const Elements &norm =
      (head < test.queryHeads ? queryNorm : keyNorm).elements;
  if (test.norms)
    for (int64_t c = 0; c < test.headDim; ++c)
      x[c] *= norm.get(c) / std::sqrt(squares / test.headDim + epsilon);
  int64_t half = test.headDim / 2;
  for (int64_t c = 0; c < half; ++c) {
    double cosine = table.get(token * test.headDim + c);
    double sine = table.get(token * test.headDim + half + c);
    result[c] = x[c] * cosine - x[c + half] * sine;
    result[c + half] = x[c + half] * cosine + x[c] * sine;
  }
  return result;
}

void RotateAppendKVTest::check(CompiledProgram &program,
                               const std::vector<int32_t> &positions,
                               const std::vector<int32_t> &sequences) {
  int64_t tokens = positions.size();
  constexpr int64_t numSequences = maxTokens, blocksPerSequence = 4;
  Cache cache({test.cacheHeads, test.headDim, test.cacheKind},
              std::vector<int64_t>(numSequences, blocksPerSequence), random);
  ProgramBuffers buffers;
  activations.describe(buffers);
  cache.describe(buffers);
  buffers.weights = memory.data();
  buffers.positions = positions;
  for (int64_t t = 0; t < tokens; ++t)
    buffers.cacheSlots.push_back(
        static_cast<int32_t>(cache.slot(sequences[t], positions[t])));
  activations.resetDestination();
  program.runTeam(buffers.step(), static_cast<int32_t>(test.threads()));

  auto expectAndErase = [&](int64_t index, double expected) {
    double result = cache.elements.get(index);
    ASSERT_TRUE(std::abs(result - expected) <=
                tolerance(expected, test.cacheKind))
        << result << " instead of " << expected;
    cache.elements.set(index, std::numeric_limits<float>::quiet_NaN());
  };
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < test.queryHeads + 2 * test.cacheHeads; ++h) {
      std::vector<double> head = expectedHead(t, h);
      int64_t key = h - test.queryHeads, value = key - test.cacheHeads;
      for (int64_t c = 0; c < test.headDim; ++c) {
        SCOPED_TRACE(testing::Message() << "token " << t << " of " << tokens
                                        << " head " << h << " channel " << c);
        if (key < 0)
          activations.expectNear(t, h * test.headDim + c, head[c]);
        else if (value < 0)
          expectAndErase(cache.key(sequences[t], positions[t], key, c),
                         head[c]);
        else
          expectAndErase(cache.value(sequences[t], positions[t], value, c),
                         head[c]);
        if (HasFatalFailure())
          return;
      }
    }
  activations.expectRestUntouched(tokens);
  for (int64_t i = 0; i < cache.size(); ++i)
    ASSERT_TRUE(std::isnan(cache.elements.get(i)))
        << "element " << i << " of the cache was written";
}

TEST_P(RotateAppendKVTest, MatchesNaiveLoops) {
  auto program = CompiledProgram::compile(
      source(),
      {.passes = "gemm-dispatch,gemm-split-k,gemm-polymerize,gemm-to-loops",
       .expandBF16 = !hasBF16("host")});
  ASSERT_TRUE(program) << program.error().message << source();
  for (int64_t tokens : tokenCounts) {
    // Each token of a sequence of its own, then all of one.
    std::vector<int32_t> positions, sequences;
    for (int64_t t = 0; t < tokens; ++t) {
      positions.push_back(random() % (4 * blockTokens));
      sequences.push_back(static_cast<int32_t>(tokens - 1 - t));
    }
    ASSERT_NO_FATAL_FAILURE(check(**program, positions, sequences));
    std::iota(positions.begin(), positions.end(), 5);
    ASSERT_NO_FATAL_FAILURE(
        check(**program, positions, std::vector<int32_t>(tokens, 3)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Heads, RotateAppendKVTest,
    testing::Values(
        RotateCase{"F32", 2, 2, 64, Kind::F32, false, false, false, 64, 1},
        RotateCase{"BF16Bias", 3, 1, 128, Kind::BF16, true, true, false, 256,
                   2},
        RotateCase{"NormsAndBias", 4, 2, 48, Kind::F32, true, true, true, 192,
                   3},
        RotateCase{"Norms", 2, 2, 128, Kind::F16, false, false, true, 128, 2},
        RotateCase{"Rows", 2, 2, 64, Kind::F32, true, true, true, 128, 2, 3},
        RotateCase{"PartsOfK", 3, 1, 64, Kind::F16, true, true, true, 64, 1, 1,
                   3},
        RotateCase{"AllShared", 4, 2, 48, Kind::F16, false, true, true, 96, 2,
                   2, 2},
        RotateCase{"NarrowHeads", 6, 2, 10, Kind::BF16, true, false, true, 160,
                   1}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// The bits of `value` as an element, rounded to the nearest, ties to even.
uint32_t roundedBits(float value, Kind kind) {
  unsigned char bytes[4] = {};
  Elements element(bytes, kind);
  element.set(0, value);
  uint32_t bits;
  std::memcpy(&bits, bytes, 4);
  return bits;
}

/// Numbers of every size, the ones that are hard to round among them: ties,
/// subnormal and the largest ones of each type, and their neighbours.
std::vector<float> numbersToRound() {
  std::vector<float> numbers;
  auto addAround = [&](uint32_t bits) {
    for (uint32_t sign : {0u, 0x80000000u})
      for (int32_t step : {-1, 0, 1})
        numbers.push_back(
            std::bit_cast<float>(sign | (bits + static_cast<uint32_t>(step))));
  };
  // One in the middle between two bf16, and one between two f16, of every
  // exponent, with the lower of both even and odd; 0 and infinity are not.
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    for (uint32_t fraction : {0x8000u, 0x18000u, 0x1000u, 0x3000u, 0x7fffffu})
      addAround(exponent << 23 | fraction);
  // From where f16 is subnormal, down to where it is zero.
  for (uint32_t bits : {0x38800000u, 0x387fe000u, 0x33800000u, 0x33000000u})
    addAround(bits);
  return numbers;
}

class RoundsEveryNumberTest
    : public testing::TestWithParam<std::tuple<Kind, std::string>> {};

TEST_P(RoundsEveryNumberTest, ToNearestTiesToEven) {
  const auto &[kind, target] = GetParam();
  if (!hostRuns(target))
    GTEST_SKIP() << "this CPU does not run code for " << target;
  // What is multiplied is zero: the biases are what is stored, and the rotation
  // is by no angle.
  constexpr int64_t headDim = 64, channels = 3 * headDim;
  CacheShape shape{1, headDim, kind};
  AlignedBytes memory(1 << 16);
  std::memset(memory.data(), 0, 1 << 16);
  size_t used = 0;
  LayeredWeight weight(channels * k, memory, used);
  LayeredWeight bias(channels, memory, used);
  weight.elements.fill(channels * k, 0);
  size_t tableOffset = used;
  Elements table{memory.data() + tableOffset, false};
  table.fill(headDim / 2, 1);
  Activations activations(false, k, false, headDim, 0);
  activations.input.fill(k, 0);

  std::ostringstream ir;
  ir << weight.define("w", "192x24",
                      " packing #gemm.packing<panel = 32, tile = 32, k_step = "
                      "1, k_pack = 1>")
     << bias.define("b", "192") << "func.func @program("
     << programArguments(shape.type()) << ") attributes {"
     << programAttribute(1, maxTokens)
     << "} {\n%c0 = arith.constant 0 : index\n"
        "%tokens = memref.dim %positions, %c0 : memref<?xi32>\n"
     << activations.views("%tokens", "%tokens")
     << "%table_offset = arith.constant " << tableOffset
     << " : index\n%table = memref.view %weights[%table_offset][%tokens] : "
        "memref<?xi8> to memref<?x64xf32>\n%layer = arith.constant "
     << CacheShape::layer
     << " : index\ngemm.matmul %input, @w bias @b[%layer] "
        "epilogue(<rotate_append_kv>) rotary(%table : memref<?x64xf32>) "
        "cache(%cache : "
     << shape.type()
     << ") slots(%slots : memref<?xi32>) "
        "schedules(<? : <micro_kernel = X86_AVX2_F32_2x32, slice = [7, 64, "
        "16], threads = [1, 1, 1], prefetch = [0, 0]>>) into %destination : "
     << activations.inputType() << " into " << activations.destinationType()
     << "\nreturn\n}\n";
  auto program = CompiledProgram::compile(
      ir.str(),
      {.passes = "gemm-dispatch,gemm-split-k,gemm-polymerize,gemm-to-loops",
       .target = target,
       .expandBF16 = !hasBF16(target)});
  ASSERT_TRUE(program) << program.error().message << ir.str();

  const std::vector<float> numbers = numbersToRound();
  std::mt19937 random(1);
  Cache cache(shape, {1}, random);
  ProgramBuffers buffers;
  activations.describe(buffers);
  cache.describe(buffers);
  buffers.weights = memory.data();
  buffers.positions = {0};
  buffers.cacheSlots = {static_cast<int32_t>(cache.slot(0, 0))};
  auto stored = [&](int64_t index) {
    const unsigned bytes = kind == Kind::F32 ? 4 : 2;
    uint32_t bits = 0;
    std::memcpy(&bits, cache.elements.base + index * bytes, bytes);
    return bits;
  };
  auto expectRounded = [&](int64_t index, float number) {
    EXPECT_EQ(stored(index), roundedBits(number, kind))
        << std::hexfloat << number << " " << std::bit_cast<uint32_t>(number);
  };
  for (size_t first = 0; first + headDim <= numbers.size(); first += headDim) {
    for (int64_t c = 0; c < headDim; ++c)
      for (int64_t part : {1, 2})
        bias.elements.set(part * headDim + c, numbers[first + c]);
    (*program)->run(buffers.step(), 0);
    for (int64_t c = 0; c < headDim; ++c) {
      expectRounded(cache.key(0, 0, 0, c), numbers[first + c]);
      expectRounded(cache.value(0, 0, 0, c), numbers[first + c]);
    }
    ASSERT_FALSE(HasFailure());
  }

  // What is no number stays so, with any bits, and what is infinite, too.
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> others = {infinity, -infinity,
                                     std::bit_cast<float>(0x7fffffffu),
                                     std::bit_cast<float>(0xff800001u)};
  for (size_t i = 0; i < others.size(); ++i)
    bias.elements.set(2 * headDim + i, others[i]);
  (*program)->run(buffers.step(), 0);
  for (size_t i = 0; i < others.size(); ++i) {
    float result = cache.elements.get(cache.value(0, 0, 0, i));
    EXPECT_EQ(std::isnan(result), std::isnan(others[i])) << i;
    EXPECT_TRUE(std::isnan(result) || result == others[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Elements, RoundsEveryNumberTest,
    testing::Combine(testing::Values(Kind::F32, Kind::BF16, Kind::F16),
                     testing::Values("x86-64-avx2", "x86-64-avx512",
                                     "x86-64-avx512-bf16")),
    [](const auto &info) {
      std::string name =
          elementName(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
      std::ranges::replace(name, '-', '_');
      return name;
    });

} // namespace
