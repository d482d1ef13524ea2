//===- MeasuringEvaluator.cpp - How long schedules take -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MeasuringEvaluator.h"
#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sched.h>

using namespace sandwich;

namespace {

using Clock = std::chrono::steady_clock;

/// The noise that repeating does not remove is not worth repeating for.
constexpr double agreement = 0.03;
constexpr size_t fewestPairs = 3, mostPairs = 5;
/// What is slower by so much, after one pair, or two, is not worth measuring
/// well.
constexpr double plainlySlower[] = {1.3, 1.12};
/// What is faster by so much becomes the reference.
constexpr double muchFaster = 0.8;

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
  return rowStride(roundUp<int64_t>(roundUp(shape.n, packing.panel), 16), 4);
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

void MeasuringEvaluator::Run::work(int64_t thread) {
  ThreadPart part = threadPart(payload, packing, schedule.threads, thread);
  int64_t stride = resultStride(payload.shape, packing);
  int64_t partElements = payload.rows * stride;
  float *sums = reinterpret_cast<float *>(evaluator.result.data());

  NestCall call;
  call.input = BytesDescriptor(evaluator.input.data(),
                               static_cast<int64_t>(evaluator.input.size()));
  call.result =
      BytesDescriptor(sums + part.partOfK * partElements, partElements * 4);
  AnonymousMemory &own = evaluator.scratch[thread];
  call.scratch = BytesDescriptor(own.data(), static_cast<int64_t>(own.size()));
  call.resultStride = stride;
  call.rowBegin = part.rowBegin;
  call.rowEnd = part.rowEnd;
  call.columnBegin = part.columnBegin;
  call.columnEnd = part.columnEnd;
  call.kBegin = part.kBegin;
  call.kEnd = part.kEnd;
  for (std::byte *weight : weights) {
    call.weight = BytesDescriptor(weight, static_cast<int64_t>(weightBytes));
    nest(call);
    evaluator.team->barrier();
    if (schedule.threads[2] > 1)
      reduce(thread, sums, partElements, stride);
  }
}

/// Adds up the partial sums of a share of the columns.
void MeasuringEvaluator::Run::reduce(int64_t thread, float *sums,
                                     int64_t partElements, int64_t stride) {
  ThreadPart share =
      threadPart(payload, packing, {1, payload.threads, 1}, thread);
  for (int64_t row = 0; row < payload.rows; ++row) {
    float *first = sums + row * stride;
    for (int64_t k = 1; k < schedule.threads[2]; ++k) {
      const float *part = first + k * partElements;
      for (int64_t column = share.columnBegin; column < share.columnEnd;
           ++column)
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
  // Threads that take turns on a CPU wait for each other at every barrier.
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
      options.threads > static_cast<unsigned>(CPU_COUNT(&allowed)))
    return makeError("cannot measure a team of ", options.threads,
                     " threads on ", CPU_COUNT(&allowed), " CPUs");
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<NestLibrary> library,
      NestLibrary::create(target, options.threads, options.stop));
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
        AnonymousMemory own, AnonymousMemory::allocate(
                                 nestScratchBytes, "the sums of measurements"));
    scratch.push_back(std::move(own));
  }
  return {};
}

/// Makes input and result large enough.
Status MeasuringEvaluator::reserve(const MatmulShape &shape,
                                   const Packing &packing, int64_t rows,
                                   int64_t partsOfK) {
  // f32 is the larger input.
  uint64_t inputBytes = rows * rowStride(shape.k, 4) * 4;
  uint64_t resultBytes = partsOfK * rows * resultStride(shape, packing) * 4;
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

/// `bytes`, no more than there are, that were not read for longest.
std::byte *MeasuringEvaluator::nextWeight(uint64_t bytes) {
  constexpr uint64_t page = 4096;
  if (weightPosition + bytes > weights.size())
    weightPosition = 0;
  std::byte *weight = weights.data() + weightPosition;
  weightPosition += (bytes + page - 1) / page * page;
  return weight;
}

/// How many matmuls take `least` seconds, by a rough guess.
static size_t repetitionsFor(const Payload &payload, uint64_t weightBytes,
                             double least) {
  double guess = std::max(payload.flops() / 1e12,
                          static_cast<double>(weightBytes) / 100e9);
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(least / guess)), 1,
                            64);
}

Result<double> MeasuringEvaluator::runOnce(const Payload &payload,
                                           const Schedule &schedule,
                                           double least) {
  Packing packing = packingFor(payload.shape, schedule.microKernel.isa);
  uint64_t bytes = packedBytes(payload.shape, packing);
  SANDWICH_RETURN_IF_ERROR(
      reserve(payload.shape, packing, payload.rows, schedule.threads[2]));
  SANDWICH_ASSIGN_OR_RETURN(
      Schedule fitting,
      fitSlice(schedule, payload.shape, payload.shape.n, payload.rows));
  Run run{*this, payload, fitting, packing, {}, {}, bytes};
  int64_t tM = schedule.threads[0];
  SANDWICH_ASSIGN_OR_RETURN(
      run.nest, library->prepare(payload.shape, run.schedule, payload.rows / tM,
                                 divideUp(payload.rows, tM)));

  size_t repetitions = repetitionsFor(payload, bytes, least);
  for (size_t i = 0; i < repetitions; ++i)
    run.weights.push_back(nextWeight(bytes));
  Clock::time_point begin = Clock::now();
  team->run(
      static_cast<unsigned>(payload.threads),
      [](void *context, int32_t thread) {
        static_cast<Run *>(context)->work(thread);
      },
      &run);
  double seconds = secondsSince(begin);
  return seconds / static_cast<double>(repetitions);
}

Status MeasuringEvaluator::check(const Payload &payload,
                                 const Schedule &schedule) const {
  SANDWICH_RETURN_IF_ERROR(verify(schedule, payload.shape));
  auto [tM, tN, tK] = schedule.threads;
  if (payload.rows < 1 || payload.rows > options.maxRows ||
      payload.threads > options.threads || tM * tN * tK > payload.threads)
    return makeError("cannot measure ", payload.rows, " rows on ",
                     payload.threads, " threads");
  return {};
}

/// Takes columns away from what does not fit the weights' memory.
Status MeasuringEvaluator::narrow(Payload &payload,
                                  const Schedule &schedule) const {
  const MatmulShape &shape = payload.shape;
  int64_t unit =
      columnUnitOf(shape, packingFor(shape, schedule.microKernel.isa));
  int64_t unitBytes = unit * shape.k * (shape.bf16Weights ? 2 : 4);
  int64_t mostColumns = static_cast<int64_t>(weights.size()) / unitBytes * unit;
  if (shape.n > mostColumns && mostColumns < unit * options.threads)
    return makeError("K = ", shape.k, " is too large to measure with ",
                     weights.size(), " bytes of weights");
  payload.shape.n = std::min(shape.n, mostColumns);
  return {};
}

Result<double> MeasuringEvaluator::seconds(const Payload &given,
                                           const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(check(given, schedule));
  Payload payload = given;
  SANDWICH_RETURN_IF_ERROR(narrow(payload, schedule));
  Packing packing = packingFor(given.shape, schedule.microKernel.isa);
  double share =
      static_cast<double>(given.shape.n) / static_cast<double>(payload.shape.n);

  std::array<int64_t, 8> key = {
      given.rows,    given.threads,          given.shape.n,
      given.shape.k, given.shape.columnUnit, given.shape.bf16Weights,
      packing.panel, packing.kPack};
  auto reference = references.find(key);
  if (reference == references.end()) {
    // The first touch of memory is not what is measured.
    SANDWICH_RETURN_IF_ERROR(runOnce(payload, schedule));
    std::vector<double> samples;
    for (size_t i = 0; i < mostPairs; ++i) {
      SANDWICH_ASSIGN_OR_RETURN(double sample, runOnce(payload, schedule));
      samples.push_back(sample);
    }
    double seconds = median(samples) * share;
    references.emplace(key, Reference{schedule, seconds});
    return seconds;
  }
  std::vector<double> ratios, times;
  bool agree = false;
  while (!agree && ratios.size() < mostPairs) {
    // Each goes first in turn.
    const Schedule &known = reference->second.schedule;
    bool knownFirst = ratios.size() % 2 == 0;
    SANDWICH_ASSIGN_OR_RETURN(double first,
                              runOnce(payload, knownFirst ? known : schedule));
    SANDWICH_ASSIGN_OR_RETURN(double second,
                              runOnce(payload, knownFirst ? schedule : known));
    times.push_back(knownFirst ? second : first);
    ratios.push_back(knownFirst ? second / first : first / second);
    size_t pairs = ratios.size();
    if (pairs <= std::size(plainlySlower) &&
        std::ranges::min(ratios) > plainlySlower[pairs - 1])
      break;
    // The middle half agrees. What looks like a new reference has to agree
    // for longer.
    std::vector<double> sorted = ratios;
    std::ranges::sort(sorted);
    double spread = sorted[sorted.size() * 3 / 4] - sorted[sorted.size() / 4];
    size_t needed = median(ratios) < muchFaster ? mostPairs : fewestPairs;
    agree = ratios.size() >= needed && spread < agreement * median(ratios);
  }
  double seconds = reference->second.seconds * median(ratios);
  // A slow reference takes time, and says little about fast schedules.
  if (agree && median(ratios) < muchFaster) {
    // Timed anew, so that errors do not add up from reference to reference.
    seconds = median(times) * share;
    reference->second = {schedule, seconds};
  }
  return seconds;
}

/// A nest of one micro-kernel on the same operands again and again.
struct MeasuringEvaluator::RepeatedNest {
  MeasuringEvaluator &evaluator;
  const PreparedNest &nest;
  std::array<int64_t, 3> size;
  int64_t resultStride, repetitions;

  void work(int64_t thread) {
    NestCall call;
    auto describe = [](AnonymousMemory &memory) {
      return BytesDescriptor(memory.data(),
                             static_cast<int64_t>(memory.size()));
    };
    call.input = describe(evaluator.input);
    call.weight = describe(evaluator.weights);
    call.scratch = describe(evaluator.scratch[thread]);
    call.result = describe(evaluator.result);
    // Lines that threads share would be written in turn.
    auto *own = static_cast<float *>(call.result.aligned);
    call.result.aligned = own + thread * size[0] * resultStride;
    call.resultStride = resultStride;
    call.rowEnd = size[0];
    call.columnEnd = size[1];
    call.kEnd = size[2];
    for (int64_t i = 0; i < repetitions; ++i)
      nest(call);
  }
};

Result<double> MeasuringEvaluator::repeat(const MatmulShape &shape,
                                          const PreparedNest &nest,
                                          const Schedule &schedule,
                                          int64_t repetitions) {
  Packing packing = packingFor(shape, schedule.microKernel.isa);
  MatmulShape reserved = shape;
  reserved.n = schedule.slice[1];
  SANDWICH_RETURN_IF_ERROR(
      reserve(reserved, packing, schedule.slice[0] * options.threads, 1));
  RepeatedNest run{*this, nest, schedule.slice, resultStride(reserved, packing),
                   repetitions};
  std::vector<double> samples;
  for (size_t i = 0; i < mostPairs; ++i) {
    Clock::time_point begin = Clock::now();
    team->run(
        options.threads,
        [](void *context, int32_t thread) {
          static_cast<RepeatedNest *>(context)->work(thread);
        },
        &run);
    samples.push_back(secondsSince(begin));
  }
  return median(samples);
}

/// The tallest micro-kernel of each width that reads `packing`.
static std::vector<MicroKernel> tallestKernels(MatrixISA isa,
                                               const Packing &packing) {
  std::map<int64_t, MicroKernel> tallest;
  for (const MicroKernel &kernel : microKernelMenu(isa))
    if (MicroKernel &best = tallest[kernel.columns];
        reads(kernel, packing) && kernel.rows > best.rows)
      best = kernel;
  std::vector<MicroKernel> kernels;
  for (const auto &[columns, kernel] : tallest)
    if (kernel.rows > 0)
      kernels.push_back(kernel);
  return kernels;
}

Result<MeasuringEvaluator::Speeds>
MeasuringEvaluator::speeds(const MatmulShape &shape, MatrixISA isa) {
  std::pair key(isa, shape.bf16Weights);
  if (auto entry = knownSpeeds.find(key); entry != knownSpeeds.end())
    return entry->second;
  SANDWICH_RETURN_IF_ERROR(measureSpeeds(shape, isa));
  return knownSpeeds.at(key);
}

Status MeasuringEvaluator::measureSpeeds(const MatmulShape &shape,
                                         MatrixISA isa) {
  SANDWICH_ASSIGN_OR_RETURN(double inCache, measureFlopsInCache(shape, isa));
  SANDWICH_ASSIGN_OR_RETURN(double peak, measurePeakFlops(shape, isa));
  Speeds &known = knownSpeeds[{isa, shape.bf16Weights}];
  known.inCache = std::max(known.inCache, inCache);
  known.peak = std::max({known.peak, peak, known.inCache});
  return {};
}

/// What all threads do in `repetitions` calls for a slice.
static double sliceFlops(const Schedule &schedule, int64_t repetitions,
                         unsigned threads) {
  auto [rows, columns, k] = schedule.slice;
  return 2.0 * static_cast<double>(rows * columns) *
         static_cast<double>(k * repetitions * threads);
}

Result<double> MeasuringEvaluator::measurePeakFlops(const MatmulShape &shape,
                                                    MatrixISA isa) {
  // The most sums hide the latency best.
  Packing packing = packingFor(shape, isa);
  std::vector<MicroKernel> kernels = tallestKernels(isa, packing);
  auto sums = [](const MicroKernel &kernel) {
    return kernel.rows * kernel.columns;
  };
  const MicroKernel &kernel = *std::ranges::max_element(kernels, {}, sums);
  constexpr int64_t k = 1 << 14, repetitions = 20;
  Schedule schedule{
      .microKernel = kernel,
      .slice = {kernel.rows, std::max(kernel.columns, packing.panel), k}};
  SANDWICH_ASSIGN_OR_RETURN(PreparedNest nest,
                            library->preparePeak(shape, schedule));
  SANDWICH_ASSIGN_OR_RETURN(double seconds,
                            repeat(shape, nest, schedule, repetitions));
  return sliceFlops(schedule, repetitions, options.threads) / seconds;
}

Result<double> MeasuringEvaluator::measureFlopsInCache(const MatmulShape &shape,
                                                       MatrixISA isa) {
  double best = 0;
  Packing packing = packingFor(shape, isa);
  for (const MicroKernel &kernel : tallestKernels(isa, packing)) {
    int64_t columns = std::max(kernel.columns, packing.panel);
    // Small enough for the nearest caches, also beside the input of tiles, long
    // enough to forget what a call costs.
    const int64_t weightBytes = hasTiles(isa) ? 16 << 10 : 32 << 10;
    int64_t elementBytes = shape.bf16Weights ? 2 : 4;
    int64_t k = std::min(
        roundUp(weightBytes / columns / elementBytes, kUnitOf(packing)),
        shape.k);
    constexpr int64_t repetitions = 200;
    Schedule schedule{.microKernel = kernel,
                      .slice = {kernel.rows, columns, k}};
    SANDWICH_ASSIGN_OR_RETURN(
        PreparedNest nest,
        library->prepare(shape, schedule, kernel.rows, kernel.rows));
    SANDWICH_ASSIGN_OR_RETURN(double seconds,
                              repeat(shape, nest, schedule, repetitions));
    best = std::max(best, sliceFlops(schedule, repetitions, options.threads) /
                              seconds);
  }
  return best;
}

double MeasuringEvaluator::readBytesPerSecond() {
  std::vector<double> samples;
  samples.reserve(mostPairs);
  uint64_t bytes = weights.size() / 4;
  for (size_t i = 0; i < mostPairs; ++i)
    samples.push_back(
        readSeconds(*team, options.threads, {nextWeight(bytes), bytes}));
  return static_cast<double>(bytes) / median(samples);
}

Result<ScheduleEvaluator::Limit>
MeasuringEvaluator::compareToLimit(const Payload &given,
                                   const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(check(given, schedule));
  Payload payload = given;
  SANDWICH_RETURN_IF_ERROR(narrow(payload, schedule));
  Packing packing = packingFor(given.shape, schedule.microKernel.isa);
  double columnsShare =
      static_cast<double>(given.shape.n) / static_cast<double>(payload.shape.n);
  SANDWICH_ASSIGN_OR_RETURN(Speeds fastest,
                            speeds(payload.shape, schedule.microKernel.isa));
  const double teamShare =
      static_cast<double>(payload.threads) / options.threads;
  // The code is compiled and the first memory touched.
  SANDWICH_RETURN_IF_ERROR(runOnce(payload, schedule));
  uint64_t bytes = packedBytes(payload.shape, packing);
  // As long a piece as the matmuls read: the team wakes up once for both.
  uint64_t pieces = std::min<uint64_t>(
      repetitionsFor(payload, bytes, leastSeconds), weights.size() / bytes);
  std::vector<double> seconds, shares, attainable;
  for (size_t round = 0; round < fewestPairs; ++round) {
    double reading = readSeconds(*team, static_cast<unsigned>(payload.threads),
                                 {nextWeight(pieces * bytes), pieces * bytes}) /
                     static_cast<double>(pieces);
    SANDWICH_ASSIGN_OR_RETURN(double now, runOnce(payload, schedule));
    seconds.push_back(now * columnsShare);
    auto limitAt = [&](double flops) {
      return std::max(reading, payload.flops() / (flops * teamShare));
    };
    shares.push_back(limitAt(fastest.peak) / now);
    attainable.push_back(limitAt(fastest.peak) / limitAt(fastest.inCache));
  }
  // Whoever is faster than the limit shows that it was measured too low. One
  // thread alone may have another clock, and one measurement luck.
  const double reached = payload.flops() / (median(seconds) / columnsShare);
  if (payload.threads == options.threads && reached > fastest.inCache)
    SANDWICH_RETURN_IF_ERROR(
        measureSpeeds(payload.shape, schedule.microKernel.isa));
  return Limit{median(seconds), std::min(median(shares), 1.0),
               median(attainable)};
}

Result<std::vector<double>>
MeasuringEvaluator::compare(const Payload &payload,
                            const std::vector<Schedule> &schedules,
                            size_t rounds) {
  if (schedules.empty())
    return makeError("there is no schedule to choose from");
  for (const Schedule &schedule : schedules)
    SANDWICH_RETURN_IF_ERROR(check(payload, schedule));
  Payload narrowed = payload;
  SANDWICH_RETURN_IF_ERROR(narrow(narrowed, schedules.front()));
  // Rounds of all, so that what disturbs one disturbs its neighbours too.
  constexpr double sampleSeconds = 2 * leastSeconds;
  std::vector<std::vector<double>> ratios(schedules.size());
  for (size_t round = 0; round < rounds; ++round) {
    double first = 0;
    for (size_t i = 0; i < schedules.size(); ++i) {
      SANDWICH_ASSIGN_OR_RETURN(double sample,
                                runOnce(narrowed, schedules[i], sampleSeconds));
      if (i == 0)
        first = sample;
      ratios[i].push_back(sample / first);
    }
  }
  std::vector<double> medians;
  for (std::vector<double> &each : ratios)
    medians.push_back(median(std::move(each)));
  return medians;
}

Result<size_t>
MeasuringEvaluator::fastest(const Payload &payload,
                            const std::vector<Schedule> &schedules) {
  constexpr size_t rounds = 5;
  SANDWICH_ASSIGN_OR_RETURN(std::vector<double> shares,
                            compare(payload, schedules, rounds));
  // Medians of so few differ by this much for no reason.
  constexpr double tie = 0.015;
  size_t best = 0;
  for (size_t i = 1; i < shares.size(); ++i)
    if (shares[i] < (best == 0 ? 1 - tie : shares[best]))
      best = i;
  return best;
}

Status
MeasuringEvaluator::expectSlices(const MatmulShape &shape,
                                 const std::vector<Schedule> &schedules) {
  for (const Schedule &schedule : schedules)
    SANDWICH_RETURN_IF_ERROR(verify(schedule, shape));
  return library->compileSlices(shape, schedules);
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
  uint64_t bytes = payload.shape.n * shape.k * elementBytes;
  if (bytes > weights.size() ||
      sumsOfSlice(schedule.microKernel.isa, schedule.slice) > maxBlockSums)
    return makeError("a slice of ", bM, " x ", bN, " for K = ", shape.k,
                     " is too large to measure");
  SANDWICH_RETURN_IF_ERROR(reserve(payload.shape, packing, bM, 1));
  SANDWICH_ASSIGN_OR_RETURN(PreparedNest nest,
                            library->prepare(shape, alone, bM, bM));
  NestCall call;
  call.input =
      BytesDescriptor(input.data(), static_cast<int64_t>(input.size()));
  call.result =
      BytesDescriptor(result.data(), static_cast<int64_t>(result.size()));
  call.scratch = BytesDescriptor(scratch.front().data(), nestScratchBytes);
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
      samples.push_back(secondsSince(begin));
  }
  return median(samples) * bN / payload.shape.n;
}
