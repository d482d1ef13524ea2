//===- GemmToLoopsTest.cpp - Matmuls against naive loops ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JitTest.h"
#include "PackedWeight.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <sstream>

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr int64_t maxTokens = 100;
constexpr float untouched = 12345.0f;

/// One matmul and how it runs.
struct MatmulCase {
  std::string name;
  /// The schedule table in IR; its first micro-kernel decides the packing.
  MatrixISA isa = MatrixISA::X86_AVX512_BF16;
  std::string schedules;
  int64_t n = 0, k = 0, threads = 1;
  StorageFormat storage = StorageFormat::bf16();
  bool bf16Weights() const { return storage == StorageFormat::bf16(); }
  bool bf16Result = false;
  std::string epilogue = "none";
  /// Of silu_mul.
  int64_t interleave = 0;
  bool bias = false;
  /// The layer read, of two; -1 for a weight without layers.
  int64_t layer = -1;
  /// The most threads that share K.
  int64_t partsOfK = 1;
  /// Rows of the result begin at cache lines, so that they can be written past
  /// the caches.
  bool alignedResult = false;

  bool isSilu() const { return epilogue == "silu_mul"; }
  bool addsResidual() const { return epilogue == "add_residual"; }
  bool bf16Input() const { return multipliesBF16(isa); }
  std::string target() const { return targetToRun(isa).name; }
  int64_t resultColumns() const { return isSilu() ? n / 2 : n; }
  int64_t inputStride() const { return k + 32; }
  int64_t resultStride() const {
    return alignedResult ? (resultColumns() + 31) / 16 * 16
                         : resultColumns() + 3;
  }
};

void PrintTo(const MatmulCase &test, std::ostream *stream) {
  *stream << test.name;
}

int64_t roundUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

/// Small values that repeat with no period a kernel could hide in.
class Numbers {
public:
  explicit Numbers(uint64_t seed)
      : state(seed * 2654435761 + 88172645463325252) {}
  float next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) /
           static_cast<float>(1 << 23);
  }

private:
  uint64_t state;
};

/// The memory of a case, and what its matmul should give.
class MatmulMemory {
public:
  explicit MatmulMemory(const MatmulCase &test);

  std::string source() const;
  void reset();
  double expected(int64_t row, int64_t column, double &magnitude) const;
  float result(int64_t row, int64_t column);

  SandwichStep step = {};

private:
  int64_t packedRow(int64_t row) const;
  /// Of one layer, in whole cache lines.
  int64_t biasBytes() const { return roundUp(test.n * 4, 64); }
  double sum(int64_t row, int64_t column, double &magnitude) const;

  const MatmulCase &test;
  Packing packing;
  int64_t weightBytes, resultOffset, residualOffset, partialSumsOffset;
  std::vector<float> input, weight, bias, residual;
  AlignedBytes weights, workspace;

  static int64_t packedColumns(const MatmulCase &test) {
    int64_t rows = test.n;
    if (test.isSilu())
      rows = 2 * roundUp(test.n / 2, test.interleave);
    return roundUp(rows, packingOf(test.isa).panel);
  }
  static int64_t sliceElements(const MatmulCase &test) {
    return packedColumns(test) * test.k;
  }
  static int64_t partialSumsBytes(const MatmulCase &test) {
    return test.partsOfK * maxTokens * packedColumns(test) * 4 + 64;
  }
  static int64_t elementBytes(bool bf16) { return bf16 ? 2 : 4; }
  static int64_t inputBytes(const MatmulCase &test) {
    return roundUp(
        maxTokens * test.inputStride() * elementBytes(test.bf16Input()), 64);
  }
  static int64_t rowsBytes(const MatmulCase &test) {
    return roundUp((maxTokens + 1) * test.resultStride() * 4, 64);
  }
};

void put(unsigned char *base, int64_t index, bool bf16, float value) {
  if (bf16)
    reinterpret_cast<uint16_t *>(base)[index] = toBF16(value);
  else
    reinterpret_cast<float *>(base)[index] = value;
}

float rounded(bool bf16, float value) {
  return bf16 ? fromBF16(toBF16(value)) : value;
}

} // namespace

MatmulMemory::MatmulMemory(const MatmulCase &test)
    : test(test), packing(packingOf(test.isa)),
      weightBytes(sliceElements(test) * elementBytes(test.bf16Weights())),
      resultOffset(inputBytes(test)),
      residualOffset(resultOffset + rowsBytes(test)),
      partialSumsOffset(residualOffset + rowsBytes(test)),
      weights(2 * weightBytes + 2 * biasBytes()),
      workspace(partialSumsOffset + partialSumsBytes(test)) {
  Numbers numbers(test.n * 1000 + test.k);
  auto fill = [&](std::vector<float> &values, size_t size, bool bf16) {
    values.resize(size);
    for (float &value : values)
      value = rounded(bf16, numbers.next());
  };
  fill(input, maxTokens * test.k, test.bf16Input());
  fill(weight, test.n * test.k, test.bf16Weights());
  fill(bias, test.n, false);
  fill(residual, maxTokens * test.n, false);

  // What fills panels up must not reach the result, whatever it is; the other
  // layer must not be read.
  for (int64_t i = 0; i < 2 * weightBytes / elementBytes(test.bf16Weights());
       ++i)
    put(weights.data(), i, test.bf16Weights(), NAN);
  unsigned char *slice =
      weights.data() + std::max<int64_t>(test.layer, 0) * weightBytes;
  for (int64_t row = 0; row < test.n; ++row) {
    int64_t n = packedRow(row);
    for (int64_t k = 0; k < test.k; ++k) {
      put(slice, packedIndex(packing, test.k, n, k), test.bf16Weights(),
          weight[row * test.k + k]);
    }
  }
  unsigned char *biases = weights.data() + 2 * weightBytes;
  for (int64_t i = 0; i < 2 * biasBytes() / elementBytes(false); ++i)
    put(biases, i, false, NAN);
  for (int64_t i = 0; i < test.n; ++i)
    put(biases + std::max<int64_t>(test.layer, 0) * biasBytes(), i, false,
        bias[i]);
  step.weights = weights.data();
  step.workspace = workspace.data();
  reset();
}

int64_t MatmulMemory::packedRow(int64_t row) const {
  if (!test.isSilu())
    return row;
  int64_t group = test.interleave, half = test.n / 2;
  int64_t source = row / half, channel = row % half;
  return channel / group * 2 * group + source * group + channel % group;
}

void MatmulMemory::reset() {
  bool bf16 = test.bf16Input();
  for (int64_t row = 0; row < maxTokens; ++row)
    for (int64_t k = 0; k < test.inputStride(); ++k)
      put(workspace.data(), row * test.inputStride() + k, bf16,
          k < test.k ? input[row * test.k + k] : NAN);
  for (int64_t row = 0; row <= maxTokens; ++row)
    for (int64_t column = 0; column < test.resultStride(); ++column) {
      int64_t index = row * test.resultStride() + column;
      put(workspace.data() + resultOffset, index, test.bf16Result, untouched);
      put(workspace.data() + residualOffset, index, false,
          row < maxTokens && column < test.n ? residual[row * test.n + column]
                                             : NAN);
    }
}

std::string MatmulMemory::source() const {
  std::ostringstream out;
  const char *weightType = test.bf16Weights() ? "bf16" : "f32";
  const char *inputType = test.bf16Input() ? "bf16" : "f32";
  const char *resultType = test.bf16Result ? "bf16" : "f32";
  bool layers = test.layer >= 0;
  auto sources = [&] {
    std::string suffix = layers ? ".{}" : "";
    return test.isSilu() ? "[\"gate" + suffix + "\", \"up" + suffix + "\"]"
                         : "[\"w" + suffix + "\"]";
  };
  out << "lm.weight @w : tensor<" << test.n << "x" << test.k << "x"
      << weightType << ">";
  if (layers)
    out << " layers 2";
  out << " from " << sources();
  if (test.isSilu())
    out << " interleave " << test.interleave;
  out << " packing #gemm.packing<panel = " << packing.panel
      << ", tile = " << packing.tile << ", k_step = " << packing.kStep
      << ", k_pack = " << packing.kPack << "> at 0";
  if (layers)
    out << " stride " << weightBytes;
  out << "\n";
  if (test.bias) {
    out << "lm.weight @b : tensor<" << test.n << "xf32>"
        << (layers ? " layers 2 from [\"b.{}\"] at " : " from [\"b\"] at ")
        << 2 * weightBytes;
    if (layers)
      out << " stride " << biasBytes();
    out << "\n";
  }
  out << "func.func @program(" << programArguments() << ") attributes {"
      << programAttribute(test.threads, maxTokens) << "} {\n"
      << "  %c0 = arith.constant 0 : index\n"
      << "  %tokens = memref.dim %token_ids, %c0 : memref<?xi32>\n";
  auto view = [&](const char *name, int64_t offset, int64_t columns,
                  int64_t stride, const char *type) {
    out << "  %" << name << "_offset = arith.constant " << offset
        << " : index\n  %" << name << "_view = memref.view %workspace[%" << name
        << "_offset][%tokens] : memref<?xi8> to memref<?x" << stride << "x"
        << type << ">\n  %" << name << " = memref.subview %" << name
        << "_view[0, 0] [%tokens, " << columns << "] [1, 1] : memref<?x"
        << stride << "x" << type << "> to memref<?x" << columns << "x" << type
        << ", strided<[" << stride << ", 1]>>\n";
  };
  view("x", 0, test.k, test.inputStride(), inputType);
  view("y", resultOffset, test.resultColumns(), test.resultStride(),
       resultType);
  if (test.addsResidual())
    view("r", residualOffset, test.n, test.resultStride(), "f32");
  if (layers)
    out << "  %layer = arith.constant " << test.layer << " : index\n";
  std::string partialSums;
  if (test.partsOfK > 1) {
    std::string type =
        "memref<" + std::to_string(partialSumsBytes(test)) + "xi8>";
    out << "  %p_offset = arith.constant " << partialSumsOffset
        << " : index\n  %p = memref.view %workspace[%p_offset][] : "
        << "memref<?xi8> to " << type << "\n";
    partialSums = " partial_sums(%p : " + type + ")";
  }
  out << "  gemm.matmul %x, @w" << (test.bias ? " bias @b" : "")
      << (layers ? "[%layer]" : "") << " epilogue(<" << test.epilogue << ">)";
  if (test.addsResidual())
    out << " residual(%r : memref<?x" << test.n << "xf32, strided<["
        << test.resultStride() << ", 1]>>)";
  out << " schedules(" << test.schedules << ")" << partialSums
      << " into %y : memref<?x" << test.k << "x" << inputType << ", strided<["
      << test.inputStride() << ", 1]>> into memref<?x" << test.resultColumns()
      << "x" << resultType << ", strided<[" << test.resultStride()
      << ", 1]>>\n  return\n}\n";
  return out.str();
}

double MatmulMemory::sum(int64_t row, int64_t column, double &magnitude) const {
  double sum = test.bias ? bias[column] : 0;
  magnitude = std::abs(sum);
  for (int64_t k = 0; k < test.k; ++k) {
    double product = static_cast<double>(input[row * test.k + k]) *
                     weight[column * test.k + k];
    sum += product;
    magnitude += std::abs(product);
  }
  return sum;
}

double MatmulMemory::expected(int64_t row, int64_t column,
                              double &magnitude) const {
  constexpr std::string_view geluPrefix = "gelu_";
  if (test.isSilu()) {
    double gateMagnitude, upMagnitude;
    double gate = sum(row, column, gateMagnitude);
    double up = sum(row, column + test.n / 2, upMagnitude);
    magnitude =
        gateMagnitude * (1 + std::abs(up)) + upMagnitude * (1 + std::abs(gate));
    return gate / (1 + std::exp(-gate)) * up;
  }
  double value = sum(row, column, magnitude);
  if (test.epilogue.starts_with(geluPrefix))
    return gelu(value, test.epilogue.substr(geluPrefix.size()));
  return test.addsResidual() ? value + residual[row * test.n + column] : value;
}

float MatmulMemory::result(int64_t row, int64_t column) {
  int64_t index = row * test.resultStride() + column;
  if (test.bf16Result)
    return fromBF16(workspace.as<uint16_t>(resultOffset)[index]);
  return workspace.as<float>(resultOffset)[index];
}

namespace {

class GemmToLoopsTest : public testing::TestWithParam<MatmulCase> {};

} // namespace

TEST_P(GemmToLoopsTest, MatchesNaiveLoops) {
  const MatmulCase &test = GetParam();
  if (!hostRuns(test.target()))
    GTEST_SKIP() << "this CPU does not run code for " << test.target();

  MatmulMemory memory(test);
  auto program = CompiledProgram::compile(
      memory.source(),
      {.passes = "gemm-dispatch,gemm-split-k,gemm-polymerize,gemm-to-loops" +
                 std::string(emulates(test.isa) ? ",test-emulate-amx" : ""),
       .target = test.target(),
       .expandBF16 =
           !targetToRun(test.isa).features.has(CpuFeature::AVX512BF16)});
  ASSERT_TRUE(program) << program.error().message << memory.source();
  for (int64_t tokens : {0, 1, 2, 5, 12, 13, 16, 31, 33, 100}) {
    memory.reset();
    memory.step.num_tokens = tokens;
    (*program)->runTeam(memory.step, static_cast<int32_t>(test.threads));
    for (int64_t row = 0; row <= maxTokens; ++row)
      for (int64_t column = 0; column < test.resultStride(); ++column) {
        float got = memory.result(row, column);
        if (row >= tokens || column >= test.resultColumns()) {
          ASSERT_EQ(got, rounded(test.bf16Result, untouched))
              << "row " << row << ", column " << column << " of " << tokens
              << " tokens was written";
          continue;
        }
        double magnitude;
        double want = memory.expected(row, column, magnitude);
        double tolerance = 2e-6 * magnitude + 1e-6;
        if (test.bf16Result)
          tolerance += std::abs(want) / 200;
        ASSERT_NEAR(got, want, tolerance)
            << "row " << row << ", column " << column << " of " << tokens
            << " tokens";
      }
  }
}

namespace {

std::string schedule(const std::string &kernel, const std::string &slice,
                     int64_t threads, const std::string &prefetch) {
  return "<micro_kernel = " + kernel + ", slice = [" + slice +
         "], threads = [1, " + std::to_string(threads) + ", 1], prefetch = [" +
         prefetch + "]>";
}

std::vector<MatmulCase> matmulCases() {
  std::vector<MatmulCase> cases;
  // The shapes of the default rule, all row counts, K with a remainder.
  cases.push_back(
      {.name = "BF16TwoSchedules",
       .schedules =
           "<12 : " +
           schedule("X86_AVX512_BF16_12x32", "12, 32, 98", 2, "8, 4096") +
           ", ? : " +
           schedule("X86_AVX512_BF16_12x32", "48, 64, 40", 2, "2, 0") + ">",
       .n = 200,
       .k = 98,
       .threads = 2});
  // Two panels at once, the last one alone; prefetch in both panels.
  cases.push_back(
      {.name = "BF16TwoPanels",
       .schedules =
           "<? : " +
           schedule("X86_AVX512_BF16_4x64", "16, 128, 32", 3, "16, 0") + ">",
       .n = 229,
       .k = 96,
       .threads = 3,
       .epilogue = "add_residual",
       .layer = 1});
  cases.push_back(
      {.name = "BF16GeluExact",
       .schedules =
           "<? : " +
           schedule("X86_AVX512_BF16_4x64", "16, 128, 32", 3, "16, 0") + ">",
       .n = 229,
       .k = 96,
       .threads = 3,
       .bf16Result = true,
       .epilogue = "gelu_exact",
       .bias = true,
       .layer = 1});
  cases.push_back(
      {.name = "BF16SiluMulNarrow",
       .schedules = "<? : " +
                    schedule("X86_AVX512_BF16_5x16", "7, 64, 64", 2, "2, 512") +
                    ">",
       .n = 2 * 75,
       .k = 66,
       .threads = 2,
       .bf16Result = true,
       .epilogue = "silu_mul",
       .interleave = 16,
       .layer = 0});
  cases.push_back(
      {.name = "BF16SiluMulOddGroups",
       .schedules = "<? : " +
                    schedule("X86_AVX512_BF16_4x32", "64, 160, 64", 3, "0, 0") +
                    ">",
       .n = 2 * 43,
       .k = 64,
       .threads = 3,
       .epilogue = "silu_mul",
       .interleave = 5,
       .bias = true});
  cases.push_back(
      {.name = "AVX512WidenedWeights",
       .isa = MatrixISA::X86_AVX512_F32,
       .schedules =
           "<? : " + schedule("X86_AVX512_F32_6x64", "512, 64, 50", 1, "1, 0") +
           ">",
       .n = 96,
       .k = 101,
       .threads = 1,
       .bf16Result = true,
       .epilogue = "none",
       .bias = true});
  cases.push_back(
      {.name = "AVX512FloatWeights",
       .isa = MatrixISA::X86_AVX512_F32,
       .schedules =
           "<5 : " +
           schedule("X86_AVX512_F32_5x32", "5, 32, 200", 2, "8, 8192") +
           ", ? : " + schedule("X86_AVX512_F32_5x32", "40, 96, 24", 2, "4, 0") +
           ">",
       .n = 300,
       .k = 67,
       .threads = 2,
       .storage = StorageFormat::f32(),
       .epilogue = "add_residual",
       .bias = true});
  cases.push_back(
      {.name = "AVX2FloatWeights",
       .isa = MatrixISA::X86_AVX2_F32,
       .schedules =
           "<? : " + schedule("X86_AVX2_F32_6x16", "24, 32, 32", 3, "2, 0") +
           ">",
       .n = 40,
       .k = 70,
       .threads = 3,
       .storage = StorageFormat::f32(),
       .epilogue = "none"});
  cases.push_back(
      {.name = "AVX2WidenedSiluMul",
       .isa = MatrixISA::X86_AVX2_F32,
       .schedules =
           "<? : " + schedule("X86_AVX2_F32_2x32", "24, 64, 32", 1, "4, 1024") +
           ">",
       .n = 2 * 33,
       .k = 33,
       .threads = 1,
       .bf16Result = true,
       .epilogue = "silu_mul",
       .interleave = 32});
  cases.push_back(
      {.name = "AVX2GeluExact",
       .isa = MatrixISA::X86_AVX2_F32,
       .schedules =
           "<? : " + schedule("X86_AVX2_F32_2x32", "24, 64, 32", 1, "4, 1024") +
           ">",
       .n = 75,
       .k = 33,
       .threads = 2,
       .epilogue = "gelu_exact",
       .bias = true});
  cases.push_back(
      {.name = "AVX2GeluTanh",
       .isa = MatrixISA::X86_AVX2_F32,
       .schedules =
           "<? : " + schedule("X86_AVX2_F32_2x32", "24, 64, 32", 1, "4, 1024") +
           ">",
       .n = 64,
       .k = 40,
       .threads = 1,
       .bf16Result = true,
       .epilogue = "gelu_tanh"});
  cases.push_back(
      {.name = "AMXTwoByTwo",
       .isa = MatrixISA::X86_AMX_BF16,
       .schedules =
           "<? : " + schedule("X86_AMX_BF16_32x32", "64, 64, 64", 2, "2, 0") +
           ">",
       .n = 100,
       .k = 96,
       .threads = 2,
       .epilogue = "add_residual"});
  cases.push_back(
      {.name = "AMXOneByFour",
       .isa = MatrixISA::X86_AMX_BF16,
       .schedules = "<? : " +
                    schedule("X86_AMX_BF16_16x64", "64, 64, 96", 1, "16, 768") +
                    ">",
       .n = 96,
       .k = 96,
       .threads = 1,
       .bf16Result = true});
  return cases;
}

/// `schedule` as IR.
std::string text(const Schedule &schedule) {
  std::ostringstream out;
  auto list = [&](const std::array<int64_t, 3> &sizes) {
    out << "[" << sizes[0] << ", " << sizes[1] << ", " << sizes[2] << "]";
  };
  out << "<micro_kernel = " << schedule.microKernel.name() << ", slice = ";
  list(schedule.slice);
  out << ", threads = ";
  list(schedule.threads);
  out << ", prefetch = [" << schedule.prefetchLines << ", "
      << schedule.prefetchDistance
      << "], streams = " << schedule.prefetchStreams
      << ", hint = " << name(schedule.prefetchHint)
      << ", order = " << name(schedule.order)
      << ", stores = " << name(schedule.stores)
      << ", k_chunk = " << schedule.chunkK
      << ", input = " << (schedule.packsInput ? "packed" : "rows")
      << ", streamed = " << name(schedule.streamed) << ">";
  return out.str();
}

/// Points of the whole space of schedules, of random matmuls.
class RandomCases {
public:
  MatmulCase next(MatrixISA isa, int number);

private:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  template <typename T> T oneOf(std::initializer_list<T> values) {
    return values.begin()[between(0, std::ssize(values) - 1)];
  }
  Schedule schedule(const MatmulCase &test);

  std::mt19937 random{20240613};
};

Schedule RandomCases::schedule(const MatmulCase &test) {
  Packing packing = packingOf(test.isa);
  std::vector<MicroKernel> menu = microKernelMenu(test.isa);
  std::erase_if(
      menu, [&](const MicroKernel &kernel) { return !reads(kernel, packing); });
  Schedule result;
  result.microKernel = menu[between(0, std::ssize(menu) - 1)];
  int64_t unit = std::lcm(packing.panel, result.microKernel.columns);
  if (test.isSilu())
    unit = std::lcm(unit, 2 * test.interleave);
  result.slice = {between(1, maxTokens), unit * between(1, 4),
                  packing.kStep *
                      between(1, roundUp(test.k, 64) / packing.kStep)};
  auto &[tM, tN, tK] = result.threads;
  const int64_t kUnit =
      kUnitOf({.n = test.n, .k = test.k, .storage = test.storage}, packing);
  int64_t rounds = roundUp(test.k, kUnit) / kUnit;
  tK = between(1, std::min(test.partsOfK, rounds));
  tM = between(1, test.threads / tK);
  tN = between(1, test.threads / tK / tM);
  result.prefetchLines = oneOf<int64_t>({0, 1, 2, 7, 16});
  result.prefetchDistance = oneOf<int64_t>({0, 0, 512, 8192});
  if (result.prefetchDistance == 0)
    result.prefetchStreams = oneOf<int64_t>({1, 2, 3, 8});
  result.prefetchHint =
      oneOf({PrefetchHint::L1, PrefetchHint::L2, PrefetchHint::NonTemporal});
  result.order = oneOf({LoopOrder::RowsOuter, LoopOrder::ColumnsOuter});
  result.stores = oneOf({StoreKind::Cached, StoreKind::NonTemporal});
  int64_t mostSteps = roundUp(test.k, 64) / kUnit;
  result.chunkK = kUnit * oneOf({int64_t(0), between(0, mostSteps)});
  if (hasTiles(test.isa)) {
    result.packsInput = between(0, 1) == 1;
    result.streamed = oneOf({StreamedOperands::None, StreamedOperands::Input,
                             StreamedOperands::Weight, StreamedOperands::Both});
  }
  return result;
}

MatmulCase RandomCases::next(MatrixISA isa, int number) {
  MatmulCase test;
  test.isa = isa;
  test.name = std::string(name(isa)) + "_" + std::to_string(number);
  test.threads = between(1, 6);
  test.partsOfK = between(1, test.threads);
  test.epilogue = oneOf<std::string>(
      {"none", "add_residual", "silu_mul", "gelu_exact", "gelu_tanh"});
  test.interleave = oneOf<int64_t>({3, 16, 32});
  test.n = test.isSilu() ? 2 * between(1, 150) : between(1, 300);
  test.k = packingOf(isa).kStep * between(1, 200 / packingOf(isa).kStep);
  if (!multipliesBF16(isa) && between(0, 1) == 0)
    test.storage = StorageFormat::f32();
  test.bf16Result = !test.addsResidual() && between(0, 1) == 1;
  test.bias = between(0, 1) == 1;
  test.alignedResult = between(0, 1) == 1;
  test.schedules = "<" + std::to_string(between(1, 60)) + " : " +
                   text(schedule(test)) + ", ? : " + text(schedule(test)) + ">";
  return test;
}

std::vector<MatmulCase> randomCases() {
  RandomCases random;
  std::vector<MatmulCase> cases;
  for (MatrixISA isa : {MatrixISA::X86_AVX512_BF16, MatrixISA::X86_AVX512_F32,
                        MatrixISA::X86_AVX2_F32, MatrixISA::X86_AMX_BF16})
    for (int number = 0; number < 12; ++number)
      cases.push_back(random.next(isa, number));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmToLoopsTest,
                         testing::ValuesIn(matmulCases()),
                         [](const testing::TestParamInfo<MatmulCase> &info) {
                           return info.param.name;
                         });

// Every point of the space of schedules computes the same.
INSTANTIATE_TEST_SUITE_P(RandomSchedules, GemmToLoopsTest,
                         testing::ValuesIn(randomCases()),
                         [](const testing::TestParamInfo<MatmulCase> &info) {
                           return info.param.name;
                         });

} // namespace
