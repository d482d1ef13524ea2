//===- MatmulLibraryTest.cpp - Measured matmuls ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MatmulLibrary.h"

#include "PackedWeight.h"
#include "sandwich/Quantization/Float8.h"
#include "sandwich/Runtime/Teams/TeamStep.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/CheckedMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <set>

using namespace sandwich;

namespace {

constexpr int64_t maxRows = 64;

float readBF16(const std::byte *data, int64_t index) {
  const uint32_t bits =
      uint32_t(reinterpret_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float readF32(const std::byte *data, int64_t index) {
  return reinterpret_cast<const float *>(data)[index];
}

void write(std::byte *data, int64_t index, bool bf16, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (bf16)
    reinterpret_cast<uint16_t *>(data)[index] =
        static_cast<uint16_t>(bits >> 16);
  else
    reinterpret_cast<float *>(data)[index] = value;
}

/// Few bits, so that f32 holds the sums exactly.
class FewBits {
public:
  explicit FewBits(uint32_t seed) : random(seed) {}
  float operator()() { return static_cast<float>(random() % 9) / 4 - 1; }

private:
  std::mt19937 random;
};

/// The operands of a program, and steps on them.
class Operands {
public:
  explicit Operands(const MatmulProgram &program)
      : program(program),
        weights(*AnonymousMemory::allocate(program.weightBytes(), "weights")),
        cache(*AnonymousMemory::allocate(program.cacheBytes() + 64, "cache")) {
    numbers.resize(std::max<int64_t>(program.maxRows, program.layers));
    std::iota(numbers.begin(), numbers.end(), 0);
    FewBits next(1);
    // Biases and norms are f32.
    auto [first, stride] = program.weightPlace();
    for (int64_t i = 0; i < first / 4; ++i)
      write(weights.data(), i, false, next());
    if (program.shape.storage.isQuantized()) {
      fillGroups();
      return;
    }
    const bool bf16 = program.shape.storage.number == NumberFormat::BF16;
    for (int64_t i = 0; i < program.layers * stride / (bf16 ? 2 : 4); ++i)
      write(weights.data() + first, i, bf16, next());
  }

  /// What a step of `rows` tokens on all layers makes of random operands, which
  /// are the same each time: the bytes of the result and of the cache.
  std::vector<std::byte> run(const MatmulCode &code, int64_t rows,
                             const std::vector<ThreadPart> &parts,
                             PhaseTeam *team) {
    workspace = *AnonymousMemory::allocate(code.workspaceBytes, "workspace");
    FewBits next(2);
    auto fill = [&](int64_t begin, int64_t elements, bool bf16) {
      for (int64_t i = 0; i < elements; ++i)
        write(workspace.data() + begin, i, bf16, next());
    };
    if (program.shape.storage.isQuantized())
      fillRoundedInput();
    else
      fill(0, program.maxRows * program.inputStride(), program.bf16Input());
    fill(code.workspace.result, program.maxRows * program.resultStride(),
         program.bf16Result());
    if (program.shape.epilogue.kind == Epilogue::RotateAppendKV)
      fill(code.workspace.rotaryTable, program.maxRows * program.rotaryStride(),
           false);
    std::memset(cache.data(), 0, cache.size());
    if (code.parameters)
      code.writeParameters(workspace.data(), parts);
    SandwichStep step = {};
    step.token_ids = step.positions = step.cache_slots = numbers.data();
    step.num_tokens = rows;
    step.logit_rows = numbers.data();
    step.num_logit_rows = program.layers;
    step.weights = weights.data();
    step.workspace = workspace.data();
    step.kv_cache = cache.data();
    step.num_blocks =
        divideUp<int64_t>(program.maxRows, SANDWICH_KV_BLOCK_TOKENS);
    if (team) {
      setTeam(step, *team);
      runOnTeam(*team, static_cast<unsigned>(program.threads), code.function,
                step);
    } else {
      step.barrier = [](void *) {};
      code.function(&step, 0);
    }
    std::vector<std::byte> bytes;
    const std::byte *result = workspace.data() + code.workspace.result;
    bytes.insert(bytes.end(), result,
                 result + program.maxRows * program.resultStride() *
                              (program.bf16Result() ? 2 : 4));
    bytes.insert(bytes.end(), cache.data(), cache.data() + cache.size());
    return bytes;
  }

  float input(int64_t row, int64_t k) const {
    const int64_t index = row * program.inputStride() + k;
    return program.bf16Input() ? readBF16(workspace.data(), index)
                               : readF32(workspace.data(), index);
  }
  float weight(int64_t n, int64_t k) const {
    if (program.shape.storage.isQuantized())
      return quantizedWeight(n, k);
    const Packing &packing = *program.shape.packing;
    const int64_t index = test::packedIndex(packing, program.shape.k, n, k);
    const std::byte *matrix = weights.data() + program.weightPlace()[0];
    return program.shape.storage == StorageFormat::bf16()
               ? readBF16(matrix, index)
               : readF32(matrix, index);
  }

  /// What rounding to 8 bits with a scale for `groupK` k makes of a weight of 4
  /// bits.
  float regroupedWeight(int64_t n, int64_t k, int64_t groupK) const {
    constexpr float mostSteps = 15, fraction = 256, half = 0.5;
    constexpr int zero = 128;
    float largest = 0;
    for (int64_t i = 0; i < groupK; ++i) {
      const StoredWeight each = storedWeight(n, k / groupK * groupK + i);
      largest = std::max({largest, std::abs(each.base),
                          std::abs(mostSteps * each.scale + each.base)});
    }
    const float steps = 127 / largest * fraction;
    const StoredWeight weight = storedWeight(n, k);
    const float start =
        std::nearbyint(std::fma(weight.base, steps, fraction * (zero + half)));
    const int sum =
        weight.number * static_cast<int>(std::nearbyint(weight.scale * steps)) +
        static_cast<int>(start);
    return static_cast<float>((sum >> 8) - zero) * largest / 127;
  }

  const MatmulProgram program;

private:
  /// A number as it is stored, what it counts for, and what 0 stands for.
  struct StoredWeight {
    int number;
    float scale, base;
  };
  const std::byte *groupAt(int64_t n, int64_t k) const {
    const StorageFormat &storage = program.shape.storage;
    const int64_t panel = program.shape.packing->panel;
    const int64_t depth = program.shape.k, group = storage.groupOf(depth);
    return weights.data() + program.weightPlace()[0] +
           (n / panel * (depth / group) + k / group) *
               groupBytes(storage, panel, group);
  }
  /// Any numbers, and scales that are powers of two.
  void fillGroups() {
    const StorageFormat &storage = program.shape.storage;
    const int64_t panel = program.shape.packing->panel;
    const int64_t group = storage.groupOf(program.shape.k);
    const auto [first, stride] = program.weightPlace();
    const int64_t bytes = groupBytes(storage, panel, group);
    std::mt19937 random(4);
    for (int64_t layer = 0; layer < program.layers; ++layer)
      for (int64_t place = first + layer * stride;
           place + bytes <= first + (layer + 1) * stride; place += bytes) {
        std::byte *to = weights.data() + place;
        for (int64_t i = 0; i < bytes; ++i) {
          to[i] = static_cast<std::byte>(random());
          // All numbers of fp8 that there are.
          if (storage.number == NumberFormat::FP8 &&
              isFloat8NaN(static_cast<uint8_t>(to[i])))
            to[i] = std::byte(0);
        }
        for (int64_t column = 0; column < panel; ++column) {
          const float scale = 1.0F / static_cast<float>(1 << random() % 3);
          auto put = [&](int64_t offset, float value) {
            if (storage.scale == ScaleFormat::F32)
              return write(to + offset, column, false, value);
            const auto half = static_cast<_Float16>(value);
            std::memcpy(to + offset + 2 * column, &half, sizeof(half));
          };
          put(scalesOffset(storage, panel, group), scale);
          if (storage.offset == GroupOffset::Minimum)
            put(minimaOffset(storage, panel, group), -3 * scale);
        }
      }
  }
  /// What rounding to int8 in groups does not change: the largest is 127 steps.
  void fillRoundedInput() {
    const int64_t group = program.shape.storage.groupOf(program.shape.k);
    std::mt19937 random(6);
    for (int64_t row = 0; row < program.maxRows; ++row)
      for (int64_t i = 0; i < program.inputStride(); ++i)
        write(workspace.data(), row * program.inputStride() + i,
              program.bf16Input(),
              static_cast<float>(i % group == 0
                                     ? 127
                                     : static_cast<int>(random() % 255) - 127) /
                  128);
  }
  float quantizedWeight(int64_t n, int64_t k) const {
    const auto [number, scale, base] = storedWeight(n, k);
    if (program.shape.storage.number == NumberFormat::FP8)
      return scale * fromFloat8(static_cast<uint8_t>(number));
    return scale * static_cast<float>(number) + base;
  }
  StoredWeight storedWeight(int64_t n, int64_t k) const {
    const StorageFormat &storage = program.shape.storage;
    const int64_t panel = program.shape.packing->panel;
    const int64_t group = storage.groupOf(program.shape.k);
    const std::byte *from = groupAt(n, k);
    const int64_t column = n % panel, inGroup = k % group;
    const int64_t element = (inGroup / 4 * panel + column) * 4 + inGroup % 4;
    int stored = 0;
    if (storage.bits() == 8) {
      stored = static_cast<int>(from[element]);
    } else {
      // Two lines of 64 share one, the first in the low halves of its bytes.
      const int64_t line = element / 64;
      const int both = static_cast<int>(from[line / 2 * 64 + element % 64]);
      stored = line % 2 == 0 ? both & 15 : both >> 4;
    }
    auto get = [&](int64_t offset) {
      if (storage.scale == ScaleFormat::F32)
        return readF32(from + offset, column);
      _Float16 half;
      std::memcpy(&half, from + offset + 2 * column, sizeof(half));
      return static_cast<float>(half);
    };
    const float scale = get(scalesOffset(storage, panel, group));
    if (storage.number == NumberFormat::FP8)
      return {stored, scale, 0};
    if (storage.offset == GroupOffset::Minimum)
      return {stored, scale, get(minimaOffset(storage, panel, group))};
    return {stored, scale, -scale * static_cast<float>(storage.storedZero())};
  }

  AnonymousMemory weights, workspace, cache;
  std::vector<int32_t> numbers;
};

/// Draws schedules, and numbers.
class Draws {
public:
  Draws(const MatmulProgram &program, uint32_t seed)
      : program(program), random(seed), menu(microKernelMenu(program.isa)) {
    std::erase_if(menu, [&](const MicroKernel &kernel) {
      return !reads(kernel, *program.shape.packing, program.shape.storage);
    });
  }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  Schedule schedule() {
    const Packing &packing = *program.shape.packing;
    Schedule schedule;
    schedule.microKernel = menu[between(0, std::ssize(menu) - 1)];
    const int64_t unit = std::lcm(columnUnitOf(program.shape, packing),
                                  schedule.microKernel.columns);
    const bool quantized = program.shape.storage.isQuantized();
    const int64_t step =
        quantized ? kUnitOf(program.shape, packing) : packing.kStep;
    schedule.slice = {between(1, maxRows), unit * between(1, 6),
                      step * between(1, program.shape.k / step)};
    // What is read in groups is prefetched at a distance only.
    schedule.prefetchLines =
        !quantized || multipliesIntegers(program.isa) ? 4 : 0;
    schedule.prefetchDistance =
        64 * between(quantized ? 1 : 0, 1) * between(1, 64);
    schedule.chunkK =
        step * between(0, 1) * (quantized ? between(1, 2) : between(8, 32));
    schedule.packsInput = multipliesIntegers(program.isa);
    schedule.order =
        between(0, 1) ? LoopOrder::RowsOuter : LoopOrder::ColumnsOuter;
    schedule.prefetchHint =
        between(0, 1) ? PrefetchHint::L1 : PrefetchHint::NonTemporal;
    schedule.stores =
        between(0, 1) ? StoreKind::Cached : StoreKind::NonTemporal;
    // What is copied, slice by slice.
    if (unpacksWeights(schedule, program.shape)) {
      schedule.prefetchLines = between(0, 1);
      schedule.prefetchDistance = 0;
    }
    return schedule;
  }

  /// One that copies slices to groups of `groupK` k.
  Schedule regrouping(int64_t groupK) {
    Schedule schedule = Draws::schedule();
    schedule.groupK = groupK;
    schedule.slice[2] = groupK * between(1, program.shape.k / groupK);
    schedule.chunkK = groupK * between(0, 1);
    schedule.prefetchLines = between(0, 1);
    schedule.prefetchDistance = 0;
    return schedule;
  }

private:
  const MatmulProgram &program;
  std::mt19937 random;
  std::vector<MicroKernel> menu;
};

std::string describe(const Schedule &schedule) {
  std::string text = schedule.microKernel.name() + " slice";
  for (int64_t size : schedule.slice)
    text += " " + std::to_string(size);
  text += " threads";
  for (int64_t size : schedule.threads)
    text += " " + std::to_string(size);
  return text + " distance " + std::to_string(schedule.prefetchDistance) +
         " chunk " + std::to_string(schedule.chunkK) + " groups " +
         std::to_string(schedule.groupK) + " order " +
         std::string(name(schedule.order)) + " stores " +
         std::string(name(schedule.stores));
}

class MatmulLibraryTest : public testing::TestWithParam<MatrixISA> {
protected:
  static std::string targetName() {
    switch (GetParam()) {
    case MatrixISA::X86_AVX512_BF16:
      return "x86-64-avx512-bf16";
    case MatrixISA::X86_AVX512_F32:
      return "x86-64-avx512";
    default:
      return "x86-64-avx2";
    }
  }
  void create(unsigned threads, std::function<bool()> stop = {}) {
    auto created = MatmulLibrary::create(*getTarget(targetName()), threads,
                                         std::move(stop));
    if (!created)
      GTEST_SKIP() << created.error().message;
    library = *std::move(created);
  }
  static MatmulProgram programOf(MatmulShape shape, int64_t threads = 1) {
    if (multipliesBF16(GetParam()))
      shape.storage = StorageFormat::bf16();
    shape.packing = packingOf(GetParam());
    return {.shape = shape,
            .isa = GetParam(),
            .threads = threads,
            .maxRows = maxRows};
  }

  std::unique_ptr<MatmulLibrary> library;
};

} // namespace

TEST_P(MatmulLibraryTest, MatchesNaiveLoops) {
  create(2);
  if (IsSkipped())
    return;
  MatmulProgram program = programOf({.n = 203, .k = 150});
  const MatmulShape &shape = program.shape;
  const Packing &packing = *shape.packing;
  Operands operands(program);
  Draws draws(program, 2);
  for (int i = 0; i < 200; ++i) {
    Schedule schedule = draws.schedule();
    ThreadPart part = {};
    part.rowBegin = draws.between(0, maxRows);
    part.rowEnd = draws.between(part.rowBegin, maxRows);
    part.columnBegin =
        packing.panel * draws.between(0, (shape.n - 1) / packing.panel);
    part.columnEnd = std::min(
        part.columnBegin + packing.panel * draws.between(0, 8), shape.n);
    int64_t unit = kUnitOf(program.shape, packing);
    part.kBegin = unit * draws.between(0, (shape.k - 1) / unit);
    part.kEnd = std::min(part.kBegin + unit * draws.between(1, 20), shape.k);
    int64_t rows = part.rowEnd - part.rowBegin;
    auto code = library->prepare(program, schedule, rows, rows);
    ASSERT_TRUE(code) << code.error().message;
    const std::vector<std::byte> result =
        operands.run(*code, maxRows, {part}, nullptr);
    SCOPED_TRACE(describe(schedule));
    // The part's sums, and nothing but them, were written.
    FewBits before(2);
    for (int64_t j = 0; j < maxRows * program.inputStride(); ++j)
      before();
    for (int64_t row = 0; row < maxRows; ++row)
      for (int64_t n = 0; n < program.resultStride(); ++n) {
        float expected = before();
        if (row >= part.rowBegin && row < part.rowEnd &&
            n >= part.columnBegin && n < part.columnEnd) {
          expected = 0;
          for (int64_t k = part.kBegin; k < part.kEnd; ++k)
            expected += operands.input(row, k) * operands.weight(n, k);
        }
        ASSERT_EQ(readF32(result.data(), row * program.resultStride() + n),
                  expected)
            << "row " << row << ", column " << n;
      }
  }
}

// What is timed while searching does what ships, bit for bit, whatever the
// epilogue.
TEST_P(MatmulLibraryTest, ParametersAndConstantsDoTheSame) {
  create(2);
  if (IsSkipped())
    return;
  PhaseTeamOptions options;
  options.threads = 2;
  auto team = PhaseTeam::create(options);
  ASSERT_TRUE(team);
  const MatmulShape shapes[] = {
      {.n = 203,
       .k = 160,
       .epilogue = {.bias = true, .contiguousResult = true}},
      {.n = 203,
       .k = 160,
       .epilogue = {.kind = Epilogue::AddResidual, .bias = true}},
      // The last group is filled up.
      {.n = 2 * 120,
       .k = 160,
       .columnUnit = 64,
       .epilogue = {.kind = Epilogue::SiluMul, .feedsMatmuls = true}},
      {.n = 192,
       .k = 160,
       .epilogue = {.kind = Epilogue::GeluTanh, .feedsMatmuls = true}},
      {.n = 192, .k = 160, .epilogue = {.kind = Epilogue::GeluExact}},
      {.n = 6 * 32,
       .k = 160,
       .columnUnit = 32,
       .epilogue = {.kind = Epilogue::RotateAppendKV,
                    .bias = true,
                    .cacheHeads = 2,
                    .cache = AttentionElement::BF16,
                    .headNorms = true}},
      {.n = 3 * 64,
       .k = 160,
       .columnUnit = 64,
       .epilogue = {.kind = Epilogue::RotateAppendKV, .cacheHeads = 1}}};
  for (const MatmulShape &shape : shapes) {
    MatmulProgram program = programOf(shape, /*threads=*/2);
    program.layers = 2;
    Operands operands(program);
    Draws draws(program, 3);
    for (int i = 0; i < 5; ++i) {
      const int64_t rows = draws.between(1, maxRows);
      const Payload payload{program.shape, rows, program.threads};
      Schedule schedule = draws.schedule();
      const auto grids = threadGrids(payload, *program.shape.packing);
      schedule.threads = grids[draws.between(0, std::ssize(grids) - 1)];
      SCOPED_TRACE(std::string(name(shape.epilogue.kind)) + " " +
                   describe(schedule));
      const int64_t tM = schedule.threads[0];
      Result<Schedule> fitting =
          fitSlice(schedule, program.shape, program.storedColumns(), maxRows);
      ASSERT_TRUE(fitting);
      auto timed =
          library->prepare(program, *fitting, rows / tM, divideUp(rows, tM));
      ASSERT_TRUE(timed) << timed.error().message;
      auto shipped = library->prepareAsShipped(
          program, {{{INT64_MAX, schedule}}}, {rows, maxRows});
      ASSERT_TRUE(shipped) << shipped.error().message;
      std::vector<ThreadPart> parts;
      for (int64_t thread = 0; thread < program.threads; ++thread)
        parts.push_back(
            partOfThread(IntegerArithmetic(),
                         divisionOf(program.shape, *program.shape.packing,
                                    schedule.threads, program.storedColumns()),
                         rows, thread));
      const auto first = operands.run(*timed, rows, parts, team->get());
      const auto second = operands.run(shipped->front(), rows, {}, team->get());
      ASSERT_EQ(first, second);
      // And something at all.
      std::vector<std::byte> untouched =
          operands.run(*timed, 0, std::vector<ThreadPart>(2), team->get());
      EXPECT_NE(first, untouched);
    }
  }
}

namespace {

/// Instructions, and how the weight is stored that they multiply.
struct QuantizedCase {
  const char *target;
  MatrixISA isa;
  const char *format;
};

/// `program` under `schedule` multiplies `rows` rows of `operands` by what
/// `weight(n, k)` says, with numbers as parameters as they are in the code.
void expectProducts(MatmulLibrary &library, const MatmulProgram &program,
                    Operands &operands, const Schedule &schedule, int64_t rows,
                    const std::function<float(int64_t, int64_t)> &weight) {
  SCOPED_TRACE(describe(schedule));
  const MatmulShape &shape = program.shape;
  Status status = verify(schedule, shape);
  ASSERT_TRUE(status) << status.error().message;
  Result<Schedule> fitting = fitSlice(schedule, shape, shape.n, maxRows);
  ASSERT_TRUE(fitting);
  auto timed = library.prepare(program, *fitting, rows, rows);
  ASSERT_TRUE(timed) << timed.error().message;
  auto shipped = library.prepareAsShipped(program, {{{INT64_MAX, schedule}}},
                                          {rows, maxRows});
  ASSERT_TRUE(shipped) << shipped.error().message;
  const ThreadPart all = {0, rows, 0, shape.n, 0, shape.k, 0};
  const auto first = operands.run(*timed, rows, {all}, nullptr);
  ASSERT_EQ(first, operands.run(shipped->front(), rows, {}, nullptr));
  for (int64_t row = 0; row < rows; row += 1 + rows / 3)
    for (int64_t n = 0; n < shape.n; n += 9) {
      double expected = 0, magnitude = 0;
      for (int64_t k = 0; k < shape.k; ++k) {
        const double product =
            double(operands.input(row, k)) * double(weight(n, k));
        expected += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(readF32(first.data(), row * program.resultStride() + n),
                  expected, 1e-5 * magnitude)
          << "row " << row << ", column " << n;
    }
}

class QuantizedMatmulLibraryTest
    : public testing::TestWithParam<QuantizedCase> {};

} // namespace

// Integers are multiplied by inputs that are rounded, or become floats; with
// numbers as parameters as they are in the code, and like plain loops over what
// the bytes stand for.
TEST_P(QuantizedMatmulLibraryTest, MultipliesWhatTheBytesStandFor) {
  const auto &[targetName, isa, format] = GetParam();
  auto library = MatmulLibrary::create(*getTarget(targetName), 2);
  if (!library)
    GTEST_SKIP() << library.error().message;
  if (hasIntegerTiles(isa) &&
      StorageFormat::parseOption(format)->number == NumberFormat::Int4)
    GTEST_SKIP() << "numbers of 4 bits are copied to longer groups";
  MatmulShape shape{.n = 203,
                    .k = 192,
                    .storage = *StorageFormat::parseOption(format),
                    .roundsInput = multipliesIntegers(isa)};
  shape.packing = packingOf(isa, shape.storage);
  const MatmulProgram program{
      .shape = shape, .isa = isa, .threads = 1, .maxRows = maxRows};
  Operands operands(program);
  Draws draws(program, 7);
  for (int i = 0; i < 20; ++i) {
    const int64_t rows = draws.between(1, maxRows);
    Schedule schedule = draws.schedule();
    // Also equal parts of a group, of what is unpacked.
    const int64_t group = shape.storage.groupOf(shape.k);
    if (!multipliesIntegers(isa) && group >= 64 && i % 3 == 0) {
      schedule.slice[2] = group / 2;
      schedule.chunkK = 0;
    }
    expectProducts(**library, program, operands, schedule, rows,
                   [&](int64_t n, int64_t k) { return operands.weight(n, k); });
    if (HasFatalFailure())
      return;
  }
}

// Slices of 4 bits are copied to 8 bits in longer groups, rounded as said.
TEST_P(QuantizedMatmulLibraryTest, CopiesToLongerGroups) {
  const auto &[targetName, isa, format] = GetParam();
  auto library = MatmulLibrary::create(*getTarget(targetName), 2);
  if (!library)
    GTEST_SKIP() << library.error().message;
  MatmulShape shape{.n = 203,
                    .k = 384,
                    .storage = *StorageFormat::parseOption(format),
                    .roundsInput = true};
  if (!multipliesIntegers(isa) || shape.storage.number != NumberFormat::Int4)
    GTEST_SKIP() << "no integers of 4 bits are multiplied";
  // Two lines of numbers that share one are of two blocks of columns or of two
  // quads, as panels have it.
  for (const Packing &packing : packingsOf(isa, shape.storage)) {
    shape.packing = packing;
    const MatmulProgram program{
        .shape = shape, .isa = isa, .threads = 1, .maxRows = maxRows};
    Operands operands(program);
    Draws draws(program, 9);
    for (int i = 0; i < 4; ++i) {
      const int64_t rows = draws.between(1, maxRows);
      const int64_t groupK = i % 2 == 0 ? 128 : 192;
      const Schedule schedule = draws.regrouping(groupK);
      expectProducts(**library, program, operands, schedule, rows,
                     [&](int64_t n, int64_t k) {
                       return operands.regroupedWeight(n, k, groupK);
                     });
      if (HasFatalFailure())
        return;
    }
  }
}

// Chunks that are unpacked while tiles multiply the ones before are what slices
// are that are unpacked before.
TEST_P(QuantizedMatmulLibraryTest, CopiesAhead) {
  const auto &[targetName, isa, format] = GetParam();
  auto library = MatmulLibrary::create(*getTarget(targetName), 2);
  if (!library)
    GTEST_SKIP() << library.error().message;
  if (isa != MatrixISA::X86_AMX_BF16)
    GTEST_SKIP() << "only tiles of bf16 copy ahead";
  // Chunks of which the last is shorter, and as long as the others.
  for (int64_t k : {448, 512}) {
    MatmulShape shape{
        .n = 203, .k = k, .storage = *StorageFormat::parseOption(format)};
    shape.packing = packingOf(isa, shape.storage);
    const MatmulProgram program{
        .shape = shape, .isa = isa, .threads = 1, .maxRows = maxRows};
    Operands operands(program);
    Draws draws(program, 11);
    for (int i = 0; i < 12; ++i) {
      // Fewer rows than a round of steps has strips for, too.
      const int64_t rows = i % 3 == 0 ? 1 : draws.between(1, maxRows);
      Schedule schedule = draws.schedule();
      schedule.microKernel = {isa, i % 2 == 0 ? 32 : 16, 32};
      schedule.slice[1] = 32 * draws.between(1, 3);
      schedule.slice[2] = k;
      schedule.chunkK = 64 * draws.between(0, 4);
      schedule.prefetchLines = i % 2;
      schedule.prefetchDistance = 4096 * schedule.prefetchLines;
      schedule.prefetchStreams = 1;
      schedule.copiesAhead = true;
      expectProducts(
          **library, program, operands, schedule, rows,
          [&](int64_t n, int64_t k) { return operands.weight(n, k); });
      if (HasFatalFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, QuantizedMatmulLibraryTest,
    testing::Values(
        QuantizedCase{"x86-64-avx2", MatrixISA::X86_AVX2_F32, "int4"},
        QuantizedCase{"x86-64-avx2", MatrixISA::X86_AVX2_F32, "int8-row-f32"},
        QuantizedCase{"x86-64-avx512-bf16", MatrixISA::X86_AVX512_BF16,
                      "int4-g64-f16-minimum"},
        QuantizedCase{"x86-64-avx512-bf16", MatrixISA::X86_AVX512_BF16, "int8"},
        QuantizedCase{"x86-64-avx512-bf16", MatrixISA::X86_AVX512_BF16,
                      "int8-g64-f16-minimum"},
        QuantizedCase{"x86-64-avx2", MatrixISA::X86_AVX2_F32, "fp8"},
        QuantizedCase{"x86-64-avx512", MatrixISA::X86_AVX512_F32,
                      "fp8-g64-f16"},
        QuantizedCase{"x86-64-avx512-bf16", MatrixISA::X86_AVX512_BF16,
                      "fp8-g64-f16"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_BF16, "int8"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_BF16, "int8-row-f32"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_BF16,
                      "int4-g64-f16-minimum"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_BF16, "fp8-g64-f16"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_INT8, "int8"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_INT8, "int8-g64-f16"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_INT8, "int8-row-f32"},
        QuantizedCase{"x86-64-amx", MatrixISA::X86_AMX_INT8, "int4"},
        QuantizedCase{"x86-64-avx2", MatrixISA::X86_AVX2_INT8, "int4"},
        QuantizedCase{"x86-64-avx512-vnni", MatrixISA::X86_AVX512_VNNI, "int4"},
        QuantizedCase{"x86-64-avx512-vnni", MatrixISA::X86_AVX512_VNNI,
                      "int4-g16-f16"},
        QuantizedCase{"x86-64-avx512-vnni", MatrixISA::X86_AVX512_VNNI,
                      "int4-g32-f32"},
        QuantizedCase{"x86-64-avx512-vnni", MatrixISA::X86_AVX512_VNNI,
                      "int8-g96-f32"},
        QuantizedCase{"x86-64-avx512-vnni", MatrixISA::X86_AVX512_VNNI,
                      "int4-g64-f16-minimum"}),
    [](const testing::TestParamInfo<QuantizedCase> &info) {
      std::string text =
          std::string(name(info.param.isa)) + "_" + info.param.format;
      std::ranges::replace(text, '-', '_');
      return text;
    });

// All of the weights are read, and nothing that was read just before, also by
// pieces of other sizes.
TEST(WeightPiece, GoesThroughTheWeights) {
  const MatmulProgram program{
      .shape = {.n = 1100,
                .k = 600,
                .packing = packingOf(MatrixISA::X86_AVX2_F32)},
      .layers = 9};
  constexpr int64_t pieces = 4 * 4 * 2;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  std::vector<WeightPiece> last;
  for (int64_t number = 0; number < 4 * pieces; ++number) {
    const int64_t layers = 1 + number % 2, columns = 256;
    const WeightPiece piece =
        weightPiece(program, number, layers, columns, 256);
    ASSERT_EQ(std::ssize(piece.layers), layers);
    for (int64_t i = 0; i < layers; ++i)
      EXPECT_EQ(piece.layers[i], piece.layers[0] + i);
    EXPECT_LT(piece.layers.back(), program.layers);
    EXPECT_EQ(piece.column % columns, 0);
    EXPECT_LE(piece.column + columns, program.shape.n);
    EXPECT_EQ(piece.k % 256, 0);
    EXPECT_LE(piece.k + 256, program.shape.k);
    for (const WeightPiece &before : last)
      EXPECT_TRUE(piece.column != before.column || piece.k != before.k ||
                  std::ranges::find_first_of(piece.layers, before.layers) ==
                      piece.layers.end())
          << number;
    last.push_back(piece);
    if (last.size() > 3)
      last.erase(last.begin());
    if (layers == 2)
      seen.insert({piece.layers[0], piece.column, piece.k});
  }
  EXPECT_EQ(std::ssize(seen), pieces);
  // One that is all of them.
  const WeightPiece all = weightPiece(program, 5, 9, 1100, 600);
  EXPECT_EQ(all.layers.front(), 0);
  EXPECT_EQ(all.column, 0);
  EXPECT_EQ(all.k, 0);
}

// Slices, orders, distances, parts and strips are arguments.
TEST_P(MatmulLibraryTest, CompilesMicroKernelsOnce) {
  create(1);
  if (IsSkipped())
    return;
  const MatrixISA isa = GetParam();
  const MatmulProgram program = programOf({.n = 256, .k = 128});
  Schedule schedule{.microKernel = {isa, 2, packingOf(isa).panel},
                    .slice = {2, 64, 64},
                    .prefetchLines = 4,
                    .prefetchDistance = 512};
  ASSERT_TRUE(library->prepare(program, schedule, 2, 2));
  int64_t compiled = library->compilations();
  // The program, and the micro-kernel.
  EXPECT_EQ(compiled, 2);
  schedule.slice = {8, 32, 128};
  schedule.order = LoopOrder::ColumnsOuter;
  schedule.prefetchDistance = 4096;
  schedule.chunkK = 64;
  ASSERT_TRUE(library->prepare(program, schedule, 8, 8));
  // The other order is another program.
  EXPECT_EQ(library->compilations(), compiled + 1);
  // One row is another micro-kernel.
  ASSERT_TRUE(library->prepare(program, schedule, 1, 1));
  EXPECT_EQ(library->compilations(), compiled + 2);
}

// Between two compilations, and what was compiled is kept.
TEST_P(MatmulLibraryTest, StopsBetweenCompilations) {
  int asked = 0, allowed = 1;
  create(1, [&] { return ++asked > allowed; });
  if (IsSkipped())
    return;
  const MatrixISA isa = GetParam();
  const MatmulProgram program = programOf({.n = 256, .k = 128});
  Schedule schedule{.microKernel = {isa, 2, packingOf(isa).panel},
                    .slice = {2, 64, 64}};
  auto code = library->prepare(program, schedule, 2, 2);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message, "measuring was stopped");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(library->compilations(), 1);
  ASSERT_FALSE(library->prepare(program, schedule, 2, 2));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(library->compilations(), 1);
  allowed = 100;
  EXPECT_TRUE(library->prepare(program, schedule, 2, 2));
  EXPECT_EQ(library->compilations(), 2);
}

INSTANTIATE_TEST_SUITE_P(ISAs, MatmulLibraryTest,
                         testing::Values(MatrixISA::X86_AVX2_F32,
                                         MatrixISA::X86_AVX512_F32,
                                         MatrixISA::X86_AVX512_BF16),
                         [](const testing::TestParamInfo<MatrixISA> &info) {
                           return std::string(name(info.param));
                         });

TEST(MatmulLibraryTest, RefusesForeignTargets) {
  auto library = MatmulLibrary::create(*getTarget("x86-64-amx"), 1);
  if (library)
    GTEST_SKIP() << "this CPU has everything";
  EXPECT_NE(library.error().message.find("this CPU cannot run code for"),
            std::string::npos);
}
