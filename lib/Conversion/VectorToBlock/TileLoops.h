//===- TileLoops.h - Loops over tiles of any size ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds loops that go by a known number of steps and, inside of them, loops
/// over those steps, of which the last ones are fewer. How many steps are a
/// tile is then a parameter.
///
/// ```
/// for (int n = 0; n < tokens; n += 32) {
///   int size = tokens - n < 32 ? tokens - n : 32;
///   for (int j = 0; j < size; ++j)   // of n + j, and of memory at j
/// ```
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILELOOPS_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILELOOPS_H

#include "BlockLoops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sandwich::widening {

struct TileLoop {
  mlir::scf::ForOp loop;
  int64_t size = 0;
  /// What its parameter is to be called.
  std::string name;
  /// Values that are how many steps a turn has.
  llvm::SmallVector<mlir::Value> turns;
  /// Memory with a number for each step of a turn.
  llvm::SmallVector<mlir::memref::AllocaOp> memory;
};

class TileLoops {
public:
  TileLoops(mlir::func::FuncOp function, const BlockLoops &blocks);

  /// Null if `loop` is none.
  const TileLoop *find(mlir::scf::ForOp loop) const;
  /// The loop of which `value` is how many steps a turn has; null if it is none
  /// of them.
  const TileLoop *findTurn(mlir::Value value) const;
  /// The loop whose turns have a number for each step in memory; null for
  /// other memory.
  const TileLoop *findMemory(mlir::memref::AllocaOp memory) const;

private:
  llvm::SmallVector<TileLoop> loops;
};

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILELOOPS_H
