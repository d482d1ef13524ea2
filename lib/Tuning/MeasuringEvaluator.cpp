//===- MeasuringEvaluator.cpp - How long schedules take -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MeasuringEvaluator.h"
#include "sandwich/Runtime/Teams/TeamStep.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/ModelLimits.h"
#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <bit>
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
/// of an f32 is a bf16, the other half a fraction. As f16 they are scales near
/// 2 or -2, and as bytes integers, of which every second one may be any.
void fillRandom(std::byte *at, uint64_t bytes, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (std::byte *end = at + bytes; at + 8 <= end; at += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    uint64_t bits = (state & 0x807f807f807f807f) | 0x3f003f003f003f00;
    std::memcpy(at, &bits, sizeof(bits));
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// The evaluator
//===----------------------------------------------------------------------===//

MeasuringEvaluator::MeasuringEvaluator(const Target &target,
                                       std::unique_ptr<MatmulLibrary> library,
                                       const MeasuringOptions &options)
    : target(target), library(std::move(library)), options(options) {}

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
      std::unique_ptr<MatmulLibrary> library,
      MatmulLibrary::create(target, options.threads, options.stop));
  std::unique_ptr<MeasuringEvaluator> evaluator(
      new MeasuringEvaluator(target, std::move(library), options));
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
  fillRandom(weights.data(), weights.size(), 1);
  return {};
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

MatmulProgram MeasuringEvaluator::programOf(const Payload &payload,
                                            MatrixISA isa) const {
  // Integers round what tiles beside them read.
  if (multipliesIntegers(isa))
    isa = allInstructionsFor(payload.shape, target).back();
  MatmulProgram program{.shape = payload.shape,
                        .isa = isa,
                        .threads = payload.threads,
                        .maxRows = options.maxRows};
  program.shape.packing = packingFor(payload.shape, isa);
  const auto available = static_cast<int64_t>(weights.size());
  program.layers = std::clamp<int64_t>(available / program.weightPlace()[1], 1,
                                       model_limits::layers);
  // Layers of which thousands of tokens fill a cache have large weights: those
  // that are left are still more than the last cache holds.
  constexpr int64_t mostCacheBytes = 1 << 30;
  while (program.layers > 1 && (program.weightBytes() > available ||
                                program.cacheBytes() > mostCacheBytes))
    program.layers -= divideUp<int64_t>(program.layers, 16);
  return program;
}

Status MeasuringEvaluator::reserve(const MatmulProgram &program,
                                   const MatmulCode &code, int64_t rows) {
  const auto bytes = static_cast<uint64_t>(code.workspaceBytes);
  if (workspace.size() < bytes) {
    SANDWICH_ASSIGN_OR_RETURN(
        workspace,
        AnonymousMemory::allocate(bytes, "the workspace of measurements"));
    filled.reset();
  }
  const auto cacheBytes = static_cast<uint64_t>(program.cacheBytes());
  if (cache.size() < cacheBytes) {
    SANDWICH_ASSIGN_OR_RETURN(
        cache,
        AnonymousMemory::allocate(cacheBytes, "the KV cache of measurements",
                                  AnonymousMemory::Fill::Wholly));
    // The first touch of memory is not what is measured.
    std::memset(cache.data(), 0, cache.size());
  }
  for (auto number = static_cast<int32_t>(numbers.size());
       number < program.maxRows; ++number)
    numbers.push_back(number);
  if (filled == program && rows <= filledRows)
    return {};
  auto fill = [&](int64_t begin, int64_t size, uint64_t seed) {
    fillRandom(workspace.data() + begin, size, seed);
  };
  fill(0, rows * program.inputStride() * (program.bf16Input() ? 2 : 4), 2);
  fill(code.workspace.result,
       rows * program.resultStride() * (program.bf16Result() ? 2 : 4), 3);
  if (program.shape.epilogue.kind == Epilogue::RotateAppendKV)
    fill(code.workspace.rotaryTable, rows * program.rotaryStride() * 4, 4);
  filled = program;
  filledRows = rows;
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

std::vector<int32_t>
MeasuringEvaluator::nextLayers(const MatmulProgram &program, size_t count) {
  auto [first, stride] = program.weightPlace();
  const auto place = static_cast<int64_t>(weightPosition);
  int64_t layer = place > first ? divideUp(place - first, stride) : 0;
  std::vector<int32_t> layers;
  while (layers.size() < count) {
    if (layer >= program.layers)
      layer = 0;
    layers.push_back(static_cast<int32_t>(layer++));
  }
  weightPosition = first + layer * stride;
  return layers;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// For a step whose threads cross no data.
static void waitForNobody(void * /*team*/) {}

/// The step's barrier is that of the team.
SandwichStep MeasuringEvaluator::stepOf(int64_t rows,
                                        const std::vector<int32_t> &layers) {
  SandwichStep step = {};
  step.token_ids = numbers.data();
  step.positions = numbers.data();
  step.cache_slots = numbers.data();
  step.num_tokens = rows;
  step.logit_rows = layers.data();
  step.num_logit_rows = static_cast<int64_t>(layers.size());
  step.weights = weights.data();
  step.kv_cache = cache.data();
  step.num_blocks =
      divideUp<int64_t>(std::ssize(numbers), SANDWICH_KV_BLOCK_TOKENS);
  step.workspace = workspace.data();
  setTeam(step, *team);
  return step;
}

double MeasuringEvaluator::run(const MatmulCode &code, int64_t rows,
                               unsigned threads,
                               const std::vector<int32_t> &layers,
                               Barriers barriers) {
  SandwichStep step = stepOf(rows, layers);
  if (barriers == Barriers::None)
    step.barrier = waitForNobody;
  Clock::time_point begin = Clock::now();
  runOnTeam(*team, threads, code.function, step);
  return secondsSince(begin);
}

double MeasuringEvaluator::runAlone(const MatmulCode &code, int64_t rows,
                                    const std::vector<int32_t> &layers) {
  SandwichStep step = stepOf(rows, layers);
  step.barrier = waitForNobody;
  Clock::time_point begin = Clock::now();
  code.function(&step, 0);
  return secondsSince(begin);
}

/// How many matmuls take `least` seconds, by a rough guess.
static size_t repetitionsFor(const Payload &payload,
                             const MatmulProgram &program, double least) {
  double guess =
      std::max(payload.flops() / 1e12,
               static_cast<double>(program.weightPlace()[1]) / 100e9);
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(least / guess)), 1,
                            64);
}

double MeasuringEvaluator::secondsPerMatmul(const Payload &payload,
                                            const MatmulProgram &program,
                                            const MatmulCode &code,
                                            double least) {
  const size_t repetitions = repetitionsFor(payload, program, least);
  return run(code, payload.rows, static_cast<unsigned>(payload.threads),
             nextLayers(program, repetitions)) /
         static_cast<double>(repetitions);
}

Result<double> MeasuringEvaluator::runOnce(const Payload &payload,
                                           const Schedule &schedule) {
  const MatmulProgram program = programOf(payload, schedule.microKernel.isa);
  const int64_t columns = program.storedColumns();
  SANDWICH_ASSIGN_OR_RETURN(Schedule fitting, fitSlice(schedule, payload.shape,
                                                       columns, payload.rows));
  int64_t tM = schedule.threads[0];
  SANDWICH_ASSIGN_OR_RETURN(
      MatmulCode code, library->prepare(program, fitting, payload.rows / tM,
                                        divideUp(payload.rows, tM)));
  SANDWICH_RETURN_IF_ERROR(reserve(program, code, payload.rows));
  const Division division = divisionOf(payload.shape, *program.shape.packing,
                                       schedule.threads, columns);
  std::vector<ThreadPart> parts;
  for (int64_t thread = 0; thread < payload.threads; ++thread)
    parts.push_back(
        partOfThread(IntegerArithmetic(), division, payload.rows, thread));
  code.writeParameters(workspace.data(), parts);
  return secondsPerMatmul(payload, program, code, leastSeconds);
}

Result<std::vector<MatmulCode>>
MeasuringEvaluator::prepareAsShipped(const Payload &payload,
                                     const std::vector<Schedule> &schedules) {
  // As tables have them: a range of rows, all of them in one block where those
  // of the payload are. Neighbours share their range, and with it the code.
  constexpr int64_t rangesPerOctave = 8;
  const auto rows = static_cast<uint64_t>(payload.rows);
  const int64_t range =
      std::max<int64_t>(std::bit_floor(rows) / rangesPerOctave, 1);
  const int64_t fewest = payload.rows / range * range;
  std::vector<ScheduleTable> tables;
  for (Schedule schedule : schedules) {
    if (schedule.slice[0] >= divideUp(payload.rows, schedule.threads[0]))
      schedule.slice[0] = options.maxRows;
    tables.push_back({{INT64_MAX, schedule}});
  }
  return library->prepareAsShipped(
      programOf(payload, schedules.front().microKernel.isa), tables,
      {fewest, std::min(fewest + range - 1, options.maxRows)});
}

Result<double> MeasuringEvaluator::runShipped(const Payload &payload,
                                              const MatmulProgram &program,
                                              const MatmulCode &code,
                                              double least) {
  SANDWICH_RETURN_IF_ERROR(reserve(program, code, payload.rows));
  if (options.stop && options.stop())
    return makeError("measuring was stopped");
  return secondsPerMatmul(payload, program, code, least);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

Status MeasuringEvaluator::check(const Payload &payload,
                                 const Schedule &schedule) const {
  SANDWICH_RETURN_IF_ERROR(verify(schedule, payload.shape));
  auto [tM, tN, tK] = schedule.threads;
  if (payload.rows < 1 || payload.rows > options.maxRows ||
      payload.threads > options.threads || tM * tN * tK > payload.threads)
    return makeError("cannot measure ", payload.rows, " rows on ",
                     payload.threads, " threads");
  if (programOf(payload, schedule.microKernel.isa).resultChannels() <= 0)
    return makeError("a matmul of ", payload.shape.n, " columns has no heads ",
                     "of queries beside ", payload.shape.epilogue.cacheHeads,
                     " heads of keys and of values");
  return {};
}

/// `shape` with the first `columns` columns: of a projection of queries, keys
/// and values about as many of each.
static MatmulShape narrowed(MatmulShape shape, int64_t columns) {
  if (shape.epilogue.kind == Epilogue::RotateAppendKV)
    shape.epilogue.cacheHeads =
        std::max<int64_t>(shape.epilogue.cacheHeads * columns / shape.n, 1);
  shape.n = columns;
  return shape;
}

/// Takes columns away from what does not fit the weights' memory.
Status MeasuringEvaluator::narrow(Payload &payload,
                                  const Schedule &schedule) const {
  const MatmulShape given = payload.shape;
  const MatrixISA isa = schedule.microKernel.isa;
  const auto available = static_cast<int64_t>(weights.size());
  if (programOf(payload, isa).weightBytes() <= available)
    return {};
  const int64_t unit = columnUnitOf(given, packingFor(given, isa));
  const int64_t unitBytes = weightBytes(given.storage, unit, given.k);
  // Beside the matrix there are vectors, and what aligns both.
  int64_t units = std::min(available / unitBytes, given.n / unit);
  for (; units > 0; --units) {
    payload.shape = narrowed(given, units * unit);
    const MatmulProgram program = programOf(payload, isa);
    if (program.weightBytes() <= available && program.resultChannels() > 0)
      break;
  }
  if (units < static_cast<int64_t>(options.threads) || units == 0)
    return makeError("K = ", given.k, " is too large to measure with ",
                     available, " bytes of weights");
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

  std::tuple key(given.rows, given.threads, given.shape);
  std::get<MatmulShape>(key).packing = packing;
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

MatmulProgram
MeasuringEvaluator::repeatedProgram(const MatmulShape &shape,
                                    const Schedule &schedule) const {
  const MicroKernel &kernel = schedule.microKernel;
  const auto threads = static_cast<int64_t>(options.threads);
  return {.shape = {.n = schedule.slice[1],
                    .k = shape.k,
                    .storage = shape.storage,
                    .packing = packingFor(shape, kernel.isa)},
          .isa = kernel.isa,
          .threads = threads,
          .maxRows = kernel.rows * threads,
          .layers = 1};
}

Result<double> MeasuringEvaluator::repeat(const MatmulProgram &program,
                                          const MatmulCode &code,
                                          const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(reserve(program, code, program.maxRows));
  // Each thread has rows of its own: lines that threads share would be written
  // in turn.
  auto [rows, columns, k] = schedule.slice;
  std::vector<ThreadPart> parts;
  for (int64_t thread = 0; thread < program.threads; ++thread)
    parts.push_back({thread * rows, (thread + 1) * rows, 0, columns, 0, k, 0});
  code.writeParameters(workspace.data(), parts);
  std::vector<int32_t> layers(20, 0);
  auto once = [&] {
    return run(code, program.maxRows, options.threads, layers, Barriers::None);
  };
  constexpr size_t mostRepetitions = size_t(1) << 15;
  while (once() < leastSeconds && layers.size() < mostRepetitions)
    layers.resize(2 * layers.size(), 0);
  std::vector<double> samples;
  for (size_t i = 0; i < mostPairs; ++i)
    samples.push_back(once());
  return median(samples) / static_cast<double>(layers.size());
}

/// The tallest micro-kernel of each width that reads the weight of `shape`.
static std::vector<MicroKernel> tallestKernels(const MatmulShape &shape,
                                               MatrixISA isa) {
  const Packing packing = packingFor(shape, isa);
  std::map<int64_t, MicroKernel> tallest;
  for (const MicroKernel &kernel : microKernelMenu(isa))
    if (MicroKernel &best = tallest[kernel.columns];
        reads(kernel, packing, shape.storage) && kernel.rows > best.rows)
      best = kernel;
  std::vector<MicroKernel> kernels;
  for (const auto &[columns, kernel] : tallest)
    if (kernel.rows > 0)
      kernels.push_back(kernel);
  return kernels;
}

/// `shape` with the weight that micro-kernels of `isa` read: floats, if they
/// are unpacked, or, of 4 bits for tiles of integers, a copy in longer groups.
static MatmulShape asMultiplied(MatmulShape shape, MatrixISA isa) {
  if (hasIntegerTiles(isa) && shape.storage.number == NumberFormat::Int4)
    shape.storage =
        multipliedStorage({.groupK = longGroupOf(isa, shape.k)}, shape.storage);
  if (!unpacksWeights(isa, shape.storage))
    return shape;
  shape.packing = multipliedPacking(isa, packingFor(shape, isa), shape.storage);
  shape.storage =
      multipliesBF16(isa) ? StorageFormat::bf16() : StorageFormat::f32();
  return shape;
}

Result<MeasuringEvaluator::Speeds>
MeasuringEvaluator::speeds(const MatmulShape &given, MatrixISA isa) {
  const MatmulShape shape = asMultiplied(given, isa);
  std::pair key(isa, shape.storage);
  if (auto entry = knownSpeeds.find(key); entry != knownSpeeds.end())
    return entry->second;
  SANDWICH_RETURN_IF_ERROR(measureSpeeds(shape, isa));
  return knownSpeeds.at(key);
}

Status MeasuringEvaluator::measureSpeeds(const MatmulShape &given,
                                         MatrixISA isa) {
  const MatmulShape shape = asMultiplied(given, isa);
  SANDWICH_ASSIGN_OR_RETURN(double inCache, measureFlopsInCache(shape, isa));
  SANDWICH_ASSIGN_OR_RETURN(double peak, measurePeakFlops(shape, isa));
  Speeds &known = knownSpeeds[{isa, shape.storage}];
  known.inCache = std::max(known.inCache, inCache);
  known.peak = std::max({known.peak, peak, known.inCache});
  return {};
}

/// What all threads do in a slice each.
static double sliceFlops(const Schedule &schedule, unsigned threads) {
  auto [rows, columns, k] = schedule.slice;
  return 2.0 * static_cast<double>(rows * columns) *
         static_cast<double>(k * threads);
}

Result<double> MeasuringEvaluator::measurePeakFlops(const MatmulShape &given,
                                                    MatrixISA isa) {
  const bool integerTiles = hasIntegerTiles(isa);
  if (multipliesIntegers(isa) && !integerTiles)
    return measureFlopsInCache(given, isa);
  MatmulShape shape = asMultiplied(given, isa);
  // So many columns that rounding their input takes little.
  constexpr int64_t columnsOfTiles = 8192, kOfTiles = 2048;
  if (integerTiles) {
    shape = {.n = columnsOfTiles, .k = kOfTiles, .roundsInput = true};
    shape.storage = {.number = NumberFormat::Int8,
                     .groupSize = 0,
                     .scale = ScaleFormat::F32};
  }
  // The most sums hide the latency best.
  Packing packing = packingFor(shape, isa);
  std::vector<MicroKernel> kernels = tallestKernels(shape, isa);
  auto sums = [](const MicroKernel &kernel) {
    return kernel.rows * kernel.columns;
  };
  const MicroKernel &kernel = *std::ranges::max_element(kernels, {}, sums);
  const int64_t k = integerTiles ? shape.k : 1 << 14;
  Schedule schedule{.microKernel = kernel,
                    .slice = {kernel.rows,
                              integerTiles
                                  ? shape.n
                                  : std::max(kernel.columns, packing.panel),
                              k},
                    .packsInput = integerTiles};
  const MatmulProgram program = repeatedProgram(shape, schedule);
  SANDWICH_ASSIGN_OR_RETURN(MatmulCode code,
                            library->preparePeak(program, schedule));
  SANDWICH_ASSIGN_OR_RETURN(double seconds, repeat(program, code, schedule));
  return sliceFlops(schedule, options.threads) / seconds;
}

Result<double> MeasuringEvaluator::measureFlopsInCache(const MatmulShape &given,
                                                       MatrixISA isa) {
  const MatmulShape shape = asMultiplied(given, isa);
  const bool integers = multipliesIntegers(isa);
  double best = 0;
  Packing packing = packingFor(shape, isa);
  for (const MicroKernel &kernel : tallestKernels(shape, isa)) {
    int64_t columns = std::max(kernel.columns, packing.panel);
    // Small enough for the nearest caches, also beside the input of tiles, long
    // enough to forget what a call costs. Integers lie in L2, as where
    // schedules have them: with fewer columns, rounding the input would take
    // too much.
    constexpr int64_t columnsOfIntegers = 1024;
    if (integers)
      columns = roundUp(columnsOfIntegers, columns);
    const int64_t weightBytes = integers        ? 256 << 10
                                : hasTiles(isa) ? 16 << 10
                                                : 32 << 10;
    int64_t k =
        std::min(roundUp(weightBytes * 8 / columns / shape.storage.bits(),
                         kUnitOf(shape, packing)),
                 shape.k);
    Schedule schedule{.microKernel = kernel,
                      .slice = {kernel.rows, columns, k},
                      .packsInput = integers};
    const MatmulProgram program = repeatedProgram(shape, schedule);
    SANDWICH_ASSIGN_OR_RETURN(
        MatmulCode code,
        library->prepare(program, schedule, kernel.rows, kernel.rows));
    SANDWICH_ASSIGN_OR_RETURN(double seconds, repeat(program, code, schedule));
    best = std::max(best, sliceFlops(schedule, options.threads) / seconds);
  }
  return best;
}

const MemoryReader &MeasuringEvaluator::plainReader() {
  if (!reader)
    reader.emplace(*team, options.threads, weights.contents());
  return *reader;
}

double MeasuringEvaluator::readBytesPerSecond() {
  std::vector<double> samples;
  samples.reserve(mostPairs);
  uint64_t bytes = weights.size() / 4;
  for (size_t i = 0; i < mostPairs; ++i)
    samples.push_back(plainReader().seconds({nextWeight(bytes), bytes}));
  return static_cast<double>(bytes) / median(samples);
}

Result<ScheduleEvaluator::Limit>
MeasuringEvaluator::compareToLimit(const Payload &given,
                                   const Schedule &schedule) {
  SANDWICH_RETURN_IF_ERROR(check(given, schedule));
  Payload payload = given;
  SANDWICH_RETURN_IF_ERROR(narrow(payload, schedule));
  const MatmulProgram program = programOf(payload, schedule.microKernel.isa);
  double columnsShare =
      static_cast<double>(given.shape.n) / static_cast<double>(payload.shape.n);
  SANDWICH_ASSIGN_OR_RETURN(Speeds fastest,
                            speeds(payload.shape, schedule.microKernel.isa));
  const double teamShare =
      static_cast<double>(payload.threads) / options.threads;
  // The first memory is touched.
  SANDWICH_RETURN_IF_ERROR(runOnce(payload, schedule));
  const auto bytes = static_cast<uint64_t>(program.weightPlace()[1]);
  // As long a piece as the matmuls read: the team wakes up once for both.
  uint64_t pieces = std::min<uint64_t>(
      repetitionsFor(payload, program, leastSeconds), weights.size() / bytes);
  std::vector<double> seconds, shares, readOverRun, attainable, readOverLimit;
  // A search that a disturbed comparison lets begin takes a hundred times as
  // long as this.
  constexpr size_t mostComparisons = 9;
  constexpr double enoughSeconds = 0.03;
  const MemoryReader &plain = plainReader();
  const Clock::time_point begin = Clock::now();
  for (size_t round = 0;
       round < fewestPairs ||
       (round < mostComparisons && secondsSince(begin) < enoughSeconds);
       ++round) {
    double reading = plain.seconds({nextWeight(pieces * bytes), pieces * bytes},
                                   static_cast<unsigned>(payload.threads)) /
                     static_cast<double>(pieces);
    SANDWICH_ASSIGN_OR_RETURN(double now, runOnce(payload, schedule));
    readOverRun.push_back(reading / now);
    seconds.push_back(now * columnsShare);
    auto limitAt = [&](double flops) {
      return std::max(reading, payload.flops() / (flops * teamShare));
    };
    shares.push_back(limitAt(fastest.peak) / now);
    attainable.push_back(limitAt(fastest.peak) / limitAt(fastest.inCache));
    readOverLimit.push_back(reading / limitAt(fastest.peak));
  }
  // Whoever is faster than the limit shows that it was measured too low. One
  // thread alone may have another clock, and one measurement luck.
  const double reached = payload.flops() / (median(seconds) / columnsShare);
  if (payload.threads == options.threads) {
    if (reached > fastest.inCache)
      SANDWICH_RETURN_IF_ERROR(
          measureSpeeds(payload.shape, schedule.microKernel.isa));
    // A few times: memory whose speed moves will do that again and again.
    constexpr int mostReadersReplaced = 8;
    if (median(readOverRun) > 1 + agreement &&
        readersReplaced < mostReadersReplaced) {
      ++readersReplaced;
      reader.reset();
    }
  }
  return Limit{median(seconds), std::min(median(shares), 1.0),
               median(attainable), median(readOverLimit)};
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
  const MatmulProgram program =
      programOf(narrowed, schedules.front().microKernel.isa);
  SANDWICH_ASSIGN_OR_RETURN(std::vector<MatmulCode> codes,
                            prepareAsShipped(narrowed, schedules));
  // Rounds of all, so that what disturbs one disturbs its neighbours too.
  constexpr double sampleSeconds = 2 * leastSeconds;
  std::vector<std::vector<double>> ratios(schedules.size());
  for (size_t round = 0; round < rounds; ++round) {
    double first = 0;
    for (size_t i = 0; i < schedules.size(); ++i) {
      SANDWICH_ASSIGN_OR_RETURN(
          double sample,
          runShipped(narrowed, program, codes[i], sampleSeconds));
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

Result<MatmulProgram>
MeasuringEvaluator::sliceProgram(const MatmulShape &shape,
                                 const Schedule &schedule) const {
  Payload payload{shape, 1, static_cast<int64_t>(options.threads)};
  payload.shape.epilogue = {};
  SANDWICH_RETURN_IF_ERROR(narrow(payload, schedule));
  return programOf(payload, schedule.microKernel.isa);
}

Status
MeasuringEvaluator::expectSlices(const MatmulShape &shape,
                                 const std::vector<Schedule> &schedules) {
  for (const Schedule &schedule : schedules)
    SANDWICH_RETURN_IF_ERROR(verify(schedule, shape));
  if (schedules.empty())
    return {};
  SANDWICH_ASSIGN_OR_RETURN(MatmulProgram program,
                            sliceProgram(shape, schedules.front()));
  return library->compileSlices(program, schedules);
}

Result<double> MeasuringEvaluator::sliceSeconds(const MatmulShape &shape,
                                                const Schedule &schedule) {
  // Side by side in one row of blocks, of layer after layer: the time between
  // two slices is that of the loops around them.
  auto [bM, bN, bK] = schedule.slice;
  Schedule alone = schedule;
  alone.threads = {1, 1, 1};
  SANDWICH_RETURN_IF_ERROR(verify(alone, shape));
  if (bM > options.maxRows)
    return makeError("cannot measure ", bM, " rows");
  if (!sliceFitsMemory(shape, schedule))
    return makeError("a slice of ", bM, " x ", bN, " x ", bK,
                     " is too large to measure");
  SANDWICH_ASSIGN_OR_RETURN(MatmulProgram program, sliceProgram(shape, alone));
  SANDWICH_ASSIGN_OR_RETURN(MatmulCode code,
                            library->prepare(program, alone, bM, bM));
  SANDWICH_RETURN_IF_ERROR(reserve(program, code, bM));

  constexpr double sampleFlops = 3e7;
  const double wanted = std::ceil(sampleFlops / (2.0 * bM * bN * bK));
  const int64_t n = program.storedColumns();
  // Of each layer.
  const int64_t slices = std::clamp<int64_t>(static_cast<int64_t>(wanted), 1,
                                             std::max<int64_t>(n / bN, 1));
  const int64_t columns = std::min(slices * bN, n);
  const auto layers = static_cast<int64_t>(
      std::min(std::ceil(wanted / static_cast<double>(slices)),
               static_cast<double>(divideUp<int64_t>(program.layers, 4))));
  const int64_t k = std::min(bK, shape.k);
  std::vector<ThreadPart> parts(program.threads);
  std::vector<double> samples;
  constexpr int sampleCount = 3;
  for (int i = 0; i <= sampleCount; ++i) {
    const WeightPiece piece =
        weightPiece(program, piecesRead++, layers, columns, k);
    parts.front() = {
        0, bM, piece.column, piece.column + columns, piece.k, piece.k + k, 0};
    code.writeParameters(workspace.data(), parts);
    const double sample = runAlone(code, bM, piece.layers);
    // The first one warms the code and the input up.
    if (i > 0)
      samples.push_back(sample);
  }
  return median(samples) * static_cast<double>(bN) /
         static_cast<double>(columns * layers);
}
