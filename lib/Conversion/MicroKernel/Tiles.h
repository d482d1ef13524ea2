//===- Tiles.h - Micro-kernels on tiles ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_TILES_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_TILES_H

#include "Emitters.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"

namespace sandwich {

/// The body of a micro-kernel of at most 2 x 2 or 1 x 5 tiles of sums, in the
/// first tiles; those of the input are behind them. The caller configured how
/// many rows they have.
class TileWriter {
public:
  TileWriter(mlir::ImplicitLocOpBuilder &builder,
             const MicroKernelSpecialization &specialization,
             const MicroKernelArguments &arguments, tile::Products products)
      : b(builder.getLoc(), builder), specialization(specialization),
        arguments(arguments), products(products),
        packing(specialization.weightPacking()),
        rowTiles(specialization.kernel.rows / tile::maxRows),
        columnTiles(specialization.kernel.columns / tileColumns),
        streamsInput(sandwich::streamsInput(specialization.streamed)),
        streamsWeight(sandwich::streamsWeight(specialization.streamed)) {}
  virtual ~TileWriter() = default;

protected:
  static constexpr int64_t tileColumns = 16;

  /// Loads the operand of row `row` of tiles, or of column `column` of them,
  /// from k `k` on of what `writeStep` is called for.
  virtual void loadInput(int64_t row, mlir::Value k) = 0;
  virtual void loadWeight(int64_t column, mlir::Value k) = 0;

  /// Multiplies the k of one instruction, and calls `between` behind each
  /// multiplication with how many there were.
  void writeStep(mlir::Value k, llvm::function_ref<void(int64_t)> between);
  int64_t multiplicationsOfStep() const { return rowTiles * columnTiles; }

  int64_t sumTile(int64_t row, int64_t column) const {
    return row * columnTiles + column;
  }
  /// The tiles of the operands of a row and of a column.
  int64_t inputTile(int64_t row) const {
    const int64_t firstInput =
        std::max(rowTiles * columnTiles, tile::firstInputTile);
    return firstInput + row % (tile::firstWeightTile - firstInput);
  }
  int64_t weightTile(int64_t column) const {
    return tile::firstWeightTile +
           column % (tile::numTiles - tile::firstWeightTile);
  }

  LoopBuilder b;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
  const tile::Products products;
  const Packing packing;
  /// Tiles of sums below and beside each other.
  const int64_t rowTiles, columnTiles;
  const bool streamsInput, streamsWeight;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_TILES_H
