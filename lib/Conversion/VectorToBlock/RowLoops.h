//===- RowLoops.h - Loops that may do several turns at once -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds loops whose turns are apart, but for sums: how many of them are done
/// at once, as rows of blocks, is then a parameter, 1 as it was written.
///
/// ```
/// for (int j = 0; j < size; ++j) {
///   score[j] = sum(...keys at 64 * j + v...);   // neighbors of rows
///   largest = score[j] > largest ? score[j] : largest;
/// ```
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ROWLOOPS_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ROWLOOPS_H

#include "Matrices.h"
#include "TileLoops.h"

namespace sandwich::widening {

struct RowLoop {
  mlir::scf::ForOp loop;
  /// Numbers and vectors that each turn has its own of.
  llvm::DenseSet<mlir::Value> perRow;
  /// What each variable of the loop sums up, and its steps.
  llvm::SmallVector<block::ReductionKind> reductions;
  llvm::DenseSet<mlir::Value> partialSums;
  /// Steps of sums that are kept in memory: what is read, and becomes larger.
  llvm::DenseMap<mlir::Operation *, mlir::Value> memorySums;
};

class RowLoops {
public:
  RowLoops(mlir::func::FuncOp function, const BlockLoops &blocks,
           const TileLoops &tiles, const Matrices &matrices);

  /// Null if `loop` is none.
  const RowLoop *find(mlir::scf::ForOp loop) const;

private:
  llvm::MapVector<mlir::Operation *, RowLoop> loops;
};

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_ROWLOOPS_H
