//===- LMToLoopsTest.cpp - lm operations against naive loops --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JitTest.h"
#include "TestMemory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// A phase program around `body`, after `globals`.
std::string makeProgram(const std::string &globals, int64_t threads,
                        const std::string &cache, const std::string &body) {
  return globals + "func.func @program(" + programArguments(cache) +
         ") attributes {" + programAttribute(threads, maxTokens) +
         "} {\n%c0 = arith.constant 0 : index\n"
         "%tokens = memref.dim %positions, %c0 : memref<?xi32>\n" +
         body + "return\n}\n";
}

std::unique_ptr<CompiledProgram> compile(const std::string &source,
                                         const std::string &target = "host") {
  CompileOptions options;
  options.passes = "lm-to-loops{target=" + target + "}";
  options.target = targetToRun(target);
  if (options.target != target)
    options.passes += ",test-emulate-amx";
  options.expandBF16 = !hasBF16(options.target);
  auto program = CompiledProgram::compile(source, options);
  EXPECT_TRUE(program) << program.error().message << source;
  return program ? std::move(*program) : nullptr;
}

void runTeam(CompiledProgram &program, ProgramBuffers &buffers,
             int64_t threads) {
  for (int64_t thread = 0; thread < threads; ++thread)
    program.run(buffers.step(), static_cast<int32_t>(thread));
}

/// Runs `program` for each number of tokens: row t of the destination must be
/// `expected(t)`, `error(t)` apart, and nothing else be written.
void expectRows(
    CompiledProgram &program, ProgramBuffers &buffers, Activations &activations,
    int64_t threads,
    const std::function<std::vector<double>(int64_t)> &expected,
    const std::function<double(int64_t)> &error = [](int64_t) { return 0; }) {
  for (int64_t tokens : tokenCounts) {
    buffers.positions.assign(tokens, 0);
    activations.resetDestination();
    runTeam(program, buffers, threads);
    for (int64_t t = 0; t < tokens; ++t) {
      const std::vector<double> row = expected(t);
      for (size_t c = 0; c < row.size(); ++c)
        ASSERT_NO_FATAL_FAILURE(activations.expectNear(
            t, static_cast<int64_t>(c), row[c], error(t)));
    }
    activations.expectRestUntouched(tokens);
  }
}

//===----------------------------------------------------------------------===//
// lm.embed
//===----------------------------------------------------------------------===//

struct EmbedCase {
  std::string name;
  int64_t channels;
  bool bf16;
  int64_t threads;
  /// panel, tile, k_step and k_pack; empty for a row-major weight.
  std::vector<int64_t> packing = {};
};
void PrintTo(const EmbedCase &test, std::ostream *out) { *out << test.name; }
class EmbedTest : public testing::TestWithParam<EmbedCase> {};

TEST_P(EmbedTest, CopiesRows) {
  const EmbedCase &test = GetParam();
  constexpr int64_t vocabulary = 75, offset = 64;
  std::mt19937 random(1);
  int64_t rows = vocabulary;
  std::string packing;
  if (!test.packing.empty()) {
    int64_t panel = test.packing[0];
    rows = (vocabulary + panel - 1) / panel * panel;
    std::ostringstream text;
    text << " packing #gemm.packing<panel = " << panel
         << ", tile = " << test.packing[1] << ", k_step = " << test.packing[2]
         << ", k_pack = " << test.packing[3] << ">";
    packing = text.str();
  }
  int64_t bytes = offset + rows * test.channels * 4;
  AlignedBytes weights(bytes);
  Elements weight{weights.data() + offset, test.bf16};
  weight.fillRandom(rows * test.channels, random);
  auto place = [&](int64_t n, int64_t k) {
    if (test.packing.empty())
      return n * test.channels + k;
    int64_t panel = test.packing[0], tile = test.packing[1],
            step = test.packing[2], pack = test.packing[3];
    int64_t result = n / panel;
    result = result * (test.channels / step) + k / step;
    result = result * (panel / tile) + n % panel / tile;
    result = result * (step / pack) + k % step / pack;
    result = result * tile + n % tile;
    return result * pack + k % pack;
  };

  Activations activations(false, 1, false, test.channels, 5);
  std::ostringstream globals;
  globals << "lm.weight @embedding : tensor<" << vocabulary << "x"
          << test.channels << "x" << elementName(test.bf16)
          << "> from [\"embedding\"]" << packing << " at " << offset << "\n";
  std::unique_ptr<CompiledProgram> program = compile(
      makeProgram(globals.str(), test.threads, "memref<?x1x1x2x16xf16>",
                  activations.views("%tokens", "%tokens") +
                      "lm.embed %token_ids, @embedding into %destination : "
                      "memref<?xi32> into " +
                      activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  buffers.weights = weights.data();
  for (int64_t tokens : tokenCounts) {
    buffers.positions.assign(tokens, 0);
    buffers.tokenIds.clear();
    for (int64_t t = 0; t < tokens; ++t)
      buffers.tokenIds.push_back(random() % vocabulary);
    if (tokens > 1)
      buffers.tokenIds[1] = vocabulary - 1;
    activations.resetDestination();
    runTeam(*program, buffers, test.threads);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < test.channels; ++c)
        ASSERT_EQ(activations.destination.get(t * activations.stride + c),
                  weight.get(place(buffers.tokenIds[t], c)));
    activations.expectRestUntouched(tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Weights, EmbedTest,
    testing::Values(EmbedCase{"RowMajorBF16", 64, true, 1},
                    EmbedCase{"RowMajorF32Tail", 50, false, 2},
                    EmbedCase{"PackedPairs", 64, true, 3, {32, 32, 2, 2}},
                    EmbedCase{"PackedTiles", 96, true, 2, {64, 16, 32, 2}},
                    EmbedCase{"PackedF32", 50, false, 3, {32, 32, 1, 1}},
                    EmbedCase{"PackedBF16Single", 48, true, 1, {32, 32, 1, 1}}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// lm.rms_norm
//===----------------------------------------------------------------------===//

struct NormCase {
  std::string name;
  int64_t channels;
  /// Of the weight.
  int64_t size;
  bool bf16Input, bf16Weight, bf16Result;
  int64_t threads;
  /// Whether the second of two layers is read.
  bool layers = false;
};
void PrintTo(const NormCase &test, std::ostream *out) { *out << test.name; }
class RMSNormTest : public testing::TestWithParam<NormCase> {};

TEST_P(RMSNormTest, NormalizesGroups) {
  const NormCase &test = GetParam();
  constexpr float epsilon = 1e-3f;
  std::mt19937 random(2);
  int64_t stride = (test.size * 4 + 63) / 64 * 64;
  AlignedBytes weights(2 * stride);
  Elements other{weights.data(), false};
  other.fill(2 * stride / 4, std::numeric_limits<float>::quiet_NaN());
  Elements weight{weights.data() + (test.layers ? stride : 0), test.bf16Weight};
  weight.fillRandom(test.size, random);
  Activations activations(test.bf16Input, test.channels, test.bf16Result,
                          test.channels, 32);
  activations.input.fillRandom(maxTokens * test.channels, random);

  std::ostringstream globals;
  globals << "lm.weight @norm : tensor<" << test.size << "x"
          << elementName(test.bf16Weight) << ">"
          << (test.layers ? " layers 2 from [\"norm{}\"]" : " from [\"norm\"]")
          << " at 0";
  if (test.layers)
    globals << " stride " << stride;
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      globals.str() + "\n", test.threads, "memref<?x1x1x2x16xf16>",
      activations.views("%tokens", "%tokens") +
          "%layer = arith.constant 1 : index\n"
          "lm.rms_norm %input, @norm" +
          (test.layers ? "[%layer]" : "") +
          " epsilon 1.0e-3 into %destination : " + activations.inputType() +
          " into " + activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  buffers.weights = weights.data();
  expectRows(*program, buffers, activations, test.threads, [&](int64_t t) {
    std::vector<double> row(test.channels);
    for (int64_t c = 0; c < test.channels; ++c) {
      int64_t first = t * test.channels + c / test.size * test.size;
      double squares = 0;
      for (int64_t i = 0; i < test.size; ++i)
        squares += std::pow<double>(activations.input.get(first + i), 2);
      row[c] = activations.input.get(t * test.channels + c) /
               std::sqrt(squares / test.size + epsilon) *
               weight.get(c % test.size);
    }
    return row;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RMSNormTest,
    testing::Values(NormCase{"Rows", 256, 256, false, false, true, 2},
                    NormCase{"RowsTail", 211, 211, false, true, false, 3},
                    NormCase{"Layers", 160, 160, true, true, true, 1, true},
                    NormCase{"Heads", 384, 128, true, false, false, 3},
                    NormCase{"NarrowHeads", 30, 10, false, false, false, 2},
                    NormCase{"HeadsOf48", 96, 48, false, true, true, 2, true}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// lm.layer_norm
//===----------------------------------------------------------------------===//

class LayerNormTest : public testing::TestWithParam<NormCase> {};

TEST_P(LayerNormTest, NormalizesRows) {
  const NormCase &test = GetParam();
  constexpr float epsilon = 1e-3f;
  std::mt19937 random(3);
  const int64_t stride = (test.channels * 4 + 63) / 64 * 64;
  AlignedBytes weights(4 * stride);
  Elements others{weights.data(), false};
  others.fill(4 * stride / 4, std::numeric_limits<float>::quiet_NaN());
  const int64_t layer = test.layers ? stride : 0;
  Elements weight{weights.data() + layer, test.bf16Weight};
  Elements bias{weights.data() + 2 * stride + layer, test.bf16Weight};
  weight.fillRandom(test.channels, random);
  bias.fillRandom(test.channels, random);
  Activations activations(test.bf16Input, test.channels, test.bf16Result,
                          test.channels, 32);
  activations.input.fillRandom(maxTokens * test.channels, random);
  // A row far from zero, whose mean square tells little of its variance.
  for (int64_t c = 0; c < test.channels; ++c)
    activations.input.set(c, activations.input.get(c) + 64);

  std::ostringstream globals;
  for (int64_t number : {0, 1}) {
    globals << "lm.weight @" << (number == 0 ? "norm" : "bias") << " : tensor<"
            << test.channels << "x" << elementName(test.bf16Weight) << ">"
            << (test.layers ? " layers 2 from [\"norm{}\"]"
                            : " from [\"norm\"]")
            << " at " << 2 * number * stride;
    if (test.layers)
      globals << " stride " << stride;
    globals << "\n";
  }
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      globals.str(), test.threads, "memref<?x1x1x2x16xf16>",
      activations.views("%tokens", "%tokens") +
          "%layer = arith.constant 1 : index\n"
          "lm.layer_norm %input, @norm bias @bias" +
          (test.layers ? "[%layer]" : "") +
          " epsilon 1.0e-3 into %destination : " + activations.inputType() +
          " into " + activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  buffers.weights = weights.data();
  // Of rounding the mean of numbers near 64 to f32.
  auto error = [](int64_t t) { return t == 0 ? 2e-5 : 0.0; };
  auto expected = [&](int64_t t) {
    auto x = [&](int64_t c) -> double {
      return activations.input.get(t * test.channels + c);
    };
    const auto channels = static_cast<double>(test.channels);
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < test.channels; ++c)
      mean += x(c) / channels;
    for (int64_t c = 0; c < test.channels; ++c)
      variance += std::pow(x(c) - mean, 2) / channels;
    std::vector<double> row(test.channels);
    for (int64_t c = 0; c < test.channels; ++c)
      row[c] = (x(c) - mean) / std::sqrt(variance + epsilon) * weight.get(c) +
               bias.get(c);
    return row;
  };
  expectRows(*program, buffers, activations, test.threads, expected, error);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LayerNormTest,
    testing::Values(NormCase{"Rows", 256, 256, false, false, false, 2},
                    NormCase{"RowsTail", 211, 211, false, true, true, 3},
                    NormCase{"Layers", 160, 160, true, true, true, 1, true},
                    NormCase{"Narrow", 10, 10, false, false, false, 2},
                    NormCase{"BertBase", 768, 768, false, false, true, 2,
                             true}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// lm.gelu
//===----------------------------------------------------------------------===//

struct GeluCase {
  std::string name, kind;
  int64_t channels;
  bool bf16Input, bf16Result;
  int64_t threads;
};
void PrintTo(const GeluCase &test, std::ostream *out) { *out << test.name; }
class GeluTest : public testing::TestWithParam<GeluCase> {};

TEST_P(GeluTest, MatchesLibrary) {
  const GeluCase &test = GetParam();
  Activations activations(test.bf16Input, test.channels, test.bf16Result,
                          test.channels, 16);
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      "", test.threads, "memref<?x1x1x2x16xf16>",
      activations.views("%tokens", "%tokens") + "lm.gelu %input <" + test.kind +
          ">"
          " into %destination : " +
          activations.inputType() + " into " + activations.destinationType() +
          "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  // From where nothing is left to where nothing is lost, with both zeros and
  // what an overflowed sum would be.
  const int64_t count = maxTokens * test.channels;
  for (int64_t i = 0; i < count; ++i)
    activations.input.set(
        i, static_cast<float>(-12 + 24.0 * static_cast<double>(i) /
                                        static_cast<double>(count)));
  const std::vector<float> special = {0.0f,    -0.0f, 1e-30f,
                                      -1e-30f, 1e4f,  -1e4f};
  for (size_t i = 0; i < special.size(); ++i)
    activations.input.set(static_cast<int64_t>(i), special[i]);
  buffers.positions.assign(maxTokens, 0);
  activations.resetDestination();
  runTeam(*program, buffers, test.threads);
  for (int64_t t = 0; t < maxTokens; ++t)
    for (int64_t c = 0; c < test.channels; ++c)
      ASSERT_NO_FATAL_FAILURE(activations.expectNear(
          t, c, gelu(activations.input.get(t * test.channels + c), test.kind)))
          << "of " << activations.input.get(t * test.channels + c);
  activations.expectRestUntouched(maxTokens);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GeluTest,
    testing::Values(GeluCase{"Exact", "exact", 256, false, false, 2},
                    GeluCase{"ExactTailBF16", "exact", 50, true, true, 3},
                    GeluCase{"Tanh", "tanh", 256, false, false, 1},
                    GeluCase{"TanhTail", "tanh", 37, false, true, 2}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// lm.tanh, lm.l2_normalize, lm.pool, lm.embed of positions
//===----------------------------------------------------------------------===//

/// A program of `operation` on `%input` for all tokens.
std::string makeRowProgram(const Activations &activations,
                           const std::string &operation, int64_t threads) {
  return makeProgram("", threads, "memref<?x1x1x2x16xf16>",
                     activations.views("%tokens", "%tokens") + operation +
                         " into %destination : " + activations.inputType() +
                         " into " + activations.destinationType() + "\n");
}

TEST(TanhTest, MatchesLibrary) {
  constexpr int64_t channels = 37, threads = 2;
  Activations activations(false, channels, false, channels, 11);
  std::unique_ptr<CompiledProgram> program =
      compile(makeRowProgram(activations, "lm.tanh %input", threads));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  const int64_t count = maxTokens * channels;
  for (int64_t i = 0; i < count; ++i)
    activations.input.set(
        i, static_cast<float>(-12 + 24.0 * static_cast<double>(i) /
                                        static_cast<double>(count)));
  const std::vector<float> special = {0.0f, -0.0f, 1e-6f, -1e-6f, 1e4f, -1e4f};
  for (size_t i = 0; i < special.size(); ++i)
    activations.input.set(static_cast<int64_t>(i), special[i]);
  expectRows(*program, buffers, activations, threads, [&](int64_t t) {
    std::vector<double> row;
    for (int64_t c = 0; c < channels; ++c)
      row.push_back(std::tanh(activations.input.get(t * channels + c)));
    return row;
  });
}

TEST(L2NormalizeTest, MatchesPlainLoop) {
  for (int64_t channels : {3, 75, 256}) {
    for (bool bf16 : {false, true}) {
      constexpr int64_t threads = 3;
      Activations activations(false, channels, bf16, channels, 11);
      std::unique_ptr<CompiledProgram> program = compile(
          makeRowProgram(activations, "lm.l2_normalize %input", threads));
      ASSERT_TRUE(program);
      std::mt19937 random(4);
      activations.input.fillRandom(maxTokens * channels, random);
      // Zeros stay zeros.
      for (int64_t c = 0; c < channels; ++c)
        activations.input.set(c, 0);
      ProgramBuffers buffers;
      activations.describe(buffers);
      expectRows(*program, buffers, activations, threads, [&](int64_t t) {
        std::vector<double> row;
        double squares = 0;
        for (int64_t c = 0; c < channels; ++c) {
          row.push_back(activations.input.get(t * channels + c));
          squares += row.back() * row.back();
        }
        for (double &value : row)
          value /= std::max(std::sqrt(squares), 1e-12);
        return row;
      });
    }
  }
}

TEST(PoolTest, MakesARowOfEachSegment) {
  for (const std::string kind : {"cls", "mean", "last"}) {
    for (int64_t threads : {1, 3}) {
      constexpr int64_t channels = 75;
      Activations activations(false, channels, false, channels, 11);
      std::unique_ptr<CompiledProgram> program = compile(makeProgram(
          "", threads, "memref<?x1x1x2x16xf16>",
          "%rows = memref.dim %logit_rows, %c0 : memref<?xi32>\n" +
              activations.views("%tokens", "%rows") +
              "lm.pool %input, "
              "%segments <" +
              kind + "> into %destination : " + activations.inputType() +
              ", memref<?x4xi32> into " + activations.destinationType() +
              "\n"));
      ASSERT_TRUE(program);
      std::mt19937 random(7);
      activations.input.fillRandom(maxTokens * channels, random);
      ProgramBuffers buffers;
      activations.describe(buffers);
      buffers.positions.assign(maxTokens, 0);
      // 1, 2, 3 and so on tokens, as long as there are some.
      for (int32_t first = 0, tokens = 1; first + tokens <= maxTokens;
           first += tokens++) {
        buffers.segments.push_back({first, tokens, 0, 0});
        buffers.logitRows.push_back(first);
      }
      // In f32 the ones would vanish beside what the sum is already.
      for (int64_t token = 0; token < maxTokens; ++token)
        activations.input.set(token * channels, 1);
      for (const SandwichSegment &segment : buffers.segments)
        activations.input.set(segment.first_token * channels, 0x1p24f);
      activations.resetDestination();
      runTeam(*program, buffers, threads);
      for (size_t row = 0; row < buffers.segments.size(); ++row) {
        const SandwichSegment &segment = buffers.segments[row];
        for (int64_t c = 0; c < channels; ++c) {
          auto at = [&](int64_t token) {
            return double(activations.input.get(
                (segment.first_token + token) * channels + c));
          };
          double expected = 0;
          if (kind == "mean") {
            for (int64_t t = 0; t < segment.num_tokens; ++t)
              expected += at(t) / segment.num_tokens;
          } else {
            expected = at(kind == "cls" ? 0 : segment.num_tokens - 1);
          }
          ASSERT_NO_FATAL_FAILURE(
              activations.expectNear(static_cast<int64_t>(row), c, expected));
        }
      }
      if (kind == "mean")
        for (size_t row = 0; row < buffers.segments.size(); ++row) {
          const double tokens = buffers.segments[row].num_tokens;
          EXPECT_EQ(activations.destination.get(static_cast<int64_t>(row) *
                                                activations.stride),
                    static_cast<float>((0x1p24 + tokens - 1) / tokens));
        }
      activations.expectRestUntouched(
          static_cast<int64_t>(buffers.segments.size()));
    }
  }
}

TEST(EmbedPositionsTest, LooksUpPositionsFromTheFirstOn) {
  constexpr int64_t channels = 50, threads = 2, rows = maxTokens + 2;
  AlignedBytes weights(rows * channels * 4);
  Elements weight{weights.data(), false};
  std::mt19937 random(3);
  weight.fillRandom(rows * channels, random);
  Activations activations(false, 1, false, channels, 5);
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      "lm.weight @positions : tensor<" + std::to_string(rows) + "x" +
          std::to_string(channels) + "xf32> from [\"p\"] at 0\n",
      threads, "memref<?x1x1x2x16xf16>",
      activations.views("%tokens", "%tokens") +
          "lm.embed %positions, @positions of <positions> offset 2 into "
          "%destination : memref<?xi32> into " +
          activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  buffers.weights = weights.data();
  for (int32_t t = 0; t < maxTokens; ++t)
    buffers.positions.push_back(static_cast<int32_t>(maxTokens) - 1 - t);
  activations.resetDestination();
  runTeam(*program, buffers, threads);
  for (int64_t t = 0; t < maxTokens; ++t)
    for (int64_t c = 0; c < channels; ++c)
      ASSERT_EQ(activations.destination.get(t * activations.stride + c),
                weight.get((buffers.positions[t] + 2) * channels + c));
  activations.expectRestUntouched(maxTokens);
}

//===----------------------------------------------------------------------===//
// lm.round
//===----------------------------------------------------------------------===//

TEST(RoundTest, RoundsToNearestEven) {
  constexpr int64_t channels = 37, threads = 2;
  Activations activations(false, channels, true, channels, 11);
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      "", threads, "memref<?x1x1x2x16xf16>",
      activations.views("%tokens", "%tokens") +
          "lm.round %input into %destination : " + activations.inputType() +
          " into " + activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  std::mt19937 random(4);
  activations.input.fillRandom(maxTokens * channels, random);
  // Halfway between two numbers of bf16.
  activations.input.set(0, 1 + 1.0f / 256);
  activations.input.set(1, 1 + 3.0f / 256);
  ProgramBuffers buffers;
  activations.describe(buffers);
  for (int64_t tokens : tokenCounts) {
    buffers.positions.assign(tokens, 0);
    activations.resetDestination();
    runTeam(*program, buffers, threads);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < channels; ++c)
        ASSERT_EQ(activations.destination.get(t * activations.stride + c),
                  fromBF16(toBF16(activations.input.get(t * channels + c))));
    activations.expectRestUntouched(tokens);
  }
}

//===----------------------------------------------------------------------===//
// lm.rotary_table
//===----------------------------------------------------------------------===//

class RotaryTableTest : public testing::TestWithParam<int64_t> {};

TEST_P(RotaryTableTest, MatchesLibraryToTheLastBits) {
  int64_t half = GetParam();
  constexpr int64_t threads = 3;
  std::vector<float> frequencies;
  std::ostringstream list;
  for (int64_t i = 0; i < half; ++i) {
    frequencies.push_back(
        std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(half)));
    list << (i ? ", " : "") << std::scientific << std::setprecision(9)
         << frequencies[i];
  }
  Activations activations(false, 1, false, 2 * half, 3);
  std::unique_ptr<CompiledProgram> program = compile(
      makeProgram("", threads, "memref<?x1x1x2x16xf16>",
                  activations.views("%tokens", "%tokens") +
                      "lm.rotary_table %positions frequencies [" + list.str() +
                      "] into %destination : memref<?xi32> into " +
                      activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  std::mt19937 random(3);
  for (int64_t tokens : tokenCounts) {
    buffers.positions.clear();
    for (int64_t t = 0; t < tokens; ++t)
      buffers.positions.push_back(t < 3 ? t : random() % 200000);
    activations.resetDestination();
    runTeam(*program, buffers, threads);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < half; ++i) {
        float angle = static_cast<float>(buffers.positions[t]) * frequencies[i];
        const Elements &table = activations.destination;
        int64_t row = t * activations.stride;
        ASSERT_NEAR(table.get(row + i), std::cos(static_cast<double>(angle)),
                    1e-7)
            << angle;
        ASSERT_NEAR(table.get(row + half + i),
                    std::sin(static_cast<double>(angle)), 1e-7)
            << angle;
      }
    activations.expectRestUntouched(tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Halves, RotaryTableTest,
                         testing::Values(5, 24, 32, 64));

//===----------------------------------------------------------------------===//
// lm.gather_rows
//===----------------------------------------------------------------------===//

class GatherRowsTest : public testing::TestWithParam<bool> {};

TEST_P(GatherRowsTest, CopiesRows) {
  bool bf16 = GetParam();
  constexpr int64_t channels = 75, threads = 2;
  std::mt19937 random(4);
  Activations activations(bf16, channels, bf16, channels, 21);
  activations.input.fillRandom(maxTokens * channels, random);
  std::unique_ptr<CompiledProgram> program = compile(makeProgram(
      "", threads, "memref<?x1x1x2x16xf16>",
      "%rows = memref.dim %logit_rows, %c0 : memref<?xi32>\n" +
          activations.views("%tokens", "%rows") +
          "lm.gather_rows %input, %logit_rows into %destination : " +
          activations.inputType() + ", memref<?xi32> into " +
          activations.destinationType() + "\n"));
  ASSERT_TRUE(program);
  ProgramBuffers buffers;
  activations.describe(buffers);
  buffers.positions.assign(maxTokens, 0);
  for (int64_t rows : tokenCounts) {
    buffers.logitRows.clear();
    for (int64_t i = 0; i < rows; ++i)
      buffers.logitRows.push_back(random() % maxTokens);
    activations.resetDestination();
    runTeam(*program, buffers, threads);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < channels; ++c)
        ASSERT_EQ(activations.destination.get(i * activations.stride + c),
                  activations.input.get(buffers.logitRows[i] * channels + c));
    activations.expectRestUntouched(rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, GatherRowsTest, testing::Bool());

//===----------------------------------------------------------------------===//
// lm.attention
//===----------------------------------------------------------------------===//

struct AttentionCase {
  std::string name;
  int64_t cacheHeads, group, headDim;
  Kind cacheKind;
  bool bf16Query, bf16Result;
  int64_t threads;
  std::string target = "host";
  /// Of #lm.attention_table; empty for the rule's.
  std::string schedules = "";
  /// The largest number of parts that it splits contexts into.
  int64_t split = 0;
  bool bidirectional = false;

  /// Whether prompts may be multiplied in bf16.
  bool multipliesBF16() const {
    return cacheKind == Kind::BF16 && bf16Result && headDim % 16 == 0;
  }
};
void PrintTo(const AttentionCase &test, std::ostream *out) {
  *out << test.name;
}

/// A segment of a step; every one is of another sequence.
struct Piece {
  int64_t first, tokens;

  int64_t end() const { return first + tokens; }
};

class AttentionTest : public testing::TestWithParam<AttentionCase> {
protected:
  AttentionTest()
      : test(GetParam()), channels(test.cacheHeads * test.group * test.headDim),
        activations(test.bf16Query, channels, test.bf16Result, channels, 16,
                    maxTokens * test.split * test.cacheHeads * test.group *
                        (test.headDim + 2) * 4) {}

  void compileProgram();
  /// Runs all threads, and expects that no two write the same, unless they wait
  /// for each other.
  void runThreads(ProgramBuffers &buffers);
  /// Runs a step of `pieces` and compares it with plain loops.
  void check(const std::vector<Piece> &pieces);
  /// `roundsWeights` says that those of values may have been rounded to bf16.
  /// `position` is the last one that the token attends to.
  void checkToken(const Cache &cache, int64_t sequence, int64_t token,
                  int64_t position, bool roundsWeights);

  const AttentionCase &test;
  int64_t channels;
  Activations activations;
  std::unique_ptr<CompiledProgram> program;
};

void AttentionTest::compileProgram() {
  std::string cacheType =
      CacheShape{test.cacheHeads, test.headDim, test.cacheKind}.type();
  std::ostringstream body;
  std::string schedules, partialSums;
  if (!test.schedules.empty())
    schedules = "schedules(" + test.schedules + ")";
  if (test.split > 0)
    partialSums = " partial_sums(%partial : " + activations.partialType() + ")";
  body << activations.views("%tokens", "%tokens")
       << activations.viewOfPartialSums()
       << "%layer = arith.constant 1 : index\n"
          "lm.attention %input, %cache[%layer] segments %segments "
          "blocks %block_tables scale 0.25 "
       << (test.bidirectional ? "bidirectional " : "") << schedules
       << partialSums << " into %destination : " << activations.inputType()
       << ", " << cacheType << ", memref<?x4xi32>, memref<?xi32> into "
       << activations.destinationType() << "\n";
  program = compile(makeProgram("", test.threads, cacheType, body.str()),
                    test.target);
}

void AttentionTest::checkToken(const Cache &cache, int64_t sequence,
                               int64_t token, int64_t position,
                               bool roundsWeights) {
  const int64_t headDim = test.headDim;
  std::vector<double> weights(position + 1);
  for (int64_t h = 0; h < test.cacheHeads * test.group; ++h) {
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t p = 0; p <= position; ++p) {
      weights[p] = 0;
      for (int64_t c = 0; c < headDim; ++c)
        weights[p] +=
            0.25 * activations.input.get(token * channels + h * headDim + c) *
            cache.elements.get(cache.key(sequence, p, h / test.group, c));
      largest = std::max(largest, weights[p]);
    }
    for (double &weight : weights)
      total += weight = std::exp(weight - largest);
    for (int64_t c = 0; c < headDim; ++c) {
      double expected = 0, magnitude = 0;
      for (int64_t p = 0; p <= position; ++p) {
        const double product =
            weights[p] / total *
            cache.elements.get(cache.value(sequence, p, h / test.group, c));
        expected += product;
        magnitude += std::abs(product);
      }
      // Of rounding to nearest, and of the power of two that precedes it.
      const double error = roundsWeights ? magnitude * (1.0 / 512 + 1e-3) : 0;
      ASSERT_NO_FATAL_FAILURE(
          activations.expectNear(token, h * headDim + c, expected, error))
          << "head " << h << ", position " << position << " of sequence "
          << sequence;
    }
  }
}

void AttentionTest::runThreads(ProgramBuffers &buffers) {
  const Elements &destination = activations.destination;
  if (test.split > 0) {
    // Threads wait for each other's parts.
    activations.resetDestination();
    program->runTeam(buffers.step(), static_cast<int32_t>(test.threads));
    return;
  }
  std::vector<float> written((maxTokens + 1) * activations.stride, untouched);
  for (int32_t thread = 0; thread < test.threads; ++thread) {
    activations.resetDestination();
    program->run(buffers.step(), thread);
    for (size_t i = 0; i < written.size(); ++i)
      if (!destination.isUntouched(i)) {
        ASSERT_EQ(written[i], untouched) << "element " << i << " is written "
                                         << "again by thread " << thread;
        written[i] = destination.get(i);
      }
  }
  for (size_t i = 0; i < written.size(); ++i)
    destination.set(i, written[i]);
}

void AttentionTest::check(const std::vector<Piece> &pieces) {
  std::ostringstream step;
  int64_t tokens = 0;
  for (const Piece &piece : pieces) {
    step << " " << piece.tokens << " from " << piece.first;
    tokens += piece.tokens;
  }
  SCOPED_TRACE("a step of" + step.str());
  ASSERT_LE(tokens, maxTokens);

  // The sequences' blocks come in another order than their segments.
  auto sequenceOf = [&](size_t piece) {
    return static_cast<int64_t>(pieces.size() - 1 - piece);
  };
  std::vector<int64_t> blocks(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    blocks[sequenceOf(i)] = (pieces[i].end() + blockTokens - 1) / blockTokens;
  std::mt19937 random(static_cast<uint32_t>(tokens));
  Cache cache({test.cacheHeads, test.headDim, test.cacheKind}, blocks, random);

  ProgramBuffers buffers;
  activations.describe(buffers);
  cache.describe(buffers);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t s = sequenceOf(i);
    buffers.segments.push_back({static_cast<int32_t>(buffers.positions.size()),
                                static_cast<int32_t>(pieces[i].tokens),
                                static_cast<int32_t>(pieces[i].first),
                                static_cast<int32_t>(cache.firstBlock(s))});
    for (int64_t p = 0; p < pieces[i].end(); ++p) {
      if (p >= pieces[i].first)
        buffers.positions.push_back(static_cast<int32_t>(p));
      for (int64_t h = 0; h < test.cacheHeads; ++h)
        for (int64_t c = 0; c < test.headDim; ++c) {
          cache.elements.set(cache.key(s, p, h, c), 2 * uniform(random));
          cache.elements.set(cache.value(s, p, h, c), uniform(random));
        }
    }
  }
  activations.input.fillRandom(tokens * channels, random);
  ASSERT_NO_FATAL_FAILURE(runThreads(buffers));

  int64_t token = 0;
  for (size_t i = 0; i < pieces.size(); ++i)
    for (int64_t p = pieces[i].first; p < pieces[i].end(); ++p)
      ASSERT_NO_FATAL_FAILURE(
          checkToken(cache, sequenceOf(i), token++,
                     test.bidirectional ? pieces[i].end() - 1 : p,
                     pieces[i].tokens > 1 && test.multipliesBF16()));
  activations.expectRestUntouched(tokens);
}

/// One program for any step.
TEST_P(AttentionTest, MatchesNaiveAttention) {
  if (!hostRuns(targetToRun(test.target)))
    GTEST_SKIP() << "this CPU does not run code for " << test.target;
  ASSERT_NO_FATAL_FAILURE(compileProgram());
  ASSERT_TRUE(program);

  // One token of each sequence: contexts of one position, of whole blocks and
  // chunks, and around them.
  const std::vector<int64_t> contexts = {0,   15,  16,  40, 127, 128,
                                         143, 257, 300, 1,  2,   31};
  for (int64_t tokens : tokenCounts) {
    std::vector<Piece> pieces;
    for (int64_t t = 0; t < tokens; ++t)
      pieces.push_back({contexts[(t + tokens) % contexts.size()], 1});
    ASSERT_NO_FATAL_FAILURE(check(pieces));
  }

  // One prompt, from its begin or after what was computed before.
  for (int64_t first : {0, 5, 130, 249})
    for (int64_t tokens : tokenCounts)
      if (tokens > 0) {
        ASSERT_NO_FATAL_FAILURE(check({{first, tokens}}));
      }

  const std::vector<std::vector<Piece>> mixes = {
      // One token beside pieces of several prompts, in any order, which begin
      // with a block or inside of one and end in it, with it or in a later one.
      {{40, 1}, {0, 16}},
      {{0, 16}, {40, 1}},
      {{15, 1}, {5, 7}, {300, 1}, {16, 20}, {0, 1}},
      {{3, 29}, {143, 1}, {127, 2}, {128, 1}, {249, 16}},
      {{0, 33}, {130, 31}},
      // The fewest tokens that are not one, across the end of a block or not.
      {{0, 2}, {0, 3}, {0, 1}},
      {{14, 2}, {15, 2}, {16, 2}, {255, 2}, {300, 2}},
      {{13, 3}, {14, 3}, {15, 3}, {16, 3}, {257, 3}},
      {{31, 2}, {31, 1}, {31, 3}, {31, 1}, {31, 2}},
      // A step like those of serving: many decode while one prompt is read.
      {{16, 1},
       {17, 1},
       {127, 1},
       {128, 1},
       {129, 1},
       {2, 1},
       {257, 1},
       {64, 48}},
      {{64, 48},
       {16, 1},
       {17, 1},
       {127, 1},
       {128, 1},
       {129, 1},
       {2, 1},
       {257, 1}},
  };
  for (const std::vector<Piece> &pieces : mixes)
    ASSERT_NO_FATAL_FAILURE(check(pieces));

  std::mt19937 random(6);
  auto below = [&](int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(random);
  };
  for (int step = 0; step < 6; ++step) {
    std::vector<Piece> pieces;
    for (int64_t rest = maxTokens; rest > 0; rest -= pieces.back().tokens)
      pieces.push_back(
          {below(200), std::min(rest, below(2) ? 1 : 1 + below(24))});
    ASSERT_NO_FATAL_FAILURE(check(pieces));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(
        AttentionCase{"F32", 2, 1, 64, Kind::F32, false, false, 1},
        AttentionCase{"BF16", 3, 1, 128, Kind::BF16, true, true, 2},
        AttentionCase{"TwoHeadsBF16", 2, 1, 128, Kind::BF16, true, true, 2},
        AttentionCase{"ThreeInAGroup", 2, 3, 48, Kind::F16, false, false, 3},
        AttentionCase{"FourInAGroup", 2, 4, 64, Kind::F16, false, false, 3},
        AttentionCase{"SevenInAGroup", 1, 7, 48, Kind::F16, true, true, 2},
        AttentionCase{"TilesOfAGroup", 1, 12, 48, Kind::F32, true, false, 2},
        AttentionCase{"TilesOfHeads", 3, 12, 48, Kind::F16, true, false, 2},
        AttentionCase{"GroupOfMoreThanATile", 1, 14, 32, Kind::BF16, false,
                      false, 3},
        AttentionCase{"OneHeadForThreeThreads", 1, 1, 32, Kind::F32, false,
                      false, 3},
        AttentionCase{"TwoHeadsForThreeThreads", 2, 5, 32, Kind::BF16, true,
                      false, 3},
        AttentionCase{"UnevenHeads", 8, 1, 32, Kind::F16, false, true, 3},
        AttentionCase{"OddVectorsF32", 1, 2, 50, Kind::F32, true, true, 3},
        AttentionCase{"OddVectorsF16", 2, 2, 50, Kind::F16, false, true, 3},
        AttentionCase{"OddVectorsBF16", 2, 2, 50, Kind::BF16, false, true, 3},
        AttentionCase{"HeadsOf80F32", 2, 2, 80, Kind::F32, false, false, 1},
        AttentionCase{"HeadsOf80F16", 1, 2, 80, Kind::F16, true, false, 2},
        AttentionCase{"AVX2", 2, 2, 128, Kind::F16, true, true, 2,
                      "x86-64-avx2"},
        AttentionCase{"AVX2HeadsOf64", 2, 2, 64, Kind::F16, false, true, 2,
                      "x86-64-avx2"},
        AttentionCase{"AVX2BF16", 2, 2, 128, Kind::BF16, true, false, 2,
                      "x86-64-avx2"},
        AttentionCase{"AVX2BF16HeadsOf64", 2, 2, 64, Kind::BF16, true, false, 2,
                      "x86-64-avx2"},
        AttentionCase{"AVX512BF16Cache", 2, 2, 128, Kind::BF16, false, true, 2,
                      "x86-64-avx512"},
        AttentionCase{"AVX512BF16CacheHeadsOf64", 2, 2, 64, Kind::BF16, false,
                      true, 2, "x86-64-avx512"}),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Bidirectional, AttentionTest,
    testing::Values(
        AttentionCase{"BertF32", 12, 1, 64, Kind::F32, false, false, 2, "host",
                      "", 0, true},
        AttentionCase{"BertBF16", 4, 1, 64, Kind::BF16, true, true, 3, "host",
                      "", 0, true},
        AttentionCase{"GroupOfThree", 2, 3, 48, Kind::F16, false, false, 2,
                      "host", "", 0, true},
        AttentionCase{"SmallTiles", 2, 1, 32, Kind::F32, false, false, 3,
                      "host",
                      "<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = "
                      "[3, 1, 2], tiles = 2>>",
                      0, true},
        AttentionCase{"Matrix", 2, 1, 64, Kind::BF16, true, true, 2,
                      "x86-64-avx512-bf16",
                      "<[?, ?] : <decode = [1, 2, 2], split = 1, prefill = "
                      "[12, 2, 12], tiles = 4, instructions = "
                      "X86_AVX512_BF16>>",
                      0, true}),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Schedules, AttentionTest,
    testing::Values(AttentionCase{"SplitOneHead", 1, 1, 64, Kind::BF16, false,
                                  false, 3, "host",
                                  "<[?, ?] : <decode = [1, 2, 2], split = 3, "
                                  "prefill = [12, 2, 8]>>",
                                  3},
                    AttentionCase{"SplitGroups", 2, 4, 48, Kind::F32, true,
                                  true, 3, "host",
                                  "<[?, ?] : <decode = [2, 1, 3], split = 5, "
                                  "prefill = [5, 3, 6]>>",
                                  5},
                    AttentionCase{"SplitBySegmentsAndPositions", 2, 2, 50,
                                  Kind::F16, false, false, 3, "host",
                                  "<[1, 128] : <decode = [1, 1, 1], split = 1, "
                                  "prefill = [16, 1, 64]>, "
                                  "[2, 300] : <decode = [2, 2, 4], split = 2, "
                                  "prefill = [3, 2, 2]>, "
                                  "[7, ?] : <decode = [2, 2, 2], split = 4, "
                                  "prefill = [3, 2, 2]>, "
                                  "[?, ?] : <decode = [1, 2, 2], split = 1, "
                                  "prefill = [12, 2, 8]>>",
                                  4},
                    AttentionCase{"SplitByMoreThanThereAreBlocks", 1, 2, 32,
                                  Kind::F32, false, false, 2, "host",
                                  "<[?, ?] : <decode = [1, 1, 1], split = 16, "
                                  "prefill = [1, 1, 1]>>",
                                  16},
                    AttentionCase{"OtherTiles", 3, 6, 32, Kind::BF16, false,
                                  false, 2, "host",
                                  "<[?, ?] : <decode = [3, 4, 8], split = 1, "
                                  "prefill = [7, 4, 12]>>"},
                    AttentionCase{"SeveralTiles", 2, 3, 48, Kind::F16, true,
                                  false, 2, "host",
                                  "<[?, ?] : <decode = [1, 1, 1], split = 1, "
                                  "prefill = [4, 2, 4], tiles = 5>>"},
                    AttentionCase{"MoreTilesThanAPromptHas", 3, 1, 50,
                                  Kind::F32, false, false, 2, "host",
                                  "<[?, ?] : <decode = [1, 1, 1], split = 1, "
                                  "prefill = [6, 1, 3], tiles = 64>>"}),
    [](const auto &info) { return info.param.name; });

/// By micro-kernels with `prefill` (of #lm.attention_schedule).
std::string bySchedule(const std::string &prefill,
                       const std::string &instructions = "X86_AVX512_BF16") {
  return "<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = " + prefill +
         ", instructions = " + instructions + ">>";
}

AttentionCase byTiles(const std::string &name, int64_t heads, int64_t group,
                      int64_t headDim, int64_t threads,
                      const std::string &prefill, bool bidirectional = false) {
  return {name,
          heads,
          group,
          headDim,
          Kind::BF16,
          true,
          true,
          threads,
          "x86-64-amx",
          bySchedule(prefill, "X86_AMX_BF16"),
          0,
          bidirectional};
}

// A step of tiles is two blocks of keys, of which there may be an odd number.
INSTANTIATE_TEST_SUITE_P(
    Tiles, AttentionTest,
    testing::Values(
        byTiles("OneTile", 2, 1, 64, 1, "[16, 2, 8]"),
        byTiles("ManyTiles", 1, 2, 128, 2, "[16, 4, 16], tiles = 32"),
        // Panels of values are narrower than those of keys.
        byTiles("HeadsOf96", 2, 3, 96, 2, "[16, 4, 4], tiles = 3"),
        byTiles("OneBlockAtOnce", 3, 1, 32, 2, "[16, 1, 2], tiles = 7"),
        byTiles("ThreeBlocksAtOnce", 2, 2, 96, 2, "[16, 3, 6], tiles = 4"),
        byTiles("WholeContextInOneChunk", 1, 7, 64, 2,
                "[16, 2, 64], tiles = 16"),
        byTiles("Bidirectional", 2, 1, 64, 2, "[16, 4, 8], tiles = 4", true)),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    MatrixInstructions, AttentionTest,
    testing::Values(
        AttentionCase{"OneTile", 2, 1, 64, Kind::BF16, true, true, 1,
                      "x86-64-avx512-bf16", bySchedule("[12, 2, 8]")},
        AttentionCase{"ManyTiles", 1, 2, 128, Kind::BF16, true, true, 2,
                      "x86-64-avx512-bf16",
                      bySchedule("[12, 2, 12], tiles = 32")},
        // Panels of values are narrower than those of keys.
        AttentionCase{"HeadsOf48", 2, 3, 48, Kind::BF16, true, true, 2,
                      "x86-64-avx512-bf16", bySchedule("[7, 2, 4], tiles = 3")},
        AttentionCase{"HeadsOf80", 1, 5, 80, Kind::BF16, true, true, 3,
                      "x86-64-avx512-bf16", bySchedule("[6, 4, 8], tiles = 2")},
        AttentionCase{"OneRow", 3, 1, 32, Kind::BF16, true, true, 2,
                      "x86-64-avx512-bf16", bySchedule("[1, 1, 1], tiles = 7")},
        AttentionCase{"ThreeBlocksAtOnce", 2, 2, 96, Kind::BF16, true, true, 2,
                      "x86-64-avx512-bf16", bySchedule("[8, 3, 3], tiles = 4")},
        AttentionCase{"WholeContextInOneChunk", 1, 7, 64, Kind::BF16, true,
                      true, 2, "x86-64-avx512-bf16",
                      bySchedule("[9, 2, 64], tiles = 64")}),
    [](const auto &info) { return info.param.name; });

} // namespace
