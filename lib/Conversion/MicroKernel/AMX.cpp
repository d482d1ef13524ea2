//===- AMX.cpp - AMX micro-kernels ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sandwich;

namespace {

constexpr int64_t maxTileRows = 16;
/// f32 sums or pairs of bf16 in the 64 bytes of a tile's row.
constexpr int64_t tileColumns = 16;
/// bf16 in a tile's row.
constexpr int64_t tileK = 32;

/// Tiles of sums as loop-carried values. A function that uses two shapes of
/// tiles spills them, so rows are shared out as tiles of equal height: where
/// they do not divide, the last tile starts early and computes the rows it
/// shares with its neighbour a second time, to the same sums.
class AMXEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override;
};

} // namespace

void AMXEmitter::emitBody(ImplicitLocOpBuilder &builder,
                          const MicroKernelSpecialization &specialization,
                          const MicroKernelArguments &arguments) const {
  const MicroKernel &kernel = specialization.kernel;
  Packing packing = packingOf(kernel.isa);
  int64_t rowTiles = (kernel.rows + maxTileRows - 1) / maxTileRows;
  int64_t tileRows = (kernel.rows + rowTiles - 1) / rowTiles;
  int64_t columnTiles = kernel.columns / tileColumns;
  auto sumType =
      amx::TileType::get({tileRows, tileColumns}, builder.getF32Type());
  auto inputType = amx::TileType::get({tileRows, tileK}, builder.getBF16Type());
  auto weightType =
      amx::TileType::get({tileK / 2, 2 * tileColumns}, builder.getBF16Type());

  Value input = getInputBlock(builder, kernel.rows, arguments);
  Value sumsBlock = getSumsBlock(builder, kernel, arguments);
  SmallVector<Value> panels;
  for (int64_t column = 0; column < kernel.columns; column += packing.panel)
    panels.push_back(
        getPanel(builder, packing, column / packing.panel, arguments));

  SmallVector<Value> firstRows;
  for (int64_t tile = 0; tile < rowTiles; ++tile)
    firstRows.push_back(createIndex(
        builder, std::min(tile * tileRows, kernel.rows - tileRows)));
  auto sumsPosition = [&](int64_t tile) -> SmallVector<Value> {
    return {firstRows[tile / columnTiles],
            createIndex(builder, tile % columnTiles * tileColumns)};
  };

  int64_t tiles = rowTiles * columnTiles;
  auto conditional = scf::IfOp::create(
      builder, SmallVector<Type>(tiles, sumType), arguments.accumulate,
      /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Value> loaded, zeros;
    builder.setInsertionPointToStart(conditional.thenBlock());
    for (int64_t tile = 0; tile < tiles; ++tile)
      loaded.push_back(amx::TileLoadOp::create(builder, sumType, sumsBlock,
                                               sumsPosition(tile)));
    scf::YieldOp::create(builder, loaded);
    builder.setInsertionPointToStart(conditional.elseBlock());
    for (int64_t tile = 0; tile < tiles; ++tile)
      zeros.push_back(amx::TileZeroOp::create(builder, sumType));
    scf::YieldOp::create(builder, zeros);
  }

  SmallVector<Value> carried(conditional.getResults());
  carried.push_back(arguments.prefetchOffset);
  auto loop = scf::ForOp::create(builder, createIndex(builder, 0), arguments.k,
                                 createIndex(builder, packing.kStep), carried);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    if (specialization.prefetchLines > 0)
      carried.back() =
          emitPrefetches(builder, specialization, arguments, carried.back());
    SmallVector<Value> inputs;
    for (int64_t tile = 0; tile < rowTiles; ++tile)
      inputs.push_back(amx::TileLoadOp::create(builder, inputType, input,
                                               ValueRange{firstRows[tile], k}));
    Value position =
        arith::MulIOp::create(builder, k, createIndex(builder, packing.panel));
    Value rowStride = createIndex(builder, 2 * tileColumns);
    for (int64_t column = 0; column < columnTiles; ++column) {
      int64_t first = column * tileColumns;
      Value offset = addConstant(
          builder, position, getColumnOffset(packing, first % packing.panel));
      Value weight = amx::TileLoadOp::create(builder, weightType,
                                             panels[first / packing.panel],
                                             ValueRange{offset}, rowStride);
      for (int64_t row = 0; row < rowTiles; ++row) {
        Value &sum = carried[row * columnTiles + column];
        sum =
            amx::TileMulFOp::create(builder, sumType, inputs[row], weight, sum);
      }
    }
    scf::YieldOp::create(builder, carried);
  }
  for (int64_t tile = 0; tile < tiles; ++tile)
    amx::TileStoreOp::create(builder, sumsBlock, sumsPosition(tile),
                             loop.getResult(tile));
}

const MicroKernelEmitter &sandwich::getAMXEmitter() {
  static const AMXEmitter emitter;
  return emitter;
}
