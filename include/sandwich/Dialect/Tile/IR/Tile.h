//===- Tile.h - The dialect of tile registers -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TILE_IR_TILE_H
#define SANDWICH_DIALECT_TILE_IR_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include "sandwich/Dialect/Tile/IR/TileDialect.h.inc"
#include "sandwich/Dialect/Tile/IR/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Tile/IR/TileAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Tile/IR/TileOps.h.inc"

namespace sandwich::tile {

inline constexpr int64_t numTiles = 8;
/// The first tile of weights: those before it hold sums and input.
inline constexpr int64_t firstWeightTile = 6;
/// The first that holds an input where `half_inputs` makes a difference.
inline constexpr int64_t firstInputTile = 4;
/// The most rows of a tile, and all of a weight's.
inline constexpr int64_t maxRows = 16;
inline constexpr int64_t rowBytes = 64;

} // namespace sandwich::tile

#endif // SANDWICH_DIALECT_TILE_IR_TILE_H
