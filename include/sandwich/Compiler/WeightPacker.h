//===- WeightPacker.h - From the checkpoint to the artifact -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMPILER_WEIGHTPACKER_H
#define SANDWICH_COMPILER_WEIGHTPACKER_H

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Quantization/ChannelImportance.h"
#include "sandwich/Quantization/Quantizer.h"
#include "sandwich/Scheduling/Schedule.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandwich {

/// What a rank has of the sources of a weight (see `#lm.shard`).
enum class WeightShard : uint8_t { Whole, Rows, Columns, First };

/// One weight of the artifact, as `lm.weight` describes it.
struct PackedWeight {
  std::string name;
  StorageFormat storage;
  /// Logical shape of one rank's slice, one or two dimensions.
  std::vector<int64_t> shape;
  /// Slices; nothing for a weight outside the layers.
  std::optional<int64_t> layers;
  /// Tensors of the checkpoint; "{}" stands for the layer.
  std::vector<std::string> sources;
  /// Rows that alternate between the sources; nothing to concatenate them.
  std::optional<int64_t> interleave;
  WeightShard shard = WeightShard::Whole;
  /// Ranks that `shard` divides the sources among.
  int64_t ranks = 1;
  /// Nothing for row-major.
  std::optional<Packing> packing;
  uint64_t offset = 0;
  /// Bytes of a slice, and from one slice to the next.
  uint64_t sliceBytes = 0, layerStride = 0;
};

/// Moves whole panels of `rows`, [panels * panel][k], to their packing,
/// [panels][k/kStep][panel/tile][kStep/kPack][tile][kPack]. Elements are
/// uint16_t for bf16, float, or uint8_t for what `packGroup` packs; `k` is a
/// multiple of the packing's step.
template <typename Element>
void packRows(const Packing &packing, int64_t k, std::span<const Element> rows,
              std::span<Element> packed);

/// Puts one group of `format` of the columns of a panel into `packed`, which
/// has `groupBytes`: `numbers`, [panel][k], in the order of `packing`, and what
/// `columns` have in common.
void packGroup(const StorageFormat &format, const Packing &packing,
               std::span<const uint8_t> numbers,
               std::span<const GroupScale> columns,
               std::span<std::byte> packed);

/// Receives consecutive pieces of a weight.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

/// What storing values of one layer of a weight as integers has done to them.
struct RoundingSums {
  /// Of the differences, and of the values.
  double squaredErrors = 0, squares = 0;
  /// Some were rounded, and not integers of the checkpoint that were taken as
  /// they are.
  bool rounded = false;

  RoundingSums &operator+=(const RoundingSums &other);
  /// The root mean square of the differences over that of the values; 0 where
  /// all values are.
  double relativeError() const;
};

/// Writes every slice of what `rank` has of `weight` to `sink`, `layerStride`
/// bytes each. Holds one panel of rows in memory at a time, and reads no more
/// of the sources. Where the weight is of integers, adds to `rounding`, one for
/// each layer, the same bits whatever the number of threads, and rounding
/// spares the columns that `importance` says. Errors: a value that is not
/// finite, or what `sink` returns.
Status packWeight(const PackedWeight &weight, int64_t rank,
                  const Checkpoint &checkpoint,
                  const ChannelImportance &importance, const ByteSink &sink,
                  std::span<RoundingSums> rounding);

} // namespace sandwich

#endif // SANDWICH_COMPILER_WEIGHTPACKER_H
