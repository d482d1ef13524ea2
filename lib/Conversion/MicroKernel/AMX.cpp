//===- AMX.cpp - AMX micro-kernels ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"
#include "WeightUnpacking.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sandwich;

void TileWriter::writeStep(Value k, function_ref<void(int64_t)> between) {
  const bool loads = !specialization.operandsStay;
  int64_t multiplications = 0;
  auto multiply = [&](int64_t row, int64_t column) {
    tile::MultiplyOp::create(b, sumTile(row, column), inputTile(row),
                             weightTile(column), products);
    between(++multiplications);
  };
  // What there are fewer of stays, the others pass.
  if (columnTiles < rowTiles) {
    for (int64_t column = 0; column < columnTiles && loads; ++column)
      loadWeight(column, k);
    for (int64_t row = 0; row < rowTiles; ++row) {
      if (loads)
        loadInput(row, k);
      for (int64_t column = 0; column < columnTiles; ++column)
        multiply(row, column);
    }
    return;
  }
  for (int64_t row = 0; row < rowTiles && loads; ++row)
    loadInput(row, k);
  for (int64_t column = 0; column < columnTiles; ++column) {
    if (loads)
      loadWeight(column, k);
    for (int64_t row = 0; row < rowTiles; ++row)
      multiply(row, column);
  }
}

namespace {

/// Sums stay in tiles for all of K.
class BF16TileWriter final : public TileWriter {
public:
  BF16TileWriter(ImplicitLocOpBuilder &builder,
                 const MicroKernelSpecialization &specialization,
                 const MicroKernelArguments &arguments)
      : TileWriter(builder, specialization, arguments, tile::Products::BF16) {}

  void write();

private:
  /// K of one multiplication: a row of the input's tile.
  static constexpr int64_t kOfStep = tile::rowBytes / 2;

  /// Calls `body` with the number, the row and the column of each tile of sums.
  void
  forSums(llvm::function_ref<void(int64_t tile, Value row, Value column)> body);
  void loadOrZeroSums();
  void loadInput(int64_t row, Value k) override;
  void loadWeight(int64_t column, Value k) override;
  /// Multiplies as `writeStep`, step by step of a round, and unpacks between
  /// multiplications what comes next.
  void writeUnpackingRound(Value k);
};

} // namespace

void BF16TileWriter::forSums(
    llvm::function_ref<void(int64_t, Value, Value)> body) {
  Value firstRow = arguments.sumsRow;
  for (int64_t row = 0; row < rowTiles; ++row) {
    for (int64_t column = 0; column < columnTiles; ++column)
      body(sumTile(row, column), firstRow,
           addConstant(b, arguments.sumsColumn, column * packing.tile));
    firstRow = arith::AddIOp::create(b, firstRow, arguments.tileRows);
  }
}

void BF16TileWriter::loadOrZeroSums() {
  auto conditional =
      scf::IfOp::create(b, arguments.accumulate, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(conditional.thenBlock());
  forSums([&](int64_t tile, Value row, Value column) {
    tile::LoadOp::create(b, tile, arguments.sums, ValueRange{row, column},
                         /*stride=*/Value(), streamsInput);
  });
  b.setInsertionPointToStart(conditional.elseBlock());
  forSums([&](int64_t tile, Value, Value) { tile::ZeroOp::create(b, tile); });
}

void BF16TileWriter::loadInput(int64_t row, Value k) {
  Value firstRow = row == 0 ? arguments.firstRow : arguments.lastTileRow;
  Value column;
  if (specialization.packedInput) {
    Value step = arith::DivUIOp::create(b, k, createIndex(b, kOfStep));
    firstRow = arith::AddIOp::create(
        b, firstRow, arith::MulIOp::create(b, step, arguments.tileRows));
    column = createIndex(b, 0);
  } else {
    column = arith::AddIOp::create(b, arguments.firstK, k);
  }
  tile::LoadOp::create(b, inputTile(row), arguments.input,
                       ValueRange{firstRow, column}, /*stride=*/Value(),
                       streamsInput);
}

void BF16TileWriter::loadWeight(int64_t column, Value k) {
  const int64_t number = weightTile(column);
  column *= packing.tile;
  Value element = arith::AddIOp::create(
      b, arguments.weightOffset,
      arith::MulIOp::create(b, k, createIndex(b, packing.panel)));
  if (int64_t panel = column / packing.panel)
    element = arith::AddIOp::create(
        b, element,
        arith::MulIOp::create(b, arguments.panelStride, createIndex(b, panel)));
  element =
      addConstant(b, element, getColumnOffset(packing, column % packing.panel));
  tile::LoadOp::create(b, number, arguments.weight, element,
                       createIndex(b, packing.tile * packing.kPack),
                       streamsWeight);
}

void BF16TileWriter::writeUnpackingRound(Value k) {
  const WeightUnpacking &unpacking = *specialization.ahead;
  UnpackingWriter writer(b, unpacking, arguments.stored, arguments.weight);
  // 32 k in a round.
  Value next =
      b.min(b.add(arguments.aheadK, b.div(k, specialization.stepsOfRound)),
            arguments.lastAheadK);
  Value group = b.add(
      arguments.storedPanel,
      b.mul(b.div(next, unpacking.group),
            groupBytes(unpacking.storage, packing.panel, unpacking.group)));
  writer.beginGroup(group);
  Value quad = b.div(b.rem(next, unpacking.group), numbersOfColumn);
  Value lines = b.add(group, b.mul(quad, writer.bytesOfQuad()));
  Value kOfCopy = b.sub(next, arguments.aheadBegin);
  const int64_t count = writer.linesOf(kOfStep);
  const int64_t multiplications =
      multiplicationsOfStep() * specialization.stepsOfRound;
  int64_t written = 0;
  for (int64_t step = 0; step < specialization.stepsOfRound; ++step)
    writeStep(b.add(k, step * kOfStep), [&](int64_t done) {
      done += step * multiplicationsOfStep();
      for (; written < count * done / multiplications; ++written) {
        if (specialization.aheadDistance > 0)
          writer.prefetchLine(lines, written, specialization.aheadDistance,
                              specialization.prefetchHint);
        writer.writeLine(lines, written, arguments.aheadPlace, kOfCopy);
      }
    });
}

void BF16TileWriter::write() {
  loadOrZeroSums();
  if (specialization.operandsStay) {
    Value zero = createIndex(b, 0);
    for (int64_t row = 0; row < rowTiles; ++row)
      loadInput(row, zero);
    for (int64_t column = 0; column < columnTiles; ++column)
      loadWeight(column, zero);
  }
  const bool prefetches = specialization.prefetchLines > 0;
  const int64_t kOfRound = kOfStep * specialization.stepsOfRound;
  SmallVector<Value> carried;
  if (prefetches)
    carried.push_back(arguments.prefetchOffset);
  auto loop = scf::ForOp::create(b, createIndex(b, 0), arguments.k,
                                 createIndex(b, kOfRound), carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    if (prefetches) {
      Prefetcher prefetcher(b, specialization, arguments,
                            loop.getRegionIterArg(0));
      writeStep(loop.getInductionVar(), [&](int64_t multiplications) {
        prefetcher.emit(prefetcher.count() * multiplications /
                        multiplicationsOfStep());
      });
      scf::YieldOp::create(b, prefetcher.next());
    } else if (specialization.ahead) {
      writeUnpackingRound(loop.getInductionVar());
    } else {
      writeStep(loop.getInductionVar(), [](int64_t) {});
    }
  }
  forSums([&](int64_t tile, Value row, Value column) {
    tile::StoreOp::create(b, tile, arguments.sums, ValueRange{row, column},
                          /*stride=*/Value());
  });
}

namespace {

class TileEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    BF16TileWriter(builder, specialization, arguments).write();
  }
  void emitInputPacking(LoopBuilder &builder, const Packing &packing,
                        const InputPiece &piece) const override;
};

} // namespace

void TileEmitter::emitInputPacking(LoopBuilder &b, const Packing &packing,
                                   const InputPiece &piece) const {
  auto type =
      VectorType::get({packing.kStep},
                      cast<MemRefType>(piece.input.getType()).getElementType());
  Value zero = b.index(0), steps = b.div(piece.k, packing.kStep);
  Value firstLine = b.div(piece.place, packing.kStep);
  b.forLoop(zero, piece.rows, 1, [&](Value row) {
    b.forLoop(zero, steps, 1, [&](Value step) {
      Value from = b.add(piece.firstK, b.mul(step, packing.kStep));
      Value line = vector::LoadOp::create(
          b, type, piece.input, ValueRange{b.add(piece.firstRow, row), from});
      Value place = b.add(b.mul(step, piece.rows), row);
      vector::StoreOp::create(b, line, piece.packed,
                              ValueRange{b.add(firstLine, place), zero});
    });
  });
}

const MicroKernelEmitter &sandwich::getAMXEmitter() {
  static const TileEmitter emitter;
  return emitter;
}
