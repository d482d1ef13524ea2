//===- TestMemory.h - The memory of phase programs in tests -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CONVERSION_TESTMEMORY_H
#define SANDWICH_UNITTESTS_CONVERSION_TESTMEMORY_H

#include "JitTest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

namespace sandwich::test {

inline constexpr int64_t maxTokens = 64;
inline constexpr int64_t blockTokens = 16;
inline constexpr float untouched = 12345.0f;
inline const std::vector<int64_t> tokenCounts = {0, 1, 2, 7, 16, 33};

/// Elements in memory that others own: f32 or a narrow type.
struct Elements {
  enum class Kind { F32, BF16, F16 };

  unsigned char *base = nullptr;
  Kind kind = Kind::F32;

  Elements() = default;
  Elements(unsigned char *base, bool bf16)
      : base(base), kind(bf16 ? Kind::BF16 : Kind::F32) {}
  Elements(unsigned char *base, Kind kind) : base(base), kind(kind) {}

  bool bf16() const { return kind == Kind::BF16; }
  float get(int64_t i) const {
    switch (kind) {
    case Kind::F32:
      return reinterpret_cast<float *>(base)[i];
    case Kind::BF16:
      return fromBF16(reinterpret_cast<uint16_t *>(base)[i]);
    case Kind::F16:
      return static_cast<float>(reinterpret_cast<_Float16 *>(base)[i]);
    }
    __builtin_unreachable();
  }
  void set(int64_t i, float value) const {
    switch (kind) {
    case Kind::F32:
      reinterpret_cast<float *>(base)[i] = value;
      break;
    case Kind::BF16:
      reinterpret_cast<uint16_t *>(base)[i] =
          std::isnan(value) ? 0x7fc0 : toBF16(value);
      break;
    case Kind::F16:
      reinterpret_cast<_Float16 *>(base)[i] = static_cast<_Float16>(value);
      break;
    }
  }
  void fill(int64_t count, float value) const {
    for (int64_t i = 0; i < count; ++i)
      set(i, value);
  }
  void fillRandom(int64_t count, std::mt19937 &random) const {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < count; ++i)
      set(i, uniform(random));
  }
  /// Whether element `i` still holds what `fill(untouched)` wrote.
  bool isUntouched(int64_t i) const {
    unsigned char bytes[4];
    Elements expected(bytes, kind);
    expected.set(0, untouched);
    return get(i) == expected.get(0);
  }
};

using Kind = Elements::Kind;

/// The arguments of a step; only those that a test uses matter.
struct ProgramBuffers {
  std::vector<int32_t> tokenIds, positions, cacheSlots, logitRows;
  std::vector<SandwichSegment> segments;
  /// Blocks of one sequence after another's.
  std::vector<int32_t> blockTables;
  void *cache = nullptr, *weights = nullptr, *workspace = nullptr;

  SandwichStep step() {
    SandwichStep step{};
    step.token_ids = tokenIds.data();
    step.positions = positions.data();
    step.cache_slots = cacheSlots.data();
    step.segments = segments.data();
    step.block_tables = blockTables.data();
    step.logit_rows = logitRows.data();
    step.num_tokens = static_cast<int64_t>(positions.size());
    step.num_segments = static_cast<int64_t>(segments.size());
    step.num_blocks = static_cast<int64_t>(blockTables.size());
    step.num_logit_rows = static_cast<int64_t>(logitRows.size());
    step.weights = weights;
    step.kv_cache = cache;
    step.workspace = workspace;
    return step;
  }
};

inline std::string elementName(Kind kind) {
  switch (kind) {
  case Kind::F32:
    return "f32";
  case Kind::BF16:
    return "bf16";
  case Kind::F16:
    return "f16";
  }
  __builtin_unreachable();
}
inline std::string elementName(bool bf16) {
  return elementName(bf16 ? Kind::BF16 : Kind::F32);
}

/// The error an element may have: of f32 arithmetic, and of rounding it.
inline double tolerance(double expected, Kind kind) {
  switch (kind) {
  case Kind::F32:
    return 1e-5 * (1 + std::abs(expected));
  case Kind::BF16:
    return 1e-5 + std::abs(expected) / 256;
  case Kind::F16:
    return 1e-5 + std::abs(expected) / 2048;
  }
  __builtin_unreachable();
}

/// Two activations in one workspace, and the views of them as IR: `%input`,
/// [tokens, input channels], and `%destination`, padded to a stride.
class Activations {
public:
  /// `partialBytes` is the memory of partial sums behind both.
  Activations(bool bf16Input, int64_t inputChannels, bool bf16Destination,
              int64_t channels, int64_t padding, int64_t partialBytes = 0)
      : inputChannels(inputChannels), channels(channels),
        stride(channels + padding),
        destinationOffset((maxTokens * inputChannels * 4 + 63) / 64 * 64),
        partialBytes(partialBytes),
        partialOffset((destinationOffset + (maxTokens + 1) * stride * 4 + 63) /
                      64 * 64),
        workspace(partialOffset + partialBytes),
        input{workspace.data(), bf16Input},
        destination{workspace.data() + destinationOffset, bf16Destination} {}

  std::string inputType() const {
    return "memref<?x" + std::to_string(inputChannels) + "x" +
           elementName(input.bf16()) + ">";
  }
  std::string destinationType() const {
    return "memref<?x" + std::to_string(channels) + "x" +
           elementName(destination.bf16()) + ", strided<[" +
           std::to_string(stride) + ", 1]>>";
  }
  /// Defines `%input` and `%destination` with `rows` rows, an SSA name.
  std::string views(const std::string &inputRows,
                    const std::string &rows) const {
    std::ostringstream ir;
    std::string padded = "memref<?x" + std::to_string(stride) + "x" +
                         elementName(destination.bf16()) + ">";
    ir << "%zero = arith.constant 0 : index\n"
       << "%offset = arith.constant " << destinationOffset << " : index\n"
       << "%input = memref.view %workspace[%zero][" << inputRows
       << "] : memref<?xi8> to " << inputType() << "\n"
       << "%padded = memref.view %workspace[%offset][" << rows
       << "] : memref<?xi8> to " << padded << "\n"
       << "%destination = memref.subview %padded[0, 0][" << rows << ", "
       << channels << "][1, 1] : " << padded << " to " << destinationType()
       << "\n";
    return ir.str();
  }
  void describe(ProgramBuffers &buffers) {
    buffers.workspace = workspace.data();
  }
  void resetDestination() {
    destination.fill((maxTokens + 1) * stride, untouched);
  }
  /// Expects that nothing but the channels of `rows` rows was written.
  void expectRestUntouched(int64_t rows) {
    for (int64_t row = 0; row <= maxTokens; ++row)
      for (int64_t c = row < rows ? channels : 0; c < stride; ++c)
        ASSERT_TRUE(destination.isUntouched(row * stride + c))
            << "row " << row << " column " << c << " of " << rows << " rows";
  }
  /// `error` is what the result may have beside that of its type.
  void expectNear(int64_t row, int64_t channel, double expected,
                  double error = 0) {
    double result = destination.get(row * stride + channel);
    // Also false for what is no number.
    ASSERT_TRUE(std::abs(result - expected) <=
                tolerance(expected, destination.kind) + error)
        << "row " << row << " channel " << channel << ": " << result
        << " instead of " << expected;
  }

  std::string partialType() const {
    return "memref<" + std::to_string(partialBytes) + "xi8>";
  }
  /// Defines `%partial`.
  std::string viewOfPartialSums() const {
    return "%partial_offset = arith.constant " + std::to_string(partialOffset) +
           " : index\n%partial = memref.view %workspace[%partial_offset][] : "
           "memref<?xi8> to " +
           partialType() + "\n";
  }

  int64_t inputChannels, channels, stride, destinationOffset;
  int64_t partialBytes, partialOffset;
  AlignedBytes workspace;
  Elements input, destination;
};

/// One layer of several in a cache.
struct CacheShape {
  int64_t heads, headDim;
  Kind kind;

  static constexpr int64_t layers = 3;
  static constexpr int64_t layer = 1;

  std::string type() const {
    return "memref<?x" + std::to_string(layers) + "x" + std::to_string(heads) +
           "x2x" + std::to_string(headDim * blockTokens) + "x" +
           elementName(kind) + ">";
  }
};

/// A cache in scattered blocks, as many for each sequence as it needs; what is
/// not written is no number.
class Cache {
public:
  Cache(const CacheShape &shape, const std::vector<int64_t> &blocksOfSequences,
        std::mt19937 &random)
      : elements(nullptr, shape.kind), shape(shape), firstBlocks{0},
        blocks(std::accumulate(blocksOfSequences.begin(),
                               blocksOfSequences.end(), int64_t(3))),
        memory(size() * 4) {
    for (int64_t count : blocksOfSequences)
      firstBlocks.push_back(firstBlocks.back() + count);
    elements.base = memory.data();
    elements.fill(size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<int32_t> numbers(blocks);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), random);
    tables.assign(numbers.begin(), numbers.begin() + firstBlocks.back());
  }

  int64_t key(int64_t sequence, int64_t position, int64_t head,
              int64_t channel) const {
    // bf16 channels are in pairs.
    const int64_t together =
        shape.kind == Kind::BF16 && shape.headDim % 4 == 0 ? 2 : 1;
    return base(sequence, position, head, 0) +
           channel / together * together * blockTokens +
           position % blockTokens * together + channel % together;
  }
  int64_t value(int64_t sequence, int64_t position, int64_t head,
                int64_t channel) const {
    return base(sequence, position, head, 1) +
           position % blockTokens * shape.headDim + channel;
  }
  /// Where the blocks of `sequence` begin among those of all.
  int64_t firstBlock(int64_t sequence) const { return firstBlocks[sequence]; }
  /// Where the keys and values of a position go.
  int64_t slot(int64_t sequence, int64_t position) const {
    return block(sequence, position) * blockTokens + position % blockTokens;
  }
  void describe(ProgramBuffers &buffers) {
    buffers.cache = memory.data();
    buffers.blockTables = tables;
  }

  int64_t size() const {
    return blocks * CacheShape::layers * shape.heads * 2 * shape.headDim *
           blockTokens;
  }

  Elements elements;

private:
  int64_t block(int64_t sequence, int64_t position) const {
    return tables[firstBlocks[sequence] + position / blockTokens];
  }
  int64_t base(int64_t sequence, int64_t position, int64_t head,
               int64_t part) const {
    int64_t slice =
        block(sequence, position) * CacheShape::layers + CacheShape::layer;
    return ((slice * shape.heads + head) * 2 + part) * shape.headDim *
           blockTokens;
  }

  CacheShape shape;
  /// One more than there are sequences.
  std::vector<int64_t> firstBlocks;
  int64_t blocks;
  AlignedBytes memory;
  std::vector<int32_t> tables;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CONVERSION_TESTMEMORY_H
