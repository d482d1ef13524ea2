//===- BlockLoops.h - Loops whose vectors may have any width ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the loops of a function that go over neighbors in memory, some whole
/// vectors each turn, and compute what does not depend on how many there are in
/// a vector: lanes that are apart, and sums over all of them. How many is then
/// a parameter.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_BLOCKLOOPS_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_BLOCKLOOPS_H

#include "Accesses.h"
#include "IndexForm.h"
#include "Reductions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace sandwich::widening {

/// A loop over neighbors. Its turn `iv` has those from `scale * iv` on,
/// `copies` vectors of `lanes`, and the next turn those behind.
struct BlockLoop {
  mlir::scf::ForOp loop;
  int64_t lanes = 0, copies = 0, scale = 0;
  /// What a lane of each variable that the loop carries sums up.
  llvm::SmallVector<block::ReductionKind> reductions;
  /// Of each variable that one which sums up the same of the first copy; its
  /// own number, if it is of the first one.
  llvm::SmallVector<unsigned> leaders;
  /// What those of the other copies are computed by.
  llvm::DenseSet<mlir::Operation *> repetitions;
  /// The vectors that sum up, from what a turn begins with to what it ends
  /// with.
  llvm::DenseSet<mlir::Value> partialSums;
};

/// What is known of a function's loops.
class BlockLoops {
public:
  /// Looks at all loops of `function`, in which reductions are recognized.
  explicit BlockLoops(mlir::func::FuncOp function);

  /// Null if `loop` is none.
  const BlockLoop *find(mlir::scf::ForOp loop) const;
  /// Whether `value`, a vector outside of such loops, is known by the sum of
  /// its lanes alone, and which kind of sum that is.
  std::optional<block::ReductionKind> sumOf(mlir::Value value) const;

private:
  /// Finds the vectors outside of loops that are known by sums. Nothing, if all
  /// are used as such; else a loop that they come from.
  std::optional<mlir::scf::ForOp> findSums();
  std::optional<mlir::scf::ForOp> propagate(mlir::Value value);
  bool mayBegin(block::ReductionKind kind, mlir::Value value) const;

  llvm::MapVector<mlir::Operation *, BlockLoop> loops;
  struct Sum {
    block::ReductionKind kind;
    mlir::scf::ForOp origin;
  };
  llvm::MapVector<mlir::Value, Sum> sums;
};

/// Whether all lanes of `vector` are the same: it repeats a number, or is
/// computed of such vectors lane by lane.
bool isUniform(mlir::Value vector);
/// Whether `op` compares what combinations then choose from, and nothing else
/// uses it.
bool onlyChooses(mlir::Operation *op);

/// `added` becomes a part of `sum` where `mask` holds.
struct MaskedStep {
  block::ReductionKind kind;
  mlir::Value sum, added, mask;
};
std::optional<MaskedStep> findMaskedStep(mlir::Operation *op);

/// Whether `op` computes each lane of its result of those at the same place.
bool isElementwise(mlir::Operation *op);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_BLOCKLOOPS_H
