//===- MicroKernelTest.cpp - Every micro-kernel of the menu ---------------===//
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
#include "sandwich/Scheduling/StripPlan.h"
#include "sandwich/Support/CheckedMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// The micro-kernels of one instruction set with as many columns and some
/// numbers of rows: all up to the most on the menu have their turn, as balanced
/// strips call them all; those of tiles in whole tiles.
struct MenuPart {
  MatrixISA isa;
  int64_t columns, firstRows, lastRows;

  int64_t rowStep() const { return rowUnitOf(isa); }
  std::string name() const {
    return std::string(sandwich::name(isa)) + "_" + std::to_string(firstRows) +
           "to" + std::to_string(lastRows) + "x" + std::to_string(columns);
  }
  std::vector<Packing> packings() const {
    std::vector<Packing> result;
    for (const Packing &packing : packingsOf(isa))
      if (reads({isa, lastRows, columns}, packing))
        result.push_back(packing);
    return result;
  }
};

void PrintTo(const MenuPart &part, std::ostream *stream) {
  *stream << part.name();
}

std::vector<MenuPart> menuParts() {
  std::map<std::pair<MatrixISA, int64_t>, int64_t> rows;
  for (MatrixISA isa : allMatrixISAs())
    // Those of integers are IntegerMicroKernelTest's.
    for (const MicroKernel &kernel : microKernelMenu(isa)) {
      if (multipliesIntegers(isa))
        continue;
      int64_t &most = rows[{isa, kernel.columns}];
      most = std::max(most, kernel.rows);
    }
  std::vector<MenuPart> result;
  for (auto [column, most] : rows) {
    int64_t step = rowUnitOf(column.first);
    int64_t mostRows = std::max<int64_t>(step, 8);
    for (int64_t first = step; first <= most; first += mostRows)
      result.push_back({column.first, column.second, first,
                        std::min(first + mostRows - 1, most)});
  }
  return result;
}

/// The instructions that multiply, as assembly names them: one of these does.
std::vector<std::string_view> multiplicationsOf(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
    return {"vfmadd"};
  case MatrixISA::X86_AVX512_BF16:
    return {"vdpbf16ps"};
  case MatrixISA::X86_AVX2_INT8:
    return {"vpmaddubsw"};
  case MatrixISA::X86_AVX_VNNI:
  case MatrixISA::X86_AVX512_VNNI:
    return {"vpdpbusd"};
  case MatrixISA::ARM_NEON_DOTPROD:
    return {"sdot"};
  case MatrixISA::ARM_NEON_I8MM:
    return {"usmmla", "smmla"};
  case MatrixISA::X86_AMX_BF16:
    return {"tdpbf16ps"};
  case MatrixISA::X86_AMX_INT8:
    return {"tdpbsud"};
  case MatrixISA::ARM_NEON_F32:
    return {"fmla"};
  case MatrixISA::ARM_SVE_F32:
    // The one adds to the sum, the other writes it over another operand.
    return {"fmla", "fmad"};
  case MatrixISA::ARM_NEON_BF16:
  case MatrixISA::ARM_SVE_BF16:
    return {"bfmmla"};
  }
  __builtin_unreachable();
}

std::string nameOf(const testing::TestParamInfo<MenuPart> &info) {
  return info.param.name();
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

class MicroKernelCode : public testing::TestWithParam<MenuPart> {
protected:
  /// Everything that can change the registers a loop needs.
  static std::vector<MicroKernelSpecialization> variants(const MenuPart &part) {
    std::vector<MicroKernelSpecialization> result;
    for (int64_t rows = part.firstRows; rows <= part.lastRows;
         rows += part.rowStep())
      for (const Packing &packing : part.packings())
        // Prefetches need two registers more.
        for (int64_t prefetchLines : packing == packingOf(part.isa)
                                         ? std::vector<int64_t>{0, 4}
                                         : std::vector<int64_t>{4})
          for (bool widens : {false, true})
            // The input's form does not depend on the weight's.
            for (bool packed : {false, true})
              if ((!widens || !multipliesBF16(part.isa)) &&
                  (!packed || (canPackInput(part.isa) && prefetchLines > 0 &&
                               packing == packingOf(part.isa))))
                result.push_back({.kernel = {part.isa, rows, part.columns},
                                  .inputStride = 2080,
                                  .widensWeights = widens,
                                  .packing = packing,
                                  .prefetchLines = prefetchLines,
                                  .packedInput = packed});
    return result;
  }
};

/// What `verify` lets pass fits the registers: no innermost loop touches the
/// stack, and one multiplies with every sum.
TEST_P(MicroKernelCode, KeepsEverythingInRegisters) {
  const MenuPart &part = GetParam();
  std::vector<MicroKernelSpecialization> kernels = variants(part);
  auto program = MicroKernelProgram::compile(kernels, targetOf(part.isa));
  ASSERT_TRUE(program) << program.error().message;
  Result<std::string> assembly = (*program)->assembly();
  ASSERT_TRUE(assembly) << assembly.error().message;
  auto loops = findInnerLoops(*assembly, targetOf(part.isa).architecture);
  RegisterFile file = registerFileOf(part.isa);
  for (const MicroKernelSpecialization &kernel : kernels) {
    const std::vector<InnerLoop> &inner = loops[kernel.name()];
    int64_t sums =
        divideUp(kernel.kernel.rows, file.rows) * (part.columns / file.columns);
    int64_t steps = loopStep(part.isa) / kernel.weightPacking().kStep;
    int64_t multiplications = 0;
    for (const InnerLoop &loop : inner) {
      int64_t inLoop = 0;
      for (std::string_view name : multiplicationsOf(part.isa))
        inLoop += loop.count(name);
      multiplications = std::max(multiplications, inLoop);
      EXPECT_EQ(loop.stackTraffic, std::vector<std::string>()) << kernel.name();
    }
    EXPECT_GE(multiplications, sums * steps) << kernel.name();
  }
}

/// A step of 2 x 2 tiles is four loads and four multiplications, whatever is
/// prefetched, packed or streamed, and nowhere are tiles configured, given back
/// or on the stack.
TEST(TileCode, IsNothingButLoadsAndMultiplications) {
  std::vector<MicroKernelSpecialization> kernels;
  for (bool packed : {false, true})
    for (StreamedOperands streamed :
         {StreamedOperands::None, StreamedOperands::Input,
          StreamedOperands::Weight, StreamedOperands::Both})
      for (int64_t prefetchLines : {0, 1, 4})
        kernels.push_back({.kernel = {MatrixISA::X86_AMX_BF16, 32, 32},
                           .prefetchLines = prefetchLines,
                           .prefetchStreams = 4,
                           .packedInput = packed,
                           .streamed = streamed});
  auto program =
      MicroKernelProgram::compile(kernels, targetOf(MatrixISA::X86_AMX_BF16));
  ASSERT_TRUE(program) << program.error().message;
  Result<std::string> assembly = (*program)->assembly();
  ASSERT_TRUE(assembly) << assembly.error().message;
  auto loops = findInnerLoops(*assembly, CpuArchitecture::X86_64);
  for (const MicroKernelSpecialization &kernel : kernels) {
    ASSERT_EQ(loops[kernel.name()].size(), 1u) << kernel.name();
    const InnerLoop &loop = loops[kernel.name()].front();
    int64_t streamed = loop.count("tileloaddt1");
    EXPECT_EQ(loop.count("tileloadd"), 4) << kernel.name();
    EXPECT_EQ(streamed, 2 * streamsInput(kernel.streamed) +
                            2 * streamsWeight(kernel.streamed))
        << kernel.name();
    EXPECT_EQ(loop.count("tdpbf16ps"), 4) << kernel.name();
    EXPECT_EQ(loop.count("prefetch"), 4 * kernel.prefetchLines)
        << kernel.name();
    for (const std::string &instruction : loop.stackTraffic)
      EXPECT_EQ(instruction.find("tile"), std::string::npos)
          << instruction << " in " << kernel.name();
    // Where they lie is counted up, little else.
    EXPECT_LE(std::ssize(loop.instructions), 8 + 4 * kernel.prefetchLines + 20)
        << kernel.name();
  }
  // Where they are called, and nowhere else.
  for (std::string_view instruction : {"ldtilecfg", "tilerelease"}) {
    ASSERT_NE(assembly->find(instruction), std::string::npos);
    const size_t function = assembly->find("\nsandwich_call:");
    ASSERT_NE(function, std::string::npos);
    const size_t end = assembly->find("func_end", function);
    for (size_t place = assembly->find(instruction); place != std::string::npos;
         place = assembly->find(instruction, place + 1)) {
      EXPECT_GT(place, function);
      EXPECT_LT(place, end);
    }
  }
}

/// What is not a load, a prefetch or a branch and takes a pipe of vectors.
int64_t countVectorOperations(const InnerLoop &loop) {
  return std::ranges::count_if(
      loop.instructions, [](const std::string &instruction) {
        const size_t operands = instruction.find('\t');
        return !instruction.starts_with("ld") &&
               operands != std::string::npos &&
               (instruction[operands + 1] == 'v' ||
                instruction[operands + 1] == 'z' ||
                instruction[operands + 1] == 'q' ||
                instruction[operands + 1] == 'd' ||
                instruction[operands + 1] == 's') &&
               std::isdigit(instruction[operands + 2]) != 0;
      });
}

/// In the loops of those that the untuned rule takes for many rows on ARM, and
/// of 8 x 12, nothing takes the pipes of vectors but multiplications and, where
/// bf16 is widened, one operation for each register of the weight. Little else
/// is there than the loads that this takes.
TEST(ArmCode, IsNearlyNothingButLoadsAndMultiplications) {
  struct Case {
    MicroKernelSpecialization kernel;
    /// Of a step, as few as there can be; two of the weight's may be one.
    int64_t inputLoads, weightLoads;
  };
  const auto chosen = [](MicroKernel kernel, bool widens = false,
                         int64_t panel = 0) {
    MicroKernelSpecialization result{.kernel = kernel,
                                     .inputStride = 2080,
                                     .widensWeights = widens,
                                     .prefetchLines = 1,
                                     .packedInput = canPackInput(kernel.isa)};
    if (panel > 0) {
      result.packing = packingOf(kernel.isa);
      result.packing->panel = result.packing->tile = panel;
    }
    return result;
  };
  using enum MatrixISA;
  const std::vector<Case> cases = {
      {chosen({ARM_NEON_F32, 6, 16}), 2, 4},
      {chosen({ARM_NEON_F32, 8, 12}, false, 12), 2, 3},
      {chosen({ARM_NEON_F32, 12, 8}, true), 3, 1},
      {chosen({ARM_NEON_BF16, 6, 16}), 3, 8},
      {chosen({ARM_NEON_BF16, 8, 12}, false, 12), 4, 6},
      {chosen({ARM_SVE_F32, 12, 32}), 12, 2},
      {chosen({ARM_SVE_F32, 12, 32}, true), 12, 2},
      {chosen({ARM_SVE_BF16, 12, 32}), 6, 4},
  };
  for (const auto &[kernel, inputLoads, weightLoads] : cases) {
    const MatrixISA isa = kernel.kernel.isa;
    auto program = MicroKernelProgram::compile({kernel}, targetOf(isa));
    ASSERT_TRUE(program) << program.error().message;
    Result<std::string> assembly = (*program)->assembly();
    ASSERT_TRUE(assembly) << assembly.error().message;
    const auto loops = findInnerLoops(*assembly, CpuArchitecture::AArch64);
    const RegisterFile file = registerFileOf(isa);
    const int64_t steps = loopStep(isa) / kernel.weightPacking().kStep;
    const int64_t columns = kernel.kernel.columns / file.columns;
    const int64_t multiplications =
        steps * (kernel.kernel.rows / file.rows) * columns;
    const int64_t widenings = kernel.widensWeights ? steps * columns : 0;
    int64_t rounds = 0;
    for (const InnerLoop &loop : loops.at(kernel.name())) {
      int64_t multiplied = 0;
      for (std::string_view name : multiplicationsOf(isa))
        multiplied += loop.count(name);
      if (multiplied < multiplications)
        continue;
      ++rounds;
      EXPECT_EQ(multiplied, multiplications) << kernel.name();
      EXPECT_EQ(countVectorOperations(loop), multiplications + widenings)
          << kernel.name();
      // Addresses, of scalable vectors some in each step and of rows one each,
      // the count and the branch.
      const int64_t addresses = !hasScalableVectors(isa) ? 4
                                : kernel.packedInput
                                    ? steps * 5
                                    : steps * (kernel.kernel.rows + 5);
      EXPECT_LE(std::ssize(loop.instructions),
                multiplications + widenings +
                    steps * (inputLoads + weightLoads) + kernel.prefetchLines +
                    addresses + 4)
          << kernel.name();
    }
    EXPECT_EQ(rounds, 1) << kernel.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, MicroKernelCode, testing::ValuesIn(menuParts()),
                         nameOf);

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The height of tiles, and the rows that the last tile of the input shares
/// with the one before.
struct TileShape {
  int64_t rows = 1, shared = 0;
};

/// Input, weight and sums of one call in memory. All numbers are small
/// multiples of 1/4, so that sums are exact in any order.
class Operands {
public:
  static constexpr int64_t inputStride = 200, maxK = 112, skippedK = 32,
                           skippedRows = 2, skippedColumns = 4;

  Operands(const MicroKernelSpecialization &kernel, TileShape shape, int64_t k,
           bool accumulate, std::mt19937 &random)
      : kernel(kernel), packing(kernel.weightPacking()), shape(shape),
        rows(kernel.kernel.rows / rowUnitOf(kernel.kernel.isa) * shape.rows),
        k(k), accumulate(accumulate),
        panels(divideUp(kernel.kernel.columns, packing.panel)),
        // Panels go on after the k of this call.
        panelStride(packing.panel * (k + packing.kStep)),
        sumsStride(kernel.kernel.columns + 7),
        bf16Input(multipliesBF16(kernel.kernel.isa)),
        bf16Weight(bf16Input || kernel.widensWeights) {
    std::uniform_int_distribution<int> quarters(-8, 8);
    auto draw = [&](std::vector<float> &values, int64_t count) {
      values.resize(count);
      for (float &value : values)
        value = static_cast<float>(quarters(random)) / 4;
    };
    draw(input, rows * k);
    draw(weight, kernel.kernel.columns * k);
    draw(sums, (rows + 2 * skippedRows) * sumsStride);
  }

  /// Bytes from the end of one buffer to the next.
  static constexpr size_t padding = 64;
  size_t inputBytes() const {
    return (rows + skippedRows) * inputStride * (bf16Input ? 2 : 4);
  }
  size_t weightBytes() const {
    return (firstPanelElement() + panels * panelStride) * (bf16Weight ? 2 : 4);
  }
  size_t sumsBytes() const { return sums.size() * 4; }
  size_t bytes() const {
    return roundUp(inputBytes()) + roundUp(weightBytes()) +
           roundUp(sumsBytes());
  }

  /// Writes the operands from `memory + place` on, everything around them no
  /// number.
  MicroKernelCall write(unsigned char *memory, int64_t place) const {
    MicroKernelCall call;
    call.input = place;
    call.weight = call.input + roundUp(inputBytes());
    call.sums = call.weight + roundUp(weightBytes());
    std::memset(memory + place, 0xff, call.sums - place);
    call.k = k;
    call.tileRows = shape.rows;
    if (kernel.packedInput && !hasTiles(kernel.kernel.isa)) {
      call.firstK = skippedK;
    } else if (kernel.packedInput) {
      call.inputStride = packing.kStep;
      call.lastTileRow = lastTile() * (k / packing.kStep) * shape.rows;
    } else {
      call.firstRow = skippedRows;
      call.lastTileRow = skippedRows + inputRow(lastTile() * shape.rows);
      call.firstK = skippedK;
      call.inputStride = inputStride;
    }
    const int64_t places =
        kernel.packedInput ? packedRows(kernel.kernel.isa, rows) : rows;
    for (int64_t row = 0; row < places; ++row)
      for (int64_t i = 0; i < k; ++i)
        put(memory + call.input, bf16Input, inputPlace(row, i),
            input[inputRow(row) * k + i]);
    call.weightOffset =
        firstPanelElement() + getColumnOffset(packing, firstColumn());
    call.panelStride = panelStride;
    for (int64_t column = 0; column < kernel.kernel.columns; ++column)
      for (int64_t i = 0; i < k; ++i)
        put(memory + call.weight, bf16Weight, weightPlace(column, i),
            weight[column * k + i]);
    std::memcpy(memory + call.sums, sums.data(), sumsBytes());
    call.sumsRow = skippedRows;
    call.sumsColumn = skippedColumns;
    call.sumsStride = sumsStride;
    call.accumulate = accumulate;
    return call;
  }

  /// The sums that the call must leave.
  std::vector<float> expected() const {
    std::vector<float> result = sums;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < kernel.kernel.columns; ++column) {
        float &sum =
            result[(skippedRows + row) * sumsStride + skippedColumns + column];
        if (!accumulate)
          sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += input[sumRow(row) * k + i] * weight[column * k + i];
      }
    return result;
  }

  const MicroKernelSpecialization &kernel;

private:
  static int64_t roundUp(size_t bytes) {
    return static_cast<int64_t>((bytes + 63) / 64 * 64);
  }
  int64_t lastTile() const { return rows / shape.rows - 1; }
  /// The row of the input that place `row` of the buffer has.
  int64_t inputRow(int64_t row) const {
    if (kernel.packedInput && registerFileOf(kernel.kernel.isa).rows == 2) {
      // The last pair of an odd number is the last two, or the only one twice.
      const int64_t second = std::min(row / 2 * 2 + 1, rows - 1);
      return row % 2 == 1 ? second : std::max<int64_t>(second - 1, 0);
    }
    bool isLast = lastTile() > 0 && row >= lastTile() * shape.rows;
    return isLast ? row - shape.shared : row;
  }
  /// The row of the input that the sums of row `row` are of.
  int64_t sumRow(int64_t row) const {
    return hasTiles(kernel.kernel.isa) ? inputRow(row) : row;
  }
  /// The element of the buffer that the sums of `row` read for the `i`-th k.
  int64_t inputPlace(int64_t row, int64_t i) const {
    if (!kernel.packedInput)
      return (skippedRows + inputRow(row)) * inputStride + skippedK + i;
    if (!hasTiles(kernel.kernel.isa))
      return skippedK +
             (i / packing.kPack * packedRows(kernel.kernel.isa, rows) + row) *
                 packing.kPack +
             i % packing.kPack;
    int64_t tile = row / shape.rows * (k / packing.kStep) + i / packing.kStep;
    return (tile * shape.rows + row % shape.rows) * packing.kStep +
           i % packing.kStep;
  }
  /// A micro-kernel narrower than a panel gets its last columns.
  int64_t firstColumn() const {
    return std::max<int64_t>(packing.panel - kernel.kernel.columns, 0);
  }
  /// The call begins one step of K after its panels do.
  int64_t firstPanelElement() const { return packing.panel * packing.kStep; }

  /// [panel][k / kStep][panel / tile][kStep / kPack][tile][kPack]
  int64_t weightPlace(int64_t column, int64_t i) const {
    column += firstColumn();
    int64_t inPanel = column % packing.panel;
    int64_t place = i / packing.kStep * (packing.panel / packing.tile) +
                    inPanel / packing.tile;
    place = place * (packing.kStep / packing.kPack) +
            i % packing.kStep / packing.kPack;
    place = place * packing.tile + inPanel % packing.tile;
    place = place * packing.kPack + i % packing.kPack;
    return firstPanelElement() + column / packing.panel * panelStride + place;
  }

  static void put(unsigned char *buffer, bool bf16, int64_t place,
                  float value) {
    if (bf16)
      reinterpret_cast<uint16_t *>(buffer)[place] = toBF16(value);
    else
      reinterpret_cast<float *>(buffer)[place] = value;
  }

  Packing packing;
  TileShape shape;
  /// Of sums.
  int64_t rows;
  int64_t k;
  bool accumulate;
  int64_t panels, panelStride, sumsStride;
  bool bf16Input, bf16Weight;
  /// [rows, k], [columns, k] and [rows, stride] with what must stay.
  std::vector<float> input, weight, sums;
};

class MicroKernelResults : public testing::TestWithParam<MenuPart> {
protected:
  static std::vector<MicroKernelSpecialization> variants(const MenuPart &part) {
    std::vector<MicroKernelSpecialization> result;
    for (int64_t rows = part.firstRows; rows <= part.lastRows;
         rows += part.rowStep()) {
      for (const Packing &packing : part.packings()) {
        result.push_back({.kernel = {part.isa, rows, part.columns},
                          .inputStride = Operands::inputStride,
                          .packing = packing});
        if (!multipliesBF16(part.isa) && packing == packingOf(part.isa)) {
          result.push_back(result.back());
          result.back().widensWeights = true;
        }
        if (canPackInput(part.isa)) {
          result.push_back(result.back());
          result.back().packedInput = true;
          if (hasTiles(part.isa))
            result.back().streamed = StreamedOperands::Both;
        }
      }
    }
    return result;
  }
  /// The heights that tiles can have, or no tiles.
  static std::vector<TileShape> shapes(MatrixISA isa) {
    if (!hasTiles(isa))
      return {{}};
    return {{1, 0}, {2, 1}, {9, 0}, {16, 0}, {16, 15}};
  }
  /// Nothing, less than a round of the loop, a round, and rounds with every
  /// remainder.
  static std::vector<int64_t> sizesOfK(MatrixISA isa) {
    int64_t kStep = packingOf(isa).kStep, round = loopStep(isa);
    std::vector<int64_t> result = {0, kStep};
    for (int64_t k = round; k < 2 * round; k += kStep)
      result.push_back(k);
    result.push_back(3 * round + kStep);
    return result;
  }
};

TEST_P(MicroKernelResults, AreThoseOfAPlainLoop) {
  const MenuPart &part = GetParam();
  Target target = targetToRun(part.isa);
  if (std::string reason = whyNotRun(target); !reason.empty())
    GTEST_SKIP() << reason;

  std::vector<MicroKernelSpecialization> kernels = variants(part);
  auto program =
      MicroKernelProgram::compile(kernels, target, emulates(part.isa));
  ASSERT_TRUE(program) << program.error().message;
  std::mt19937 random(static_cast<unsigned>(part.columns));
  std::vector<Operands> operands;
  std::vector<MicroKernelCall> calls;
  size_t bytes = 0;
  // As long as registers are, or as the CPU has them.
  std::vector<int64_t> lengths = {64};
  if (hasScalableVectors(part.isa))
    lengths = {16, 32, 64};
  auto runWith = [&](int64_t vectorBytes) {
    AlignedBytes memory(bytes);
    int64_t place = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      int64_t kernel = calls[i].kernel;
      calls[i] = operands[i].write(memory.data(), place);
      calls[i].kernel = kernel;
      place += static_cast<int64_t>(operands[i].bytes());
    }
    Status status = (*program)->run(calls, memory.data(), bytes, vectorBytes);
    ASSERT_TRUE(status) << status.error().message;
    for (size_t i = 0; i < calls.size(); ++i) {
      std::vector<float> result(operands[i].sumsBytes() / 4);
      std::memcpy(result.data(), memory.data() + calls[i].sums,
                  operands[i].sumsBytes());
      ASSERT_EQ(result, operands[i].expected())
          << operands[i].kernel.name() << " with K = " << calls[i].k
          << (calls[i].accumulate ? ", accumulating" : "") << ", vectors of "
          << vectorBytes << " bytes";
    }
  };
  auto runAll = [&] {
    for (int64_t vectorBytes : lengths) {
      ASSERT_NO_FATAL_FAILURE(runWith(vectorBytes));
    }
    operands.clear();
    calls.clear();
    bytes = 0;
  };
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel)
    for (TileShape shape : shapes(part.isa))
      for (int64_t k : sizesOfK(part.isa))
        for (bool accumulate : {false, true}) {
          operands.emplace_back(kernels[kernel], shape, k, accumulate, random);
          calls.push_back({.kernel = static_cast<int64_t>(kernel)});
          bytes += operands.back().bytes();
          if (bytes > size_t(1) << 24) {
            ASSERT_NO_FATAL_FAILURE(runAll());
          }
        }
  if (!calls.empty()) {
    ASSERT_NO_FATAL_FAILURE(runAll());
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, MicroKernelResults,
                         testing::ValuesIn(menuParts()), nameOf);

//===----------------------------------------------------------------------===//
// The check itself
//===----------------------------------------------------------------------===//

TEST(AssemblyLoops, FindsStackTrafficOfInnermostLoopsOnly) {
  auto loops = findInnerLoops(R"(
	.text
kernel:
	pushq	%rbp
	movq	%rsp, %rbp
.LBB0_1:                                # %outer
	movq	8(%rsp), %rax           # 8-byte Reload
.LBB0_2:                                # %inner
	vmovaps	-64(%rbp), %zmm1
	vfmadd231ps	(%rax), %zmm0, %zmm1
	jne	.LBB0_2
	jne	.LBB0_1
.LBB0_3:
	vmovups	(%rax), %zmm0
	decq	%rcx
	jne	.LBB0_3
	popq	%rbp
	retq
backwards:
	jmp	.LBB1_1
.LBB1_0:
	movq	8(%rsp), %rax
	retq
.LBB1_1:
	jmp	.LBB1_0
frameless:
.LBB2_1:
	vmovaps	(%rbp), %zmm1
	jne	.LBB2_1
)",
                              CpuArchitecture::X86_64);
  ASSERT_EQ(loops["kernel"].size(), 2u);
  EXPECT_EQ(loops["kernel"][0].stackTraffic,
            std::vector<std::string>{"vmovaps\t-64(%rbp), %zmm1"});
  EXPECT_EQ(loops["kernel"][0].count("vfmadd"), 1);
  EXPECT_EQ(loops["kernel"][1].stackTraffic, std::vector<std::string>());
  EXPECT_EQ(loops["backwards"].size(), 0u);
  ASSERT_EQ(loops["frameless"].size(), 1u);
  EXPECT_EQ(loops["frameless"][0].stackTraffic, std::vector<std::string>());

  loops = findInnerLoops(R"(
kernel:                                 // @kernel
.LBB0_1:
	ldr	q0, [sp, #16]                   // 16-byte Folded Reload
	fmla	v0.4s, v1.4s, v2.s[0]
	cbnz	x0, .LBB0_1
	ret
)",
                         CpuArchitecture::AArch64);
  ASSERT_EQ(loops["kernel"].size(), 1u);
  EXPECT_EQ(loops["kernel"][0].stackTraffic,
            std::vector<std::string>{"ldr\tq0, [sp, #16]"});
  EXPECT_EQ(loops["kernel"][0].count("fmla"), 1);
}

} // namespace
