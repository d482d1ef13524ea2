//===- IntegerMicroKernelTest.cpp - Micro-kernels of integers -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssemblyLoops.h"
#include "JitTest.h"
#include "MicroKernelProgram.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Support/CheckedMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// What reads integers as they are stored: multiplies them, or widens them to
/// floats in registers. A number of columns and how the weight is stored.
struct Part {
  MatrixISA isa;
  int64_t columns, panel;
  const char *storage;
  /// Of the weight that `group` is a part of, or all.
  int64_t group;

  std::string name() const {
    std::string text = std::string(sandwich::name(isa)) + "_" +
                       std::to_string(columns) + "_panel" +
                       std::to_string(panel) + "_" + storage + "_group" +
                       std::to_string(group);
    std::ranges::replace(text, '-', '_');
    return text;
  }
  StorageFormat format() const { return *StorageFormat::parse(storage); }
  bool widens(int64_t rows) const {
    const MatmulShape shape{
        .k = group, .storage = format(), .packing = integerPacking(panel)};
    return widensGroups(
        {.microKernel = {isa, rows, columns}, .slice = {rows, columns, group}},
        shape);
  }
  int64_t mostRows() const {
    int64_t most = 0;
    if (!multipliesIntegers(isa)) {
      while (widens(most + 1))
        ++most;
      return most;
    }
    for (const MicroKernel &kernel : microKernelMenu(isa))
      if (kernel.columns == columns && hasTilesForSums(kernel, group))
        most = std::max(most, kernel.rows);
    return most;
  }
  /// One for each number of rows, the last of which the menu or the registers
  /// have.
  std::vector<MicroKernelSpecialization> kernels() const {
    const bool packed = multipliesIntegers(isa);
    const int64_t step = hasTiles(isa) ? registerFileOf(isa).rows : 1;
    std::vector<MicroKernelSpecialization> result;
    for (int64_t rows = step; rows <= mostRows(); rows += step)
      result.push_back({.kernel = {isa, rows, columns},
                        .inputStride = packed ? 0 : 7 * group,
                        .packing = integerPacking(panel),
                        .storage = format(),
                        .group = group,
                        .packedInput = packed});
    return result;
  }
};

void PrintTo(const Part &part, std::ostream *stream) { *stream << part.name(); }

/// How a weight may be stored: every form of numbers and scales, groups that
/// are multiplied at once and longer ones, and those of whole rows.
struct StoredGroup {
  const char *storage;
  int64_t group;
};
constexpr StoredGroup storedGroups[] = {
    {"int8-g32-f16", 32},          {"int4-g32-f16", 32},
    {"int4-g32-f32-minimum", 32},  {"int8-g16-f32", 16},
    {"int4-g48-f16-minimum", 48},  {"int8-g64-f16-minimum", 64},
    {"int4-g80-f16", 80},          {"int4-row-f32", 112},
    {"int8-row-f32-minimum", 288}, {"int8-g64-f16", 64},
    {"int8-row-f32", 320},         {"fp8-row-f32", 96},
    {"fp8-g32-f16", 32},
};

std::vector<Part> parts() {
  std::vector<Part> result;
  for (MatrixISA isa : allMatrixISAs()) {
    for (int64_t panel : {16, 32, 48, 64})
      for (int64_t columns = panel; columns <= 128; columns += panel) {
        auto isOnMenu = [&](int64_t group) {
          return std::ranges::any_of(microKernelMenu(isa),
                                     [&](const MicroKernel &kernel) {
                                       return kernel.columns == columns &&
                                              hasTilesForSums(kernel, group);
                                     });
        };
        // The usual panels in all forms, others in those that differ.
        const bool isUsual =
            panel == packingOf(isa).panel && columns <= 2 * panel;
        for (const auto &[storage, group] : storedGroups)
          if (const Part part{isa, columns, panel, storage, group};
              (multipliesIntegers(isa)
                   ? isOnMenu(group) && multiplies(isa, part.format())
                   : part.widens(1)) &&
              reads({isa, 1, columns}, integerPacking(panel), part.format()) &&
              (isUsual || group == 32 || (hasTiles(isa) && group == 64)) &&
              (!hasIntegerTiles(isa) ||
               (multiplies(isa, part.format()) && part.format().bits() == 8 &&
                kOfIntegerTiles(group) > 0)))
            result.push_back(part);
      }
  }
  return result;
}

class IntegerMicroKernels : public testing::TestWithParam<Part> {};

/// What `verify` lets pass fits the registers, and all quads that one round
/// takes are multiplied in it.
TEST_P(IntegerMicroKernels, KeepEverythingInRegisters) {
  const Part &part = GetParam();
  if (hasTiles(part.isa))
    GTEST_SKIP() << "sums of a group are in memory";
  std::vector<MicroKernelSpecialization> kernels = part.kernels();
  ASSERT_FALSE(kernels.empty());
  auto program = MicroKernelProgram::compile(kernels, targetOf(part.isa));
  ASSERT_TRUE(program) << program.error().message;
  Result<std::string> assembly = (*program)->assembly();
  ASSERT_TRUE(assembly) << assembly.error().message;
  auto loops = findInnerLoops(*assembly, targetOf(part.isa).architecture);
  for (const MicroKernelSpecialization &kernel : kernels) {
    // Longer groups are read in a loop, 32 numbers at a time if they divide.
    const int64_t ofRound = part.group % 32 == 0 ? 32 : 16;
    const int64_t quads = (part.group <= 64 ? part.group : ofRound) / 4;
    const char *multiplication =
        part.isa == MatrixISA::ARM_NEON_DOTPROD ? "sdot"
        : part.isa == MatrixISA::ARM_NEON_I8MM
            ? (part.format().number == NumberFormat::Int8 &&
                       part.format().offset == GroupOffset::Minimum
                   ? "smmla"
                   : "usmmla")
        : part.isa == MatrixISA::X86_AVX2_INT8   ? "vpmaddubsw"
        : part.isa == MatrixISA::X86_AVX512_BF16 ? "vdpbf16ps"
        : part.isa == MatrixISA::ARM_NEON_F32    ? "fmla"
        : multipliesIntegers(part.isa)           ? "vpdpbusd"
                                                 : "vfmadd";
    int64_t multiplications = 0;
    for (const InnerLoop &loop : loops[kernel.name()]) {
      multiplications = std::max(multiplications, loop.count(multiplication));
      EXPECT_EQ(loop.stackTraffic, std::vector<std::string>()) << kernel.name();
    }
    if (!multipliesIntegers(part.isa)) {
      // Those that scale sums are of the same kind.
      EXPECT_GE(multiplications, quads * kernel.kernel.rows) << kernel.name();
      continue;
    }
    const RegisterFile file = registerFileOf(part.isa);
    int64_t expected = quads * divideUp(kernel.kernel.rows, file.rows) *
                       part.columns / file.columns;
    // Two quads each, and of groups in a loop of their own some columns.
    if (part.isa == MatrixISA::ARM_NEON_I8MM)
      expected = expected / 2 /
                 (part.group <= 64 ? 1 : part.columns / matrixInt8Columns);
    EXPECT_EQ(multiplications, expected) << kernel.name();
  }
}

/// Input, weight and sums of one call. Scales are `exact`, powers of two and
/// numbers so few that sums are exact in any order, or any.
class Operands {
public:
  static constexpr int64_t skippedRows = 1, skippedColumns = 3;

  /// Tiles have `tileRows` rows each.
  Operands(const MicroKernelSpecialization &kernel, int64_t groups,
           bool accumulate, std::mt19937 &random, bool exact = true,
           int64_t tileRows = 0)
      : kernelOf(&kernel), tileRows(tileRows), format(kernel.storage),
        panel(kernel.packing->panel),
        rows(tileRows ? kernel.kernel.rows / rowsOfTile * tileRows
                      : kernel.kernel.rows),
        columns(kernel.kernel.columns), group(kernel.group), groups(groups),
        accumulate(accumulate), panelBytes((groups + 1) * bytesOfGroup()),
        sumsStride(columns + 5), exact(exact), random(random) {
    for (int64_t i = 0; i < rows * k(); ++i)
      input.push_back(static_cast<int8_t>(
          i % group == group / 3 ? 127 - 254 * draw(0, 1) : draw(-7, 7)));
    // What is not rounded has no scale.
    for (int64_t i = 0; i < rows * groups; ++i)
      inputScales.push_back(isPacked() ? drawScale() : 1);
    // Four exponents of floats, subnormal numbers and the largest among them.
    const int lowest = 32 * draw(0, 3);
    for (int64_t i = 0; i < columns * k(); ++i)
      weight.push_back(
          static_cast<uint8_t>(format.number == NumberFormat::FP8
                                   ? lowest + draw(0, 31) + 128 * draw(0, 1)
                                   : draw(0, (1 << format.bits()) - 1)));
    for (int64_t i = 0; i < columns * groups; ++i) {
      weightScales.push_back(drawScale() * (draw(0, 1) != 0 ? 1 : -1));
      minima.push_back(hasMinima() ? drawScale() * draw(-8, 8) : 0);
    }
    sums.resize((rows + 2 * skippedRows) * sumsStride);
    for (float &sum : sums)
      sum = static_cast<float>(draw(-64, 64)) / 4;
  }

  /// The same for another micro-kernel, which has some of the rows of `all`.
  Operands(const Operands &all, const MicroKernelSpecialization &kernel,
           int64_t firstRow)
      : Operands(all) {
    assert(kernel.kernel.columns == columns && firstRow + rows <= all.rows);
    kernelOf = &kernel;
    tileRows = 0;
    rows = kernel.kernel.rows;
    auto keep = [&](auto &values, int64_t stride, int64_t count) {
      values.erase(values.begin(), values.begin() + firstRow * stride);
      values.resize(count * stride);
    };
    keep(input, k(), rows);
    keep(inputScales, groups, rows);
    keep(sums, sumsStride, rows + 2 * skippedRows);
  }

  int64_t inputBytes() const {
    if (!isPacked())
      return (rows + 1) * kernel().inputStride * elementBytes();
    return tiles() * tileBytes();
  }
  int64_t weightBytes() const { return columns / panel * panelBytes; }
  int64_t sumsBytes() const { return std::ssize(sums) * 4; }
  int64_t bytes() const {
    return aligned(inputBytes()) + aligned(weightBytes()) +
           aligned(sumsBytes());
  }

  /// Writes the operands to `memory` from `place` on, everything around them
  /// no number. Input and weight begin one group into their buffers.
  MicroKernelCall write(unsigned char *memory, int64_t place) const {
    MicroKernelCall call;
    call.input = place;
    call.weight = call.input + aligned(inputBytes());
    call.sums = call.weight + aligned(weightBytes());
    std::memset(memory + place, 0xff, call.sums - place);
    call.firstRow = isPacked() ? 0 : 1;
    call.firstK = isPacked() ? inputGroupBytes() : group;
    call.k = k();
    call.weightOffset = bytesOfGroup();
    call.panelStride = panelBytes;
    call.sumsRow = skippedRows;
    call.sumsColumn = skippedColumns;
    call.sumsStride = sumsStride;
    call.accumulate = accumulate;
    if (tileRows) {
      call.tileRows = tileRows;
      call.lastTileRow = call.firstK + (tiles() - 1) * tileBytes();
    }
    for (int64_t number = 0; number < groups; ++number) {
      if (tileRows)
        for (int64_t tile = 0; tile < tiles(); ++tile)
          writeTile(memory + call.input + tile * tileBytes() +
                        (number + 1) * inputGroupBytes(),
                    tile, number);
      else if (isPacked())
        writeInput(memory + call.input + (number + 1) * inputGroupBytes(),
                   number);
      else
        writeFloats(memory + call.input, number);
      for (int64_t column = 0; column < columns; ++column) {
        // The last group is that of the next panel's first.
        unsigned char *to = memory + call.weight + column / panel * panelBytes +
                            (number + 1) % (groups + 1) * bytesOfGroup();
        writeColumn(to, column, number);
      }
    }
    std::memcpy(memory + call.sums, sums.data(), sumsBytes());
    return call;
  }

  std::vector<float> expected() const {
    std::vector<float> result = sums;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < k(); ++i) {
          const int64_t number = i / group;
          const double stored = valueOf(weight[column * k() + i]);
          const double value = stored * weightScales[column * groups + number] +
                               minima[column * groups + number];
          sum +=
              value * input[row * k() + i] * inputScales[row * groups + number];
        }
        float &place =
            result[(skippedRows + row) * sumsStride + skippedColumns + column];
        place = static_cast<float>(accumulate ? place + sum : sum);
      }
    return result;
  }

  const MicroKernelSpecialization &kernel() const { return *kernelOf; }

private:
  static constexpr int64_t rowsOfTile = 16;

  const MicroKernelSpecialization *kernelOf;
  int64_t tileRows;

  static int64_t aligned(int64_t bytes) { return roundUp(bytes, int64_t(64)); }
  int draw(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  }
  /// Neither too large nor too small for sums of them to be exact.
  float drawScale() {
    if (!exact)
      return std::uniform_real_distribution<float>(0.1F, 3.0F)(random);
    return static_cast<float>(draw(1, 3)) / static_cast<float>(1 << draw(0, 2));
  }
  /// What a stored number stands for, but for its scale and minimum.
  double valueOf(uint8_t number) const {
    if (format.number != NumberFormat::FP8)
      return number - (hasMinima() ? 0 : format.storedZero());
    const int exponent = number / 8 % 16, mantissa = number % 8;
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, -9)
                                 : std::ldexp(8 + mantissa, exponent - 10);
    return number < 128 ? magnitude : -magnitude;
  }
  bool pairsRows() const {
    return kernelOf->kernel.isa == MatrixISA::ARM_NEON_I8MM;
  }
  /// What stands for 0 of numbers as they are multiplied: sdot, and AVX2, take
  /// those of 8 bits with a sign, smmla where there are minima.
  int64_t zero() const {
    const bool hasSign = (kernelOf->kernel.isa == MatrixISA::ARM_NEON_DOTPROD ||
                          kernelOf->kernel.isa == MatrixISA::X86_AVX2_INT8 ||
                          (pairsRows() && hasMinima())) &&
                         format.number == NumberFormat::Int8;
    return hasSign ? 0 : format.storedZero();
  }
  bool isPacked() const { return kernelOf->packedInput; }
  int64_t elementBytes() const {
    return multipliesBF16(kernelOf->kernel.isa) ? 2 : 4;
  }
  bool hasMinima() const { return format.offset == GroupOffset::Minimum; }
  int64_t k() const { return groups * group; }
  int64_t bytesOfGroup() const { return groupBytes(format, panel, group); }
  int64_t tiles() const { return tileRows ? rows / tileRows : 1; }
  int64_t tileBytes() const { return (groups + 1) * inputGroupBytes(); }
  int64_t rowsInMemory() const {
    return tileRows ? rowsOfTile : packedRows(kernelOf->kernel.isa, rows);
  }
  int64_t inputGroupBytes() const {
    return rowsInMemory() * packedGroupLength(group);
  }

  template <typename T> static void put(unsigned char *place, T value) {
    std::memcpy(place, &value, sizeof(value));
  }
  void putScale(unsigned char *place, float value) const {
    if (format.scale == ScaleFormat::F32)
      put(place, value);
    else
      put(place, static_cast<_Float16>(value));
  }

  /// [k / step][16][step], of as many rows as there are.
  void writeTile(unsigned char *to, int64_t tile, int64_t number) const {
    const int64_t step = kOfIntegerTiles(group);
    for (int64_t inTile = 0; inTile < tileRows; ++inTile) {
      const int64_t row = tile * tileRows + inTile;
      const int8_t *from = input.data() + row * k() + number * group;
      int32_t sum = 0;
      for (int64_t i = 0; i < group; ++i) {
        to[i / step * step * rowsOfTile + inTile * step + i % step] =
            static_cast<unsigned char>(from[i]);
        sum += from[i];
      }
      unsigned char *start = to + rowsOfTile * group + inTile * 4;
      put(start, static_cast<int32_t>(-zero() * sum));
      put(start + rowsOfTile * 4, inputScales[row * groups + number]);
    }
  }

  void writeInput(unsigned char *to, int64_t number) const {
    for (int64_t place = 0; place < rowsInMemory(); ++place) {
      // The last pair of an odd number is the last two rows, or the only one
      // twice.
      const bool isBeyond = rows % 2 != 0 && place / 2 == rows / 2;
      const int64_t row = pairsRows() && isBeyond
                              ? std::max<int64_t>(rows - 2 + place % 2, 0)
                              : place;
      const int8_t *from = input.data() + row * k() + number * group;
      for (int64_t i = 0; i < group; ++i) {
        // Quads 0 and 2 of both rows of a pair, then 1 and 3.
        const int64_t quad = i / 4 % 4;
        const int64_t inPair = place / 2 * 2 * group + i / 16 * 32 +
                               quad % 2 * 16 + place % 2 * 8 + quad / 2 * 4 +
                               i % 4;
        to[pairsRows() ? inPair : place * group + i] =
            static_cast<unsigned char>(from[i]);
      }
      int32_t sum = 0;
      for (int64_t i = 0; i < group; ++i)
        sum += from[i];
      const float scale = inputScales[row * groups + number];
      unsigned char *start = to + rowsInMemory() * group + place * 4;
      if (hasMinima())
        put(start, scale * static_cast<float>(sum));
      else
        put(start, static_cast<int32_t>(-zero() * sum));
      put(start + rowsInMemory() * 4, scale);
    }
  }

  /// Rows of which the first, and a group before each other, are not read.
  void writeFloats(unsigned char *to, int64_t number) const {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < group; ++i) {
        const int64_t k = number * group + i;
        const auto bits = std::bit_cast<uint32_t>(
            static_cast<float>(input[row * this->k() + k]));
        unsigned char *place =
            to +
            ((row + 1) * kernelOf->inputStride + group + k) * elementBytes();
        if (elementBytes() == 4)
          put(place, bits);
        else
          put(place, static_cast<uint16_t>(bits >> 16));
      }
  }

  /// [quad][column][4] of numbers of 8 bits; of 4 bits the lines of 64 share
  /// one in turn.
  void writeColumn(unsigned char *to, int64_t column, int64_t number) const {
    const int64_t inPanel = column % panel;
    for (int64_t i = 0; i < group; ++i) {
      const uint8_t value = weight[column * k() + number * group + i];
      const int64_t element = (i / 4 * panel + inPanel) * 4 + i % 4;
      if (format.bits() == 8) {
        to[element] = value;
        continue;
      }
      const int64_t line = element / 64;
      unsigned char &byte = to[line / 2 * 64 + element % 64];
      byte = line % 2 == 0
                 ? static_cast<unsigned char>((byte & 0xf0) | value)
                 : static_cast<unsigned char>((byte & 0x0f) | (value << 4));
    }
    const int64_t bytes = bytesOf(format.scale);
    const int64_t place = column * groups + number;
    putScale(to + scalesOffset(format, panel, group) + inPanel * bytes,
             weightScales[place]);
    if (hasMinima())
      putScale(to + minimaOffset(format, panel, group) + inPanel * bytes,
               minima[place]);
  }

  StorageFormat format;
  int64_t panel, rows, columns, group, groups;
  bool accumulate;
  int64_t panelBytes, sumsStride;
  bool exact;
  std::mt19937 &random;
  /// [rows, k] and [rows, groups]; [columns, k] and [columns, groups]; [rows,
  /// stride] with what must stay.
  std::vector<int8_t> input;
  std::vector<uint8_t> weight;
  std::vector<float> inputScales, weightScales, minima, sums;
};

/// What `operands`, one for each of `calls`, become.
std::vector<std::vector<float>> run(MicroKernelProgram &program,
                                    const std::vector<Operands> &operands,
                                    std::vector<MicroKernelCall> &calls) {
  int64_t bytes = 0;
  for (const Operands &each : operands)
    bytes += each.bytes();
  AlignedBytes memory(bytes);
  int64_t place = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const int64_t kernel = calls[i].kernel;
    calls[i] = operands[i].write(memory.data(), place);
    calls[i].kernel = kernel;
    place += operands[i].bytes();
  }
  std::vector<std::vector<float>> results;
  Status status = program.run(calls, memory.data(), bytes, 64);
  EXPECT_TRUE(status) << status.error().message;
  for (size_t i = 0; i < calls.size(); ++i) {
    results.emplace_back(operands[i].sumsBytes() / 4);
    std::memcpy(results.back().data(), memory.data() + calls[i].sums,
                operands[i].sumsBytes());
  }
  return results;
}

TEST_P(IntegerMicroKernels, GiveTheSumsOfAPlainLoop) {
  const Part &part = GetParam();
  const Target target = targetToRun(part.isa);
  if (std::string reason = whyNotRun(target); !reason.empty())
    GTEST_SKIP() << reason;
  std::vector<MicroKernelSpecialization> kernels = part.kernels();
  auto program =
      MicroKernelProgram::compile(kernels, target, emulates(part.isa));
  ASSERT_TRUE(program) << program.error().message;
  std::mt19937 random(static_cast<unsigned>(part.group));
  std::vector<Operands> operands;
  std::vector<MicroKernelCall> calls;
  const std::vector<int64_t> heights = hasTiles(part.isa)
                                           ? std::vector<int64_t>{1, 7, 15, 16}
                                           : std::vector<int64_t>{0};
  for (size_t i = 0; i < kernels.size(); ++i)
    for (int64_t groups : {0, 1, 2, 5})
      for (bool accumulate : {false, true})
        for (int64_t tileRows : heights) {
          operands.emplace_back(kernels[i], groups, accumulate, random,
                                /*exact=*/true, tileRows);
          calls.push_back({.kernel = static_cast<int64_t>(i)});
        }
  const std::vector<std::vector<float>> results =
      run(**program, operands, calls);
  for (size_t i = 0; i < calls.size(); ++i)
    ASSERT_EQ(results[i], operands[i].expected())
        << operands[i].kernel().name() << " with K = " << calls[i].k
        << (calls[i].accumulate ? ", accumulating" : "");
}

/// A row's result has the same bits whether it is alone, by sdot, or beside
/// others.
TEST(IntegerMatrixMicroKernels, GiveTheBitsOfDotProducts) {
  const Target target = targetOf(MatrixISA::ARM_NEON_I8MM);
  if (std::string reason = whyNotRun(target); !reason.empty())
    GTEST_SKIP() << reason;
  constexpr int64_t columns = 16, mostRows = 8, groups = 3;
  for (const auto &[storage, group] : storedGroups) {
    SCOPED_TRACE(storage);
    auto kernelOf = [&](MatrixISA isa, int64_t rows) {
      return MicroKernelSpecialization{.kernel = {isa, rows, columns},
                                       .packing = integerPacking(columns),
                                       .storage =
                                           *StorageFormat::parse(storage),
                                       .group = group,
                                       .packedInput = true};
    };
    std::vector<MicroKernelSpecialization> kernels = {
        kernelOf(MatrixISA::ARM_NEON_DOTPROD, 1)};
    for (int64_t rows = 1; rows <= mostRows; ++rows)
      kernels.push_back(kernelOf(MatrixISA::ARM_NEON_I8MM, rows));
    auto program = MicroKernelProgram::compile(kernels, target);
    ASSERT_TRUE(program) << program.error().message;
    std::mt19937 random(static_cast<unsigned>(group));
    const Operands all(kernels.back(), groups, /*accumulate=*/true, random,
                       /*exact=*/false);
    std::vector<Operands> operands;
    std::vector<MicroKernelCall> calls;
    for (int64_t row = 0; row < mostRows; ++row) {
      operands.emplace_back(all, kernels.front(), row);
      calls.push_back({.kernel = 0});
    }
    for (int64_t rows = 1; rows <= mostRows; ++rows) {
      operands.emplace_back(all, kernels[rows], 0);
      calls.push_back({.kernel = rows});
    }
    const std::vector<std::vector<float>> results =
        run(**program, operands, calls);
    constexpr int64_t stride = columns + 5;
    auto bitsOf = [&](const std::vector<float> &sums, int64_t row) {
      std::vector<uint32_t> bits;
      for (int64_t column = 0; column < columns; ++column)
        bits.push_back(std::bit_cast<uint32_t>(
            sums[(Operands::skippedRows + row) * stride +
                 Operands::skippedColumns + column]));
      return bits;
    };
    for (int64_t rows = 1; rows <= mostRows; ++rows)
      for (int64_t row = 0; row < rows; ++row)
        EXPECT_EQ(bitsOf(results[mostRows + rows - 1], row),
                  bitsOf(results[row], 0))
            << "row " << row << " of " << rows;
  }
}

class IntegerTileMicroKernels : public testing::TestWithParam<const char *> {};

/// A row's result has the same bits whether vectors multiply it alone or tiles
/// beside others.
TEST_P(IntegerTileMicroKernels, GiveTheBitsOfVectors) {
  constexpr int64_t columns = 32, tileRows = 11, groups = 3;
  const StorageFormat format = *StorageFormat::parse(GetParam());
  const Target target = targetToRun(MatrixISA::X86_AMX_INT8);
  if (std::string reason = whyNotRun(target); !reason.empty())
    GTEST_SKIP() << reason;
  auto kernelOf = [&](MatrixISA isa, int64_t rows) {
    return MicroKernelSpecialization{.kernel = {isa, rows, columns},
                                     .packing = integerPacking(columns),
                                     .storage = format,
                                     .group = format.groupSize,
                                     .packedInput = true};
  };
  const std::vector<MicroKernelSpecialization> kernels = {
      kernelOf(MatrixISA::X86_AVX2_INT8, 1),
      kernelOf(MatrixISA::X86_AMX_INT8, 32)};
  auto program = MicroKernelProgram::compile(kernels, target,
                                             emulates(MatrixISA::X86_AMX_INT8));
  ASSERT_TRUE(program) << program.error().message;
  std::mt19937 random(1);
  const Operands all(kernels.back(), groups, /*accumulate=*/true, random,
                     /*exact=*/false, tileRows);
  // AVX2 wants the sign that tiles do not, as the starts of sums tell.
  std::vector<Operands> operands = {all};
  std::vector<MicroKernelCall> calls = {{.kernel = 1}};
  for (int64_t row = 0; row < 2 * tileRows; ++row) {
    operands.emplace_back(all, kernels.front(), row);
    calls.push_back({.kernel = 0});
  }
  const std::vector<std::vector<float>> results =
      run(**program, operands, calls);
  constexpr int64_t stride = columns + 5;
  for (int64_t row = 0; row < 2 * tileRows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      auto bitsOf = [&](const std::vector<float> &sums, int64_t inSums) {
        return std::bit_cast<uint32_t>(
            sums[(Operands::skippedRows + inSums) * stride +
                 Operands::skippedColumns + column]);
      };
      EXPECT_EQ(bitsOf(results[0], row), bitsOf(results[1 + row], 0))
          << "row " << row << ", column " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, IntegerTileMicroKernels,
                         testing::Values("int8-g128-f16", "int8-g32-f16"));
INSTANTIATE_TEST_SUITE_P(Formats, IntegerMicroKernels,
                         testing::ValuesIn(parts()),
                         [](const testing::TestParamInfo<Part> &info) {
                           return info.param.name();
                         });

} // namespace
