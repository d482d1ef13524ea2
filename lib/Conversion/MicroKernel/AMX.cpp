//===- AMX.cpp - AMX micro-kernels ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// What tiles of one element type hold and how they multiply; another type is
/// another one of these.
struct TileElements {
  tile::Products products;
  int64_t operandBytes;

  /// K of one multiplication: a row of the input's tile.
  int64_t k() const { return tile::rowBytes / operandBytes; }
};

/// The body of a micro-kernel of at most 2 x 2 or 1 x 5 tiles of sums, in the
/// first tiles; those of the input follow them. The caller configured how many
/// rows they have.
class TileWriter {
public:
  TileWriter(ImplicitLocOpBuilder &builder,
             const MicroKernelSpecialization &specialization,
             const MicroKernelArguments &arguments, TileElements elements);

  void write();

private:
  int64_t sumTile(int64_t row, int64_t column) const {
    return row * columnTiles + column;
  }
  /// Calls `body` with the number, the row and the column of each tile of sums.
  void
  forSums(llvm::function_ref<void(int64_t tile, Value row, Value column)> body);
  void loadOrZeroSums();
  void writeStep(Value k, Prefetcher *prefetcher);
  /// The tiles of the operands of a row and of a column.
  int64_t inputTile(int64_t row) const {
    const int64_t firstInput = rowTiles * columnTiles;
    return firstInput + row % (tile::firstWeightTile - firstInput);
  }
  int64_t weightTile(int64_t column) const {
    return tile::firstWeightTile +
           column % (tile::numTiles - tile::firstWeightTile);
  }
  void loadInput(int64_t row, Value k);
  void loadWeight(int64_t column, Value k);

  ImplicitLocOpBuilder &builder;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
  const TileElements elements;
  const Packing packing;
  /// Tiles of sums below and beside each other.
  const int64_t rowTiles, columnTiles;
  bool streamsInput, streamsWeight;
};

} // namespace

TileWriter::TileWriter(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments,
                       TileElements elements)
    : builder(builder), specialization(specialization), arguments(arguments),
      elements(elements), packing(specialization.weightPacking()),
      rowTiles(specialization.kernel.rows / tile::maxRows),
      columnTiles(specialization.kernel.columns / packing.tile),
      streamsInput(sandwich::streamsInput(specialization.streamed)),
      streamsWeight(sandwich::streamsWeight(specialization.streamed)) {}

void TileWriter::forSums(llvm::function_ref<void(int64_t, Value, Value)> body) {
  Value firstRow = arguments.sumsRow;
  for (int64_t row = 0; row < rowTiles; ++row) {
    for (int64_t column = 0; column < columnTiles; ++column)
      body(sumTile(row, column), firstRow,
           addConstant(builder, arguments.sumsColumn, column * packing.tile));
    firstRow = arith::AddIOp::create(builder, firstRow, arguments.tileRows);
  }
}

void TileWriter::loadOrZeroSums() {
  auto conditional =
      scf::IfOp::create(builder, arguments.accumulate, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(conditional.thenBlock());
  forSums([&](int64_t tile, Value row, Value column) {
    tile::LoadOp::create(builder, tile, arguments.sums, ValueRange{row, column},
                         /*stride=*/Value(), streamsInput);
  });
  builder.setInsertionPointToStart(conditional.elseBlock());
  forSums(
      [&](int64_t tile, Value, Value) { tile::ZeroOp::create(builder, tile); });
}

void TileWriter::loadInput(int64_t row, Value k) {
  Value firstRow = row == 0 ? arguments.firstRow : arguments.lastTileRow;
  Value column;
  if (specialization.packedInput) {
    Value step =
        arith::DivUIOp::create(builder, k, createIndex(builder, elements.k()));
    firstRow = arith::AddIOp::create(
        builder, firstRow,
        arith::MulIOp::create(builder, step, arguments.tileRows));
    column = createIndex(builder, 0);
  } else {
    column = arith::AddIOp::create(builder, arguments.firstK, k);
  }
  tile::LoadOp::create(builder, inputTile(row), arguments.input,
                       ValueRange{firstRow, column}, /*stride=*/Value(),
                       streamsInput);
}

void TileWriter::loadWeight(int64_t column, Value k) {
  const int64_t number = weightTile(column);
  column *= packing.tile;
  Value element = arith::AddIOp::create(
      builder, arguments.weightOffset,
      arith::MulIOp::create(builder, k, createIndex(builder, packing.panel)));
  if (int64_t panel = column / packing.panel)
    element = arith::AddIOp::create(
        builder, element,
        arith::MulIOp::create(builder, arguments.panelStride,
                              createIndex(builder, panel)));
  element = addConstant(builder, element,
                        getColumnOffset(packing, column % packing.panel));
  tile::LoadOp::create(builder, number, arguments.weight, element,
                       createIndex(builder, packing.tile * packing.kPack),
                       streamsWeight);
}

/// Multiplies the k of one instruction, prefetching between multiplications.
void TileWriter::writeStep(Value k, Prefetcher *prefetcher) {
  const bool loads = !specialization.operandsStay;
  const int64_t count = rowTiles * columnTiles;
  int64_t multiplications = 0;
  auto multiply = [&](int64_t row, int64_t column) {
    tile::MultiplyOp::create(builder, sumTile(row, column), inputTile(row),
                             weightTile(column), elements.products);
    ++multiplications;
    if (prefetcher)
      prefetcher->emit(prefetcher->count() * multiplications / count);
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

void TileWriter::write() {
  loadOrZeroSums();
  if (specialization.operandsStay) {
    Value zero = createIndex(builder, 0);
    for (int64_t row = 0; row < rowTiles; ++row)
      loadInput(row, zero);
    for (int64_t column = 0; column < columnTiles; ++column)
      loadWeight(column, zero);
  }
  const bool prefetches = specialization.prefetchLines > 0;
  SmallVector<Value> carried;
  if (prefetches)
    carried.push_back(arguments.prefetchOffset);
  auto loop = scf::ForOp::create(builder, createIndex(builder, 0), arguments.k,
                                 createIndex(builder, elements.k()), carried);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    if (prefetches) {
      Prefetcher prefetcher(builder, specialization, arguments,
                            loop.getRegionIterArg(0));
      writeStep(loop.getInductionVar(), &prefetcher);
      scf::YieldOp::create(builder, prefetcher.next());
    } else {
      writeStep(loop.getInductionVar(), nullptr);
    }
  }
  forSums([&](int64_t tile, Value row, Value column) {
    tile::StoreOp::create(builder, tile, arguments.sums,
                          ValueRange{row, column},
                          /*stride=*/Value());
  });
}

namespace {

class TileEmitter final : public MicroKernelEmitter {
public:
  explicit TileEmitter(TileElements elements) : elements(elements) {}

  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    TileWriter(builder, specialization, arguments, elements).write();
  }
  void emitInputPacking(LoopBuilder &builder, const Packing &packing,
                        const InputPiece &piece) const override;

private:
  const TileElements elements;
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
  static const TileEmitter emitter(
      {.products = tile::Products::BF16, .operandBytes = 2});
  return emitter;
}
