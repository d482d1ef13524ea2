//===- Comparison.cpp - A matmul against its limit and a peer -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "LayeredMatmul.h"
#include "Operands.h"
#include "Peer.h"
#include "sandwich/Compiler/WeightPacker.h"
#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Tuning/MeasuringEvaluator.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

using Clock = std::chrono::steady_clock;

double secondsOf(const std::function<void()> &work) {
  Clock::time_point begin = Clock::now();
  work();
  return secondsSince(begin);
}

/// Both multiplications of one shape, and their operands.
class Contest {
public:
  static Result<std::unique_ptr<Contest>>
  create(const MatmulShape &shape, const ScheduleTable &table,
         const Target &target, const ComparisonOptions &options);

  Result<Comparison> compare(int64_t rows);
  std::string peerName() const { return peer ? peer->name() : ""; }

private:
  Contest(const MatmulShape &shape, const ScheduleTable &table,
          const ComparisonOptions &options)
      : shape(shape), table(table), options(options),
        operands(shape.n, shape.k, shape.storage) {}

  Status packWeights();
  void packIntegers();
  Status check(int64_t rows, int64_t layer);
  /// The next `count` layers, in turn.
  int64_t nextLayers(int64_t &position, int64_t count) const {
    if (position + count > layers)
      position = 0;
    int64_t first = position;
    position += count;
    return first;
  }

  const MatmulShape shape;
  const ScheduleTable table;
  const ComparisonOptions &options;
  const Operands operands;
  int64_t layers = 1;
  std::unique_ptr<PhaseTeam> team;
  std::unique_ptr<LayeredMatmul> matmul;
  AnonymousMemory weights;
  std::optional<MemoryReader> reader;
  std::unique_ptr<Peer> peer;
  std::unique_ptr<MeasuringEvaluator> evaluator;
  int64_t ownPosition = 0, peerPosition = 0, readPosition = 0;
};

Result<std::unique_ptr<Contest>>
Contest::create(const MatmulShape &shape, const ScheduleTable &table,
                const Target &target, const ComparisonOptions &options) {
  std::unique_ptr<Contest> contest(new Contest(shape, table, options));
  const int64_t bytes = weightBytes(shape.storage, shape.n, shape.k);
  contest->layers =
      std::max<int64_t>(1, static_cast<int64_t>(options.weightBytes / bytes));
  int64_t maxRows = options.rows.back();
  SANDWICH_ASSIGN_OR_RETURN(contest->matmul,
                            LayeredMatmul::create(shape, table, target,
                                                  options.threads, maxRows,
                                                  contest->layers));
  PhaseTeamOptions teamOptions;
  teamOptions.threads = static_cast<unsigned>(options.threads);
  teamOptions.cpus = options.cpus;
  SANDWICH_ASSIGN_OR_RETURN(contest->team, PhaseTeam::create(teamOptions));
  MeasuringOptions measuring;
  measuring.threads = teamOptions.threads;
  measuring.cpus = options.cpus;
  // Only multiplication in the caches is asked of it.
  measuring.weightBytes = uint64_t(64) << 20;
  SANDWICH_ASSIGN_OR_RETURN(contest->evaluator,
                            MeasuringEvaluator::create(target, measuring));
  for (int64_t row = 0; row < maxRows; ++row)
    contest->operands.fillInput(row, contest->matmul->bf16Input(),
                                contest->matmul->input(row));
  SANDWICH_RETURN_IF_ERROR(contest->packWeights());
  contest->reader.emplace(*contest->team, teamOptions.threads,
                          contest->weights.contents());
  // It has no weights of integers that share scales in groups.
  if (options.comparePeer && !shape.storage.isQuantized())
    contest->peer =
        createPeer(contest->operands, shape.n, shape.k,
                   shape.storage == StorageFormat::bf16(), contest->layers,
                   maxRows, options.threads, options.cpus);
  return contest;
}

Status Contest::packWeights() {
  SANDWICH_ASSIGN_OR_RETURN(
      weights,
      AnonymousMemory::allocate(layers * matmul->layerBytes(), "the weights",
                                AnonymousMemory::Fill::Wholly));
  if (shape.storage.isQuantized()) {
    packIntegers();
    return {};
  }
  int64_t rows = divideUp(shape.n, shape.packing->panel) * shape.packing->panel;
  auto pack = [&]<typename Element>(Element) {
    std::vector<Element> plain(rows * shape.k);
    for (int64_t layer = 0; layer < layers; ++layer) {
      operands.fillWeight(layer, rows, plain.data());
      auto *packed = reinterpret_cast<Element *>(weights.data() +
                                                 layer * matmul->layerBytes());
      packRows<Element>(*shape.packing, shape.k, plain,
                        std::span(packed, plain.size()));
    }
  };
  if (shape.storage == StorageFormat::bf16())
    pack(uint16_t());
  else
    pack(float());
  return {};
}

/// Compares some elements with sums in double precision, and all with the
/// peer's.
void Contest::packIntegers() {
  const StorageFormat &storage = shape.storage;
  const int64_t panel = shape.packing->panel, group = storage.groupOf(shape.k);
  const int64_t bytes = groupBytes(storage, panel, group);
  const int64_t groups = shape.k / group;
  tbb::parallel_for(
      int64_t(0), layers * divideUp(shape.n, panel), [&](int64_t number) {
        const int64_t panels = divideUp(shape.n, panel);
        const int64_t layer = number / panels, place = number % panels;
        std::vector<uint8_t> numbers(panel * group);
        std::vector<GroupScale> columns(panel);
        std::byte *to = weights.data() + layer * matmul->layerBytes() +
                        place * groups * bytes;
        for (int64_t i = 0; i < groups; ++i, to += bytes) {
          operands.fillGroup(layer, place * panel, i, numbers, columns);
          packGroup(storage, *shape.packing, numbers, columns,
                    std::span(to, bytes));
        }
      });
}

Status Contest::check(int64_t rows, int64_t layer) {
  matmul->run(*team, weights.data(), rows, layer, 1);
  auto wrong = [&](int64_t row, int64_t column, double expected) {
    return makeError(shape.n, " x ", shape.k, ", ", rows, " rows: element [",
                     row, ", ", column, "] is ", matmul->result(row)[column],
                     " instead of ", expected);
  };
  // f32 sums of K products, in any order.
  constexpr double epsilon = 0x1p-24;
  double tolerance = 4 * epsilon * std::sqrt(static_cast<double>(shape.k));
  // In longer groups weights are rounded again, by half a step at most: six
  // times the deviation of a sum of such errors.
  const bool roundsAgain = scheduleFor(table, rows).groupK > 0;
  const double ofRounding =
      roundsAgain ? 6 * operands.largestStep() / std::sqrt(12.0) : 0;
  constexpr int64_t samples = 64;
  for (int64_t i = 0; i < samples; ++i) {
    // The corners, and what lies between in large strides.
    int64_t row = (rows - 1) * (i % 8) / 7;
    int64_t column = (shape.n - 1) * (i / 8) / 7;
    Operands::Sum sum = operands.product(row, layer, column);
    if (!(std::abs(matmul->result(row)[column] - sum.value) <=
          tolerance * sum.magnitude + ofRounding * std::sqrt(sum.inputSquares)))
      return wrong(row, column, sum.value);
  }
  if (!peer || roundsAgain)
    return {};
  peer->run(layer, 1);
  // The products of values in (-1, 1) add up to about K / 4.
  tolerance *= static_cast<double>(shape.k);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < shape.n; ++column)
      if (!(std::abs(matmul->result(row)[column] - peer->result(row)[column]) <=
            tolerance))
        return wrong(row, column, peer->result(row)[column]);
  return {};
}

Result<Comparison> Contest::compare(int64_t rows) {
  if (peer)
    peer->prepare(rows);
  SANDWICH_RETURN_IF_ERROR(check(rows, 0));
  SANDWICH_RETURN_IF_ERROR(check(rows, layers - 1));

  auto own = [&](int64_t count) {
    int64_t first = nextLayers(ownPosition, count);
    return secondsOf([&] {
             matmul->run(*team, weights.data(), rows, first, count);
           }) /
           static_cast<double>(count);
  };
  auto theirs = [&](int64_t count) {
    int64_t first = nextLayers(peerPosition, count);
    return secondsOf([&] { peer->run(first, count); }) /
           static_cast<double>(count);
  };
  auto read = [&](int64_t count) {
    int64_t first = nextLayers(readPosition, count);
    uint64_t bytes = matmul->layerBytes();
    return reader->seconds({weights.data() + first * bytes, count * bytes}) /
           static_cast<double>(count);
  };
  // The threads of others, who may wait for work for a while, are to sleep.
  auto rest = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  };
  auto countFor = [&](double seconds) {
    return std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(options.sampleSeconds / seconds)), 1,
        layers);
  };
  int64_t ownCount = countFor(own(1));
  int64_t peerCount = peer ? countFor(theirs(1)) : 0;
  int64_t readCount = countFor(read(1));
  double flops = 2.0 * static_cast<double>(rows * shape.n * shape.k);

  std::vector<double> seconds, reading, peaks, shares, readShares, peerSeconds,
      ratios;
  for (int64_t round = 0; round < options.rounds; ++round) {
    // One untimed, so that each finds its code and input in the caches.
    rest();
    own(1);
    seconds.push_back(own(ownCount));
    rest();
    reading.push_back(read(readCount));
    SANDWICH_ASSIGN_OR_RETURN(
        double peak, evaluator->measurePeakFlops(
                         shape, scheduleFor(table, rows).microKernel.isa));
    peaks.push_back(peak);
    shares.push_back(std::max(reading.back(), flops / peak) / seconds.back());
    readShares.push_back(reading.back() / seconds.back());
    if (peer) {
      rest();
      theirs(1);
      peerSeconds.push_back(theirs(peerCount));
      ratios.push_back(peerSeconds.back() / seconds.back());
    }
  }
  Comparison result;
  result.rows = rows;
  result.seconds = median(seconds);
  result.readSeconds = median(reading);
  result.peakFlops = median(peaks);
  result.shareOfLimit = median(shares);
  result.shareOfReading = median(readShares);
  if (peer) {
    result.peerSeconds = median(peerSeconds);
    result.ratio = median(ratios);
  }
  return result;
}

} // namespace

Status
benchmark::compare(const MatmulShape &shape, const ScheduleTable &table,
                   const Target &target, const ComparisonOptions &options,
                   std::string &peerName,
                   const std::function<void(const Comparison &)> &report) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Contest> contest,
                            Contest::create(shape, table, target, options));
  peerName = contest->peerName();
  for (int64_t rows : options.rows) {
    SANDWICH_ASSIGN_OR_RETURN(Comparison result, contest->compare(rows));
    result.schedule = scheduleFor(table, rows);
    report(result);
  }
  return {};
}
