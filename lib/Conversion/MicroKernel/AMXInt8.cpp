//===- AMXInt8.cpp - AMX micro-kernels of integers ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"
#include "Tiles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Tiles sum the products of a group exactly, in i32, and are then stored to a
/// buffer in L1, from where vectors scale them and add them to the sums in f32
/// while tiles multiply the next group. To scale a tile takes as long as to
/// multiply about 128 k, so that many rows gain in long groups only. All is
/// rounded as by vectors of integers.
class IntegerTileWriter final : public TileWriter {
public:
  IntegerTileWriter(ImplicitLocOpBuilder &builder,
                    const MicroKernelSpecialization &specialization,
                    const MicroKernelArguments &arguments)
      : TileWriter(builder, specialization, arguments, tile::Products::I8U8),
        storage(specialization.storage), group(specialization.group),
        kOfStep(kOfIntegerTiles(group)) {}

  void write();

private:
  /// Where a group lies: the bytes at which its rows of each tile and its
  /// numbers of each panel begin, and the first row of its sums of products.
  struct Group {
    SmallVector<Value> rows, panels;
    Value firstSum;
  };
  /// Group `number` of those that the call is for.
  Group groupAt(Value number);
  void multiply(const Group &place);
  void scale(const Group &place);
  /// Rows of the sums of a group, of all tiles.
  int64_t rowsOfSums() const { return rowTiles * columnTiles * tile::maxRows; }
  /// Sets the sums to zero, where the call does not add to them.
  void beginSums();
  /// The row of the sums that row `row` of the tile of rows `rowTile` has.
  Value sumsRow(int64_t rowTile, Value row);
  Value sumsColumn(int64_t column) {
    return b.add(arguments.sumsColumn, column * tileColumns);
  }
  void loadInput(int64_t row, Value k) override;
  void loadWeight(int64_t column, Value k) override;
  /// Prefetches what lies ahead of the numbers of a step, and of the group's
  /// scales.
  void prefetchNumbers(Value k);
  void prefetchScales();
  /// Prefetches `lines` lines of each panel, `distance` bytes ahead of byte
  /// `offset` of the group.
  void prefetchPanels(Value distance, Value offset, int64_t lines);

  /// The bytes from `place` of `buffer` on as a vector of `type`.
  Value loadBytes(VectorType type, Value buffer, ValueRange place);
  /// In all lanes the word of row `row` of those that begin at byte `begin`.
  Value broadcastWord(Type type, Value begin, Value row);
  /// The scales of the columns of tile `column`.
  Value loadScales(const Group &from, int64_t column);

  const StorageFormat storage;
  const int64_t group;
  /// K of one multiplication: the bytes of a row of the input's tile.
  const int64_t kOfStep;
  /// Sums of two groups, one tile behind the other.
  Value groupSums;
  /// The group that is multiplied.
  Group current;
};

} // namespace

void IntegerTileWriter::write() {
  auto function = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  groupSums =
      b.scratch(function, {2 * rowsOfSums(), tileColumns}, b.getI32Type());
  beginSums();
  Value first = b.index(0), second = b.index(1);
  if (specialization.operandsStay) {
    current = groupAt(first);
    for (int64_t row = 0; row < rowTiles; ++row)
      loadInput(row, first);
    for (int64_t column = 0; column < columnTiles; ++column)
      loadWeight(column, first);
  }
  // Vectors read what tiles stored for the group before, which is in L1 by
  // then, while tiles multiply.
  Value groups = b.div(arguments.k, group);
  Value hasGroups =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, groups, first);
  b.ifThen(hasGroups, [&] {
    multiply(groupAt(first));
    b.forLoop(second, groups, 1, [&](Value number) {
      multiply(groupAt(number));
      scale(groupAt(b.sub(number, second)));
    });
    scale(groupAt(b.sub(groups, second)));
  });
}

IntegerTileWriter::Group IntegerTileWriter::groupAt(Value number) {
  Group place;
  Value rowsBefore = b.mul(number, packedGroupLength(group) * tile::maxRows);
  for (int64_t row = 0; row < rowTiles; ++row)
    place.rows.push_back(
        b.add(row == 0 ? arguments.firstK : arguments.lastTileRow, rowsBefore));
  Value numbersBefore =
      b.mul(number, groupBytes(storage, packing.panel, group));
  const int64_t columns = specialization.kernel.columns;
  for (int64_t panel = 0; panel < columns / packing.panel; ++panel)
    place.panels.push_back(b.add(
        b.add(arguments.weightOffset, b.mul(arguments.panelStride, panel)),
        numbersBefore));
  place.firstSum = b.mul(b.rem(number, 2), rowsOfSums());
  return place;
}

void IntegerTileWriter::multiply(const Group &place) {
  current = place;
  for (int64_t tile = 0; tile < rowTiles * columnTiles; ++tile)
    tile::ZeroOp::create(b, tile);
  b.forLoop(b.index(0), b.index(group), kOfStep, [&](Value k) {
    writeStep(k, [&](int64_t multiplications) {
      if (multiplications == multiplicationsOfStep())
        prefetchNumbers(k);
    });
  });
  for (int64_t tile = 0; tile < rowTiles * columnTiles; ++tile)
    tile::StoreOp::create(
        b, tile, groupSums,
        ValueRange{b.add(place.firstSum, tile * tile::maxRows), b.index(0)},
        /*stride=*/Value());
  prefetchScales();
}

void IntegerTileWriter::loadInput(int64_t row, Value k) {
  Value step = b.mul(k, tile::maxRows);
  tile::LoadOp::create(b, inputTile(row), arguments.input,
                       ValueRange{b.index(0), b.add(current.rows[row], step)},
                       b.index(kOfStep), streamsInput);
}

void IntegerTileWriter::loadWeight(int64_t column, Value k) {
  const int64_t inPanel = column * tileColumns % packing.panel;
  Value byte = b.add(current.panels[column * tileColumns / packing.panel],
                     b.mul(k, packing.panel));
  tile::LoadOp::create(b, weightTile(column), arguments.weight,
                       b.add(byte, inPanel * numbersOfWord),
                       b.index(packing.panel * numbersOfWord), streamsWeight);
}

void IntegerTileWriter::prefetchPanels(Value distance, Value offset,
                                       int64_t lines) {
  for (Value panel : current.panels) {
    Value ahead = b.add(b.add(panel, offset), distance);
    for (int64_t line = 0; line < lines; ++line)
      memref::PrefetchOp::create(
          b, arguments.weight, ValueRange{b.add(ahead, line * cacheLineBytes)},
          /*isWrite=*/false, localityOf(specialization.prefetchHint),
          /*isDataCache=*/true);
  }
}

void IntegerTileWriter::prefetchNumbers(Value k) {
  if (specialization.prefetchLines == 0)
    return;
  Value distance = b.sub(arguments.prefetchOffset, arguments.weightOffset);
  for (int64_t round = 0; round < kOfStep / smallestGroup; ++round)
    prefetchPanels(distance,
                   b.mul(b.add(k, round * smallestGroup), packing.panel),
                   specialization.prefetchLines);
}

void IntegerTileWriter::prefetchScales() {
  if (specialization.prefetchLines == 0)
    return;
  const int64_t scales = scalesOffset(storage, packing.panel, group);
  const int64_t bytes = groupBytes(storage, packing.panel, group);
  prefetchPanels(arguments.prefetchStride, b.index(scales),
                 llvm::divideCeil(bytes - scales, cacheLineBytes));
}

Value IntegerTileWriter::loadBytes(VectorType type, Value buffer,
                                   ValueRange place) {
  const int64_t bytes =
      type.getNumElements() * type.getElementTypeBitWidth() / 8;
  Value loaded = vector::LoadOp::create(
      b, VectorType::get({bytes}, b.getI8Type()), buffer, place);
  return vector::BitCastOp::create(b, type, loaded);
}

Value IntegerTileWriter::broadcastWord(Type type, Value begin, Value row) {
  Value place = b.add(begin, b.mul(row, wordBytes));
  Value word = loadBytes(VectorType::get({1}, type), arguments.input,
                         ValueRange{b.index(0), place});
  return vector::BroadcastOp::create(
      b, VectorType::get({tileColumns}, type),
      vector::ExtractOp::create(b, word, ArrayRef<int64_t>{0}));
}

Value IntegerTileWriter::loadScales(const Group &from, int64_t column) {
  const int64_t inPanel = column * tileColumns % packing.panel;
  const int64_t offset = scalesOffset(storage, packing.panel, group) +
                         inPanel * bytesOf(storage.scale);
  Value place =
      b.add(from.panels[column * tileColumns / packing.panel], offset);
  auto type = VectorType::get({tileColumns}, b.getF32Type());
  if (storage.scale == ScaleFormat::F32)
    return loadBytes(type, arguments.weight, place);
  Value halves = loadBytes(VectorType::get({tileColumns}, b.getF16Type()),
                           arguments.weight, place);
  return arith::ExtFOp::create(b, type, halves);
}

Value IntegerTileWriter::sumsRow(int64_t rowTile, Value row) {
  return b.add(b.add(arguments.sumsRow, b.mul(arguments.tileRows, rowTile)),
               row);
}

void IntegerTileWriter::beginSums() {
  Value none = b.splat(0.0F, tileColumns);
  Value begins = arith::XOrIOp::create(b, arguments.accumulate,
                                       arith::ConstantIntOp::create(b, 1, 1));
  b.ifThen(begins, [&] {
    b.forLoop(b.index(0), arguments.tileRows, 1, [&](Value row) {
      for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile)
        for (int64_t column = 0; column < columnTiles; ++column)
          vector::StoreOp::create(
              b, none, arguments.sums,
              ValueRange{sumsRow(rowTile, row), sumsColumn(column)});
    });
  });
}

void IntegerTileWriter::scale(const Group &place) {
  const int64_t startsOffset = tile::maxRows * group;
  const int64_t scalesOfRowsOffset = startsOffset + tile::maxRows * wordBytes;
  auto words = VectorType::get({tileColumns}, b.getI32Type());
  auto floats = VectorType::get({tileColumns}, b.getF32Type());
  SmallVector<Value> scales;
  for (int64_t column = 0; column < columnTiles; ++column)
    scales.push_back(loadScales(place, column));
  b.forLoop(b.index(0), arguments.tileRows, 1, [&](Value row) {
    for (int64_t rowTile = 0; rowTile < rowTiles; ++rowTile) {
      Value begin = place.rows[rowTile];
      Value start =
          broadcastWord(b.getI32Type(), b.add(begin, startsOffset), row);
      Value scaleOfRow =
          broadcastWord(b.getF32Type(), b.add(begin, scalesOfRowsOffset), row);
      for (int64_t column = 0; column < columnTiles; ++column) {
        Value firstRow =
            b.add(place.firstSum, sumTile(rowTile, column) * tile::maxRows);
        Value sum = vector::LoadOp::create(
            b, words, groupSums, ValueRange{b.add(row, firstRow), b.index(0)});
        sum = arith::AddIOp::create(b, sum, start);
        Value product =
            b.mulf(arith::SIToFPOp::create(b, floats, sum), scaleOfRow);
        const Value total[] = {sumsRow(rowTile, row), sumsColumn(column)};
        Value before = vector::LoadOp::create(b, floats, arguments.sums, total);
        vector::StoreOp::create(b, b.fma(product, scales[column], before),
                                arguments.sums, total);
      }
    }
  });
}

namespace {

class IntegerTileEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    IntegerTileWriter(builder, specialization, arguments).write();
  }
  void emitInputPacking(LoopBuilder &builder, const Packing & /*packing*/,
                        const InputPiece &piece) const override {
    emitRounding(builder, piece, /*extractedOffset=*/0, RoundedRows::Tile);
  }
};

} // namespace

const MicroKernelEmitter &sandwich::getAMXInt8Emitter() {
  static const IntegerTileEmitter emitter;
  return emitter;
}
