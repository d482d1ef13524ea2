//===- MeasuringEvaluator.cpp - How long schedules take -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MeasuringEvaluator.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

/// A block of sums of a thread is no larger than what phases allow.
constexpr int64_t maxScratchBytes = (1 << 20) + 64;
/// A measurement shorter than this says more about the clock and the start of
/// the team than about the matmul.
constexpr double leastSeconds = 1e-3;
/// The noise that repeating does not remove is not worth repeating for.
constexpr double agreement = 0.03;
constexpr size_t fewestPairs = 3, mostPairs = 9;
/// What is slower by so much is not worth measuring well.
constexpr double plainlySlower = 1.2;
/// What is faster by so much becomes the reference.
constexpr double muchFaster = 0.8;

int64_t roundUp(int64_t a, int64_t b) { return divideUp(a, b) * b; }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

/// Values between 1/2 and 1 and between -1 and -1/2, as bf16 and as f32: half
/// of an f32 is a bf16, the other half a fraction.
void fillRandom(AnonymousMemory &memory, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  std::byte *end = memory.data() + memory.size();
  for (std::byte *at = memory.data(); at + 8 <= end; at += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t bits = (state & 0x807f807f807f807f) | 0x3f003f003f003f00;
    std::memcpy(at, &bits, sizeof(bits));
  }
}

int64_t packedBytes(const MatmulShape &shape, const Packing &packing) {
  return roundUp(shape.n, packing.panel) * shape.k *
         (shape.bf16Weights ? 2 : 4);
}

/// Sums up to a multiple of a panel, so that whole vectors can be written.
int64_t resultStride(const MatmulShape &shape, const Packing &packing) {
  return rowStride(roundUp(roundUp(shape.n, packing.panel), 16), 4);
}

} // namespace

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

/// What the threads of the team need.
struct MeasuringEvaluator::Run {
  MeasuringEvaluator &evaluator;
  const Payload &payload;
  Schedule schedule;
  Packing packing;
  PreparedNest nest;
  /// One weight for each repetition.
  std::vector<std::byte *> weights;
  uint64_t weightBytes;

  void work(int64_t thread);
  void reduce(int64_t thread, float *sums, int64_t partElements,
              int64_t stride);
};

/// Where part `part` of `parts` begins, of `size` in whole units.
static int64_t boundary(int64_t part, int64_t parts, int64_t size,
                        int64_t unit) {
  return std::min(part * divideUp(size, unit) / parts * unit, size);
}

void MeasuringEvaluator::Run::work(int64_t thread) {
  // The same division as lib/Conversion/GemmToNests.
  auto [tM, tN, tK] = schedule.threads;
  int64_t m = thread % tM, k = thread / tM % tK;
  int64_t n = std::min(thread / tM / tK, tN);
  const MatmulShape &shape = payload.shape;
  int64_t columnUnit = columnUnitOf(shape, packing);
  int64_t stride = resultStride(shape, packing);
  int64_t partElements = payload.rows * stride;
  auto row = [&](int64_t part) {
    return part * (payload.rows / tM) + std::min(part, payload.rows % tM);
  };
  float *sums = reinterpret_cast<float *>(evaluator.result.data());

  NestCall call;
  call.input = BytesDescriptor(evaluator.input.data(),
                               static_cast<int64_t>(evaluator.input.size()));
  call.result = BytesDescriptor(sums + k * partElements, partElements * 4);
  AnonymousMemory &own = evaluator.scratch[thread];
  call.scratch = BytesDescriptor(own.data(), static_cast<int64_t>(own.size()));
  call.resultStride = stride;
  call.rowBegin = row(m);
  call.rowEnd = row(m + 1);
  call.columnBegin = boundary(n, tN, shape.n, columnUnit);
  call.columnEnd = boundary(std::min(n + 1, tN), tN, shape.n, columnUnit);
  call.kBegin = boundary(k, tK, shape.k, kUnitOf(packing));
  call.kEnd = boundary(k + 1, tK, shape.k, kUnitOf(packing));
  for (std::byte *weight : weights) {
    call.weight = BytesDescriptor(weight, static_cast<int64_t>(weightBytes));
    nest(call);
    evaluator.team->barrier();
    if (tK > 1)
      reduce(thread, sums, partElements, stride);
  }
}

/// Adds up the partial sums of a share of the columns.
void MeasuringEvaluator::Run::reduce(int64_t thread, float *sums,
                                     int64_t partElements, int64_t stride) {
  const MatmulShape &shape = payload.shape;
  int64_t unit = columnUnitOf(shape, packing);
  int64_t begin = boundary(thread, payload.threads, shape.n, unit);
  int64_t end = boundary(thread + 1, payload.threads, shape.n, unit);
  for (int64_t row = 0; row < payload.rows; ++row) {
    float *first = sums + row * stride;
    for (int64_t k = 1; k < schedule.threads[2]; ++k) {
      const float *part = first + k * partElements;
      for (int64_t column = begin; column < end; ++column)
        first[column] += part[column];
    }
  }
  evaluator.team->barrier();
}

//===----------------------------------------------------------------------===//
// The evaluator
//===----------------------------------------------------------------------===//

MeasuringEvaluator::MeasuringEvaluator(std::unique_ptr<NestLibrary> library,
                                       const MeasuringOptions &options)
    : library(std::move(library)), options(options) {}

Result<std::unique_ptr<MeasuringEvaluator>>
MeasuringEvaluator::create(const Target &target,
                           const MeasuringOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<NestLibrary> library,
                            NestLibrary::create(target, options.threads));
  std::unique_ptr<MeasuringEvaluator> evaluator(
      new MeasuringEvaluator(std::move(library), options));
  SANDWICH_RETURN_IF_ERROR(evaluator->allocate());
  return evaluator;
}

Status MeasuringEvaluator::allocate() {
  PhaseTeamOptions teamOptions;
  teamOptions.threads = options.threads;
  teamOptions.cpus = options.cpus;
  SANDWICH_ASSIGN_OR_RETURN(team, PhaseTeam::create(teamOptions));
  SANDWICH_ASSIGN_OR_RETURN(
      weights, AnonymousMemory::allocate(options.weightBytes,
                                         "the weights of measurements",
                                         AnonymousMemory::Fill::Wholly));
  fillRandom(weights, 1);
  for (unsigned thread = 0; thread < options.threads; ++thread) {
    SANDWICH_ASSIGN_OR_RETURN(
        AnonymousMemory own,
        AnonymousMemory::allocate(maxScratchBytes, "the sums of measurements"));
    scratch.push_back(std::move(own));
  }
  return {};
}

/// Makes input and result large enough.
Status MeasuringEvaluator::reserve(const MatmulShape &shape, int64_t rows,
                                   int64_t partsOfK) {
  // f32 is the larger input, and the widest panel the largest result.
  constexpr int64_t widestPanel = 64;
  uint64_t inputBytes = rows * rowStride(shape.k, 4) * 4;
  uint64_t resultBytes =
      partsOfK * rows * rowStride(roundUp(shape.n, widestPanel), 4) * 4;
  if (input.size() < inputBytes) {
    SANDWICH_ASSIGN_OR_RETURN(
        input,
        AnonymousMemory::allocate(inputBytes, "the input of measurements"));
    fillRandom(input, 2);
  }
  if (result.size() < resultBytes) {
    SANDWICH_ASSIGN_OR_RETURN(
        result,
        AnonymousMemory::allocate(resultBytes, "the results of measurements"));
  }
  return {};
}

std::byte *MeasuringEvaluator::nextWeight(uint64_t bytes) {
  constexpr uint64_t page = 4096;
  if (weightPosition + bytes > weights.size())
    weightPosition = 0;
  std::byte *weight = weights.data() + weightPosition;
  weightPosition += (bytes + page - 1) / page * page;
  return weight;
}

Result<double> MeasuringEvaluator::runOnce(const Payload &payload,
                                           const Schedule &schedule) {
  Packing packing = packingFor(payload.shape, schedule.microKernel.isa);
  uint64_t bytes = packedBytes(payload.shape, packing);
  SANDWICH_RETURN_IF_ERROR(
      reserve(payload.shape, payload.rows, schedule.threads[2]));
  Run run{*this, payload, schedule, packing, {}, {}, bytes};
  // A slice never needs to be larger than the matmul, and its sums fit the
  // scratch memory.
  auto &[bM, bN, bK] = run.schedule.slice;
  bN = std::min(bN, roundUp(roundUp(payload.shape.n, packing.panel),
                            std::lcm(columnUnitOf(payload.shape, packing),
                                     schedule.microKernel.columns)));
  bK = std::min(bK, payload.shape.k);
  bM = std::min({bM, payload.rows, (maxScratchBytes - 64) / (4 * bN)});
  if (bM == 0)
    return makeError("a slice of ", bN,
                     " columns is more than the scratch memory holds");

  int64_t tM = schedule.threads[0];
  SANDWICH_ASSIGN_OR_RETURN(
      run.nest, library->prepare(payload.shape, run.schedule, payload.rows / tM,
                                 divideUp(payload.rows, tM)));

  // A rough guess of how often it takes for the clock to matter little.
  double guess =
      std::max(payload.flops() / 1e12, static_cast<double>(bytes) / 100e9);
  size_t repetitions = std::clamp<size_t>(
      static_cast<size_t>(std::ceil(leastSeconds / guess)), 1, 64);
  for (size_t i = 0; i < repetitions; ++i)
    run.weights.push_back(nextWeight(bytes));
  Clock::time_point begin = Clock::now();
  team->run(
      static_cast<unsigned>(payload.threads),
      [](void *context, int32_t thread) {
        static_cast<Run *>(context)->work(thread);
      },
      &run);
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return seconds / static_cast<double>(repetitions);
}

Result<double> MeasuringEvaluator::seconds(const Payload &given,
                                           const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(verify(schedule, given.shape));
  auto [tM, tN, tK] = schedule.threads;
  if (given.rows < 1 || given.rows > options.maxRows ||
      given.threads > options.threads || tM * tN * tK > given.threads)
    return makeError("cannot measure ", given.rows, " rows on ", given.threads,
                     " threads");
  // What does not fit the weights' memory is measured with fewer columns.
  Payload payload = given;
  Packing packing = packingFor(given.shape, schedule.microKernel.isa);
  int64_t unit = columnUnitOf(given.shape, packing);
  int64_t unitBytes = unit * given.shape.k * (given.shape.bf16Weights ? 2 : 4);
  int64_t mostColumns = static_cast<int64_t>(weights.size()) / unitBytes * unit;
  double share = 1;
  if (payload.shape.n > mostColumns) {
    if (mostColumns < unit * options.threads)
      return makeError("K = ", given.shape.k, " is too large to measure with ",
                       weights.size(), " bytes of weights");
    payload.shape.n = mostColumns;
    share = static_cast<double>(given.shape.n) / mostColumns;
  }

  std::array<int64_t, 8> key = {
      given.rows,    given.threads,          given.shape.n,
      given.shape.k, given.shape.columnUnit, given.shape.bf16Weights,
      packing.panel, packing.kPack};
  // Compiling, and the first touch of memory, are not what is measured.
  SANDWICH_RETURN_IF_ERROR(runOnce(payload, schedule));
  auto reference = references.find(key);
  if (reference == references.end()) {
    std::vector<double> samples;
    for (size_t i = 0; i < mostPairs; ++i) {
      SANDWICH_ASSIGN_OR_RETURN(double sample, runOnce(payload, schedule));
      samples.push_back(sample);
    }
    double seconds = median(samples) * share;
    references.emplace(key, Reference{schedule, seconds});
    return seconds;
  }
  std::vector<double> ratios;
  bool agree = false;
  while (!agree && ratios.size() < mostPairs) {
    SANDWICH_ASSIGN_OR_RETURN(double before,
                              runOnce(payload, reference->second.schedule));
    SANDWICH_ASSIGN_OR_RETURN(double now, runOnce(payload, schedule));
    ratios.push_back(now / before);
    if (ratios.size() == 2 && std::ranges::min(ratios) > plainlySlower)
      break;
    // The middle half agrees. What looks like a new reference has to agree
    // for longer.
    std::vector<double> sorted = ratios;
    std::ranges::sort(sorted);
    double spread = sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4];
    size_t needed = median(ratios) < muchFaster ? mostPairs - 2 : fewestPairs;
    agree = ratios.size() >= needed && spread < agreement * median(ratios);
  }
  double seconds = reference->second.seconds * median(ratios);
  // A slow reference takes time, and says little about fast schedules.
  if (agree && median(ratios) < muchFaster)
    reference->second = {schedule, seconds};
  return seconds;
}

Result<double> MeasuringEvaluator::sliceSeconds(const MatmulShape &shape,
                                                const Schedule &schedule) {
  // Side by side in one row of blocks: the time between two slices is that of
  // the loops around them.
  auto [bM, bN, bK] = schedule.slice;
  Packing packing = packingFor(shape, schedule.microKernel.isa);
  double flops = 2.0 * bM * bN * bK;
  constexpr double sampleFlops = 3e7;
  int64_t elementBytes = shape.bf16Weights ? 2 : 4;
  int64_t mostColumns =
      static_cast<int64_t>(weights.size() / 4) / (shape.k * elementBytes);
  int64_t slices =
      std::clamp<int64_t>(static_cast<int64_t>(std::ceil(sampleFlops / flops)),
                          1, std::max<int64_t>(mostColumns / bN, 1));
  Payload payload{shape, bM, 1};
  payload.shape.n = roundUp(slices * bN, packing.panel);
  Schedule alone = schedule;
  alone.threads = {1, 1, 1};
  SANDWICH_RETURN_IF_ERROR(verify(alone, shape));
  if (bM > options.maxRows)
    return makeError("cannot measure ", bM, " rows");
  SANDWICH_RETURN_IF_ERROR(reserve(payload.shape, bM, 1));
  SANDWICH_ASSIGN_OR_RETURN(PreparedNest nest,
                            library->prepare(shape, alone, bM, bM));
  if (bM * bN * 4 > maxScratchBytes - 64)
    return makeError("a slice of ", bM, " x ", bN,
                     " is more than the scratch memory holds");
  uint64_t bytes = payload.shape.n * shape.k * elementBytes;
  NestCall call;
  call.input =
      BytesDescriptor(input.data(), static_cast<int64_t>(input.size()));
  call.result =
      BytesDescriptor(result.data(), static_cast<int64_t>(result.size()));
  call.scratch = BytesDescriptor(scratch.front().data(), maxScratchBytes);
  call.resultStride = resultStride(payload.shape, packing);
  call.rowEnd = bM;
  call.columnEnd = payload.shape.n;
  call.kEnd = std::min(bK, shape.k);
  std::vector<double> samples;
  constexpr int sampleCount = 3;
  for (int i = 0; i <= sampleCount; ++i) {
    call.weight =
        BytesDescriptor(nextWeight(bytes), static_cast<int64_t>(bytes));
    Clock::time_point begin = Clock::now();
    nest(call);
    // The first one warms the code and the input up.
    if (i > 0)
      samples.push_back(
          std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(samples) * bN / payload.shape.n;
}
