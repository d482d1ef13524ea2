//===- WeightPacker.cpp - From the checkpoint to the artifact -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/WeightPacker.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>

using namespace sandwich;

namespace {

/// Where a row of the joined weight comes from; no tensor for a row of zeros.
struct RowSource {
  const TensorView *tensor = nullptr;
  const std::string *name = nullptr;
  /// Number of its first element in the tensor.
  int64_t element = 0;
};

/// The checkpoint's tensors that make up one slice of a rank's weight.
class Slice {
public:
  Slice(const PackedWeight &weight, int64_t rank, const Checkpoint &checkpoint,
        int64_t layer)
      : weight(weight), rank(rank), checkpoint(checkpoint) {
    for (const std::string &source : weight.sources)
      names.push_back(numberLayer(source, layer));
    for (const std::string &name : names)
      tensors.push_back(checkpoint.find(name));
  }

  Status check() const {
    for (size_t i = 0; i < names.size(); ++i)
      if (!tensors[i])
        return makeError("tensor ", names[i], " of weight ", weight.name,
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
        checkFinite(*source.name, *source.tensor, source.element, values);
    if (status && weight.bf16)
      status = checkFitsBFloat16(*source.name, *source.tensor, source.element,
                                 values);
    return status ? status
                  : status.error().inContext(checkpoint.pathOf(*source.name));
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
    return {tensors[index], &names[index], row * columns + column};
  }

  const PackedWeight &weight;
  int64_t rank;
  const Checkpoint &checkpoint;
  std::vector<std::string> names;
  std::vector<const TensorView *> tensors;
};

/// Rows `first` on of `slice` in the element type the weight is stored in.
template <typename Element>
Status readRows(const Slice &slice, int64_t first, int64_t columns,
                std::vector<float> &scratch, std::span<Element> rows) {
  for (size_t begin = 0; begin < rows.size();
       begin += static_cast<size_t>(columns), ++first) {
    std::span<Element> row = rows.subspan(begin, columns);
    RowSource source = slice.source(first);
    if (!source.tensor) {
      std::fill(row.begin(), row.end(), Element(0));
      continue;
    }
    readElements(*source.tensor, source.element, scratch);
    SANDWICH_RETURN_IF_ERROR(slice.checkValues(source, scratch));
    if constexpr (std::is_same_v<Element, float>)
      std::copy(scratch.begin(), scratch.end(), row.begin());
    else
      roundToBFloat16(scratch, row);
  }
  return {};
}

/// Packs `panels` panels of a slice, the first at row `firstRow`, into
/// `packed`. The error is that of the first row that has one.
template <typename Element>
Status packPanels(const PackedWeight &weight, const Slice &slice,
                  int64_t firstRow, int64_t panels, int64_t panelRows,
                  int64_t columns, std::span<Element> packed) {
  std::vector<Status> statuses(panels);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, panels),
      [&](const tbb::blocked_range<int64_t> &range) {
        std::vector<float> scratch(columns);
        std::vector<Element> rows(panelRows * columns);
        for (int64_t panel = range.begin(); panel < range.end(); ++panel) {
          std::span<Element> result =
              packed.subspan(panel * rows.size(), rows.size());
          statuses[panel] =
              readRows<Element>(slice, firstRow + panel * panelRows, columns,
                                scratch, weight.packing ? rows : result);
          if (weight.packing)
            packRows<Element>(*weight.packing, columns, rows, result);
        }
      });
  auto failed = std::ranges::find_if(
      statuses, [](const Status &status) { return !status; });
  return failed == statuses.end() ? Status() : std::move(*failed);
}

template <typename Element>
Status packSlice(const PackedWeight &weight, const Slice &slice,
                 const ByteSink &sink) {
  // The rows of a vector are single elements.
  int64_t columns = weight.shape.size() == 1 ? 1 : weight.shape[1];
  int64_t panelRows = weight.packing ? weight.packing->panel : 1;
  int64_t panelElements = panelRows * columns;
  int64_t panels =
      static_cast<int64_t>(weight.sliceBytes / sizeof(Element)) / panelElements;
  // Large pieces keep all cores busy and the number of writes down.
  constexpr int64_t pieceElements = int64_t(4) << 20;
  int64_t piecePanels =
      std::clamp<int64_t>(pieceElements / panelElements, 1, panels);
  std::vector<Element> piece(piecePanels * panelElements);
  for (int64_t first = 0; first < panels; first += piecePanels) {
    int64_t count = std::min(piecePanels, panels - first);
    std::span<Element> packed = std::span(piece).first(count * panelElements);
    SANDWICH_RETURN_IF_ERROR(packPanels<Element>(
        weight, slice, first * panelRows, count, panelRows, columns, packed));
    SANDWICH_RETURN_IF_ERROR(sink(std::as_bytes(packed)));
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

Status sandwich::packWeight(const PackedWeight &weight, int64_t rank,
                            const Checkpoint &checkpoint,
                            const ByteSink &sink) {
  for (int64_t layer = 0; layer < weight.layers.value_or(1); ++layer) {
    Slice slice(weight, rank, checkpoint, layer);
    SANDWICH_RETURN_IF_ERROR(slice.check());
    SANDWICH_RETURN_IF_ERROR(weight.bf16
                                 ? packSlice<uint16_t>(weight, slice, sink)
                                 : packSlice<float>(weight, slice, sink));
  }
  return {};
}
