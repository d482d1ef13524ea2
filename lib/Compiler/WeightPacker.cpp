//===- WeightPacker.cpp - From the checkpoint to the artifact -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/WeightPacker.h"

#include "sandwich/Frontend/IntegerGroups.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

using namespace sandwich;

namespace {

/// Where a row of the joined weight comes from; no tensor for a row of zeros.
struct RowSource {
  const TensorView *tensor = nullptr;
  /// What we call it, and what its file does.
  const std::string *name = nullptr, *nameInFile = nullptr;
  /// Number of its first element in the tensor.
  int64_t element = 0;
  /// Of its columns, the rank's first one first; empty where they are alike.
  std::span<const float> importance = {};
};

/// The checkpoint's tensors that make up one slice of a rank's weight.
class Slice {
public:
  Slice(const PackedWeight &weight, int64_t rank, const Checkpoint &checkpoint,
        const ChannelImportance &channelImportance, int64_t layer)
      : weight(weight), rank(rank), checkpoint(checkpoint) {
    for (const std::string &source : weight.sources)
      names.push_back(numberLayer(source, layer));
    for (const std::string &name : names) {
      tensors.push_back(checkpoint.find(name));
      namesInFile.push_back(checkpoint.nameInFile(name));
      auto found = channelImportance.find(name);
      importance.push_back(found == channelImportance.end()
                               ? std::span<const float>()
                               : std::span(found->second));
    }
  }

  Status check() const {
    for (size_t i = 0; i < names.size(); ++i)
      if (!tensors[i])
        return makeError("tensor ", namesInFile[i], " of weight ", weight.name,
                         " is not in the checkpoint");
    return {};
  }

  RowSource source(int64_t row) const {
    if (weight.interleave) {
      int64_t group = row / *weight.interleave;
      auto count = static_cast<int64_t>(tensors.size());
      return at(group % count,
                group / count * *weight.interleave + row % *weight.interleave);
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (row < rowsOf(i))
        return at(i, row);
      row -= rowsOf(i);
    }
    return {};
  }

  /// Whether `values` of `source` are numbers that the weight can hold.
  Status checkValues(const RowSource &source,
                     std::span<const float> values) const {
    Status status =
        checkFinite(*source.nameInFile, *source.tensor, source.element, values);
    if (status && weight.storage == StorageFormat::bf16())
      status = checkFitsBFloat16(*source.nameInFile, *source.tensor,
                                 source.element, values);
    return status ? status
                  : status.error().inContext(checkpoint.pathOf(*source.name));
  }

  /// `error`, which is about the row number `row`.
  Error explain(const Error &error, int64_t row) const {
    const RowSource from = source(row);
    return error.inContext("tensor \"" + *from.nameInFile + "\"")
        .inContext(checkpoint.pathOf(*from.name));
  }

  /// A group of integers of `source`, from column `column` of the rank's on.
  Result<GroupScale> readGroup(const RowSource &source, int64_t column,
                               std::span<uint8_t> numbers) const {
    const int64_t columns = source.tensor->shape[1];
    Result<GroupScale> scale = sandwich::readGroup(
        *source.nameInFile, *source.tensor, weight.storage,
        source.element / columns, source.element % columns + column, numbers);
    if (!scale)
      return scale.error().inContext(checkpoint.pathOf(*source.name));
    return scale;
  }

private:
  /// Rows that the rank has of a tensor.
  int64_t rowsOf(size_t index) const {
    int64_t rows = tensors[index]->shape[0];
    return weight.shard == WeightShard::Rows ? rows / weight.ranks : rows;
  }

  RowSource at(size_t index, int64_t row) const {
    bool isZero = weight.shard == WeightShard::First && rank != 0;
    if (row >= rowsOf(index) || isZero)
      return {};
    if (weight.shard == WeightShard::Rows)
      row += rank * rowsOf(index);
    // The rows of a vector are single elements.
    const std::vector<int64_t> &shape = tensors[index]->shape;
    int64_t columns = shape.size() == 1 ? 1 : shape[1];
    int64_t column = weight.shard == WeightShard::Columns
                         ? rank * (columns / weight.ranks)
                         : 0;
    RowSource source = {tensors[index], &names[index], &namesInFile[index],
                        row * columns + column};
    if (!importance[index].empty())
      source.importance = importance[index].subspan(column);
    return source;
  }

  const PackedWeight &weight;
  int64_t rank;
  const Checkpoint &checkpoint;
  std::vector<std::string> names, namesInFile;
  std::vector<const TensorView *> tensors;
  std::vector<std::span<const float>> importance;
};

/// Rows `first` on of `slice`, zeros where it has none.
Status readRows(const Slice &slice, int64_t first, int64_t columns,
                std::span<float> rows) {
  for (size_t begin = 0; begin < rows.size();
       begin += static_cast<size_t>(columns), ++first) {
    std::span<float> row = rows.subspan(begin, columns);
    RowSource source = slice.source(first);
    if (!source.tensor) {
      std::ranges::fill(row, 0.0f);
      continue;
    }
    readElements(*source.tensor, source.element, row);
    SANDWICH_RETURN_IF_ERROR(slice.checkValues(source, row));
  }
  return {};
}

/// Packs panels of rows, one after another, with memory that they share.
class PanelPacker {
public:
  PanelPacker(const PackedWeight &weight, int64_t panelRows, int64_t columns)
      : storage(weight.storage), packing(weight.packing), columns(columns) {
    rows.resize(panelRows * columns);
    if (storage.isQuantized()) {
      numbers.resize(panelRows * storage.groupOf(columns));
      stored.resize(storage.groupOf(columns));
      scales.resize(panelRows);
      sources.resize(panelRows);
      hasGroups.resize(panelRows);
    }
    if (storage == StorageFormat::bf16())
      rounded.resize(rows.size());
  }

  /// Packs the rows from `first` on into `packed`, and adds to `rounding` what
  /// that did to them if they become integers.
  Status pack(const Slice &slice, int64_t first, std::span<std::byte> packed,
              RoundingSums &rounding) {
    if (storage.isQuantized())
      return packGroups(slice, first, packed, rounding);
    SANDWICH_RETURN_IF_ERROR(readRows(slice, first, columns, rows));
    if (storage == StorageFormat::bf16()) {
      roundToBFloat16(rows, rounded);
      store<uint16_t>(rounded, packed);
    } else {
      store<float>(rows, packed);
    }
    return {};
  }

private:
  template <typename Element>
  void store(std::span<const Element> elements, std::span<std::byte> packed) {
    std::span<Element> result(reinterpret_cast<Element *>(packed.data()),
                              elements.size());
    if (packing)
      packRows<Element>(*packing, columns, elements, result);
    else
      std::ranges::copy(elements, result.begin());
  }

  Status packGroups(const Slice &slice, int64_t first,
                    std::span<std::byte> packed, RoundingSums &rounding) {
    const int64_t group = storage.groupOf(columns);
    const size_t bytes = packed.size() / (columns / group);
    // Rows of floats are read but once.
    for (size_t row = 0; row < sources.size(); ++row) {
      const int64_t number = first + static_cast<int64_t>(row);
      sources[row] = slice.source(number);
      hasGroups[row] =
          sources[row].tensor && hasGroupsOf(*sources[row].tensor, storage);
      const auto values = std::span(rows).subspan(row * columns, columns);
      // Integers need no check: `readGroup` has its own.
      if (hasGroups[row])
        readElements(*sources[row].tensor, sources[row].element, values);
      else
        SANDWICH_RETURN_IF_ERROR(readRows(slice, number, columns, values));
      rounding.rounded |= sources[row].tensor && !hasGroups[row];
    }
    for (int64_t begin = 0; begin < columns; begin += group) {
      for (size_t row = 0; row < sources.size(); ++row) {
        const auto numbersOfRow =
            std::span(numbers).subspan(row * group, group);
        const auto values =
            std::span(rows).subspan(row * columns + begin, group);
        if (hasGroups[row]) {
          SANDWICH_ASSIGN_OR_RETURN(
              scales[row], slice.readGroup(sources[row], begin, numbersOfRow));
        } else {
          Result<GroupScale> scale = quantizeGroup(
              storage, values, numbersOfRow,
              sources[row].importance.empty()
                  ? std::span<const float>()
                  : sources[row].importance.subspan(begin, group));
          if (!scale)
            return slice.explain(scale.error(),
                                 first + static_cast<int64_t>(row));
          scales[row] = *scale;
        }
        addErrors(scales[row], values, numbersOfRow, rounding);
      }
      packGroup(storage, *packing, numbers, scales,
                packed.subspan(begin / group * bytes, bytes));
    }
    return {};
  }

  /// Adds what became of `values`, which are stored as `groupNumbers`.
  void addErrors(const GroupScale &scale, std::span<const float> values,
                 std::span<const uint8_t> groupNumbers,
                 RoundingSums &rounding) {
    dequantizeGroup(storage, scale, groupNumbers, stored);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i], error = stored[i] - value;
      rounding.squaredErrors += error * error;
      rounding.squares += value * value;
    }
  }

  const StorageFormat storage;
  const std::optional<Packing> packing;
  const int64_t columns;
  std::vector<float> rows;
  std::vector<uint16_t> rounded;
  std::vector<uint8_t> numbers;
  /// What the numbers of a group stand for.
  std::vector<float> stored;
  std::vector<GroupScale> scales;
  std::vector<RowSource> sources;
  /// Of which of them numbers are taken as they are.
  std::vector<bool> hasGroups;
};

/// Packs the panels of a slice from `firstPanel` on, as many as `packed` has
/// room for. The error is that of the first row that has one.
Status packPanels(const PackedWeight &weight, const Slice &slice,
                  int64_t firstPanel, int64_t panelRows, int64_t columns,
                  int64_t panelBytes, std::span<std::byte> packed,
                  RoundingSums &rounding) {
  const int64_t panels = static_cast<int64_t>(packed.size()) / panelBytes;
  std::vector<Status> statuses(panels);
  std::vector<RoundingSums> roundings(panels);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, panels),
      [&](const tbb::blocked_range<int64_t> &range) {
        PanelPacker packer(weight, panelRows, columns);
        for (int64_t panel = range.begin(); panel < range.end(); ++panel)
          statuses[panel] = packer.pack(
              slice, (firstPanel + panel) * panelRows,
              packed.subspan(panel * panelBytes, panelBytes), roundings[panel]);
      });
  // In their order, not in that in which threads were done.
  for (const RoundingSums &each : roundings)
    rounding += each;
  auto failed = std::ranges::find_if(
      statuses, [](const Status &status) { return !status; });
  return failed == statuses.end() ? Status() : std::move(*failed);
}

Status packSlice(const PackedWeight &weight, const Slice &slice,
                 const ByteSink &sink, RoundingSums &rounding) {
  // The rows of a vector are single elements.
  int64_t columns = weight.shape.size() == 1 ? 1 : weight.shape[1];
  int64_t panelRows = weight.packing ? weight.packing->panel : 1;
  int64_t panelBytes = weightBytes(weight.storage, panelRows, columns);
  int64_t panels = static_cast<int64_t>(weight.sliceBytes) / panelBytes;
  // Large pieces keep all cores busy and the number of writes down.
  constexpr int64_t pieceBytes = int64_t(16) << 20;
  int64_t piecePanels = std::clamp<int64_t>(pieceBytes / panelBytes, 1, panels);
  std::vector<std::byte> piece(piecePanels * panelBytes);
  for (int64_t first = 0; first < panels; first += piecePanels) {
    int64_t count = std::min(piecePanels, panels - first);
    std::span<std::byte> packed = std::span(piece).first(count * panelBytes);
    SANDWICH_RETURN_IF_ERROR(packPanels(weight, slice, first, panelRows,
                                        columns, panelBytes, packed, rounding));
    SANDWICH_RETURN_IF_ERROR(sink(packed));
  }
  std::vector<std::byte> padding(weight.layerStride - weight.sliceBytes);
  return sink(padding);
}

} // namespace

template <typename Element>
void sandwich::packRows(const Packing &packing, int64_t k,
                        std::span<const Element> rows,
                        std::span<Element> packed) {
  Element *next = packed.data();
  size_t panelElements = static_cast<size_t>(packing.panel * k);
  for (; !rows.empty(); rows = rows.subspan(panelElements))
    for (int64_t step = 0; step < k; step += packing.kStep)
      for (int64_t tile = 0; tile < packing.panel; tile += packing.tile)
        for (int64_t inner = 0; inner < packing.kStep; inner += packing.kPack)
          for (int64_t row = tile; row < tile + packing.tile; ++row)
            for (int64_t pack = 0; pack < packing.kPack; ++pack)
              *next++ = rows[row * k + step + inner + pack];
}
template void sandwich::packRows(const Packing &, int64_t,
                                 std::span<const uint16_t>,
                                 std::span<uint16_t>);
template void sandwich::packRows(const Packing &, int64_t,
                                 std::span<const float>, std::span<float>);
template void sandwich::packRows(const Packing &, int64_t,
                                 std::span<const uint8_t>, std::span<uint8_t>);

/// Stores `values` as `format` at `place`, which moves behind them.
static void storeScales(ScaleFormat format, std::span<const GroupScale> columns,
                        float GroupScale::*field, std::byte *&place) {
  for (const GroupScale &column : columns) {
    const float value = column.*field;
    const auto half = static_cast<_Float16>(value);
    if (format == ScaleFormat::F16)
      std::memcpy(place, &half, sizeof(half));
    else
      std::memcpy(place, &value, sizeof(value));
    place += bytesOf(format);
  }
}

void sandwich::packGroup(const StorageFormat &format, const Packing &packing,
                         std::span<const uint8_t> numbers,
                         std::span<const GroupScale> columns,
                         std::span<std::byte> packed) {
  const auto k = static_cast<int64_t>(numbers.size() / columns.size());
  auto *bytes = reinterpret_cast<uint8_t *>(packed.data());
  if (format.bits() == 8) {
    packRows<uint8_t>(packing, k, numbers, {bytes, numbers.size()});
  } else {
    std::vector<uint8_t> ordered(numbers.size());
    packRows<uint8_t>(packing, k, numbers, ordered);
    constexpr auto line = static_cast<size_t>(sharedLineBytes);
    for (size_t begin = 0; begin < ordered.size(); begin += 2 * line)
      for (size_t i = begin; i < begin + line; ++i)
        *bytes++ = static_cast<uint8_t>(ordered[i] | ordered[i + line] << 4);
  }
  std::byte *next =
      packed.data() +
      scalesOffset(format, static_cast<int64_t>(columns.size()), k);
  storeScales(format.scale, columns, &GroupScale::scale, next);
  if (format.offset == GroupOffset::Minimum)
    storeScales(format.scale, columns, &GroupScale::minimum, next);
}

RoundingSums &RoundingSums::operator+=(const RoundingSums &other) {
  squaredErrors += other.squaredErrors;
  squares += other.squares;
  rounded |= other.rounded;
  return *this;
}

double RoundingSums::relativeError() const {
  return squares == 0 ? 0 : std::sqrt(squaredErrors / squares);
}

Status sandwich::packWeight(const PackedWeight &weight, int64_t rank,
                            const Checkpoint &checkpoint,
                            const ChannelImportance &importance,
                            const ByteSink &sink,
                            std::span<RoundingSums> rounding) {
  const int64_t layers = weight.layers.value_or(1);
  assert(static_cast<int64_t>(rounding.size()) == layers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    Slice slice(weight, rank, checkpoint, importance, layer);
    SANDWICH_RETURN_IF_ERROR(slice.check());
    SANDWICH_RETURN_IF_ERROR(packSlice(weight, slice, sink, rounding[layer]));
    checkpoint.dropPages();
  }
  return {};
}
