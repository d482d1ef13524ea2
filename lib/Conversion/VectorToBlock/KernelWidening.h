//===- KernelWidening.h - One function becomes a kernel ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes a function of vectors again as a kernel of dialect block. Loops over
/// neighbors (BlockLoops.h) go by blocks whose size is a parameter; what they
/// sum up is one number behind them. So is the size of tiles (TileLoops.h), and
/// how many turns of other loops are done at once (RowLoops.h). All other
/// vectors become blocks of as many numbers as they had lanes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H

#include "BlockLoops.h"
#include "RowLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringSet.h"

namespace sandwich::widening {

class KernelWidening {
public:
  /// Of `function`, in which reductions are recognized.
  explicit KernelWidening(mlir::func::FuncOp function)
      : function(function), loops(function), tiles(function, loops),
        matrices(function, loops), rowLoops(function, loops, tiles, matrices),
        b(function.getLoc(), function) {}

  /// The kernel, before the function; a warning says at which operation it
  /// stops.
  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  //===--------------------------------------------------------------------===//
  // Signature
  //===--------------------------------------------------------------------===//

  void makeKernel();
  /// How many numbers vectors have here: a parameter in a block loop.
  block::SizeAttr lanesOf(mlir::Type vector);
  /// How many turns of a row loop are done at once.
  block::SizeAttr rowsOf();
  block::SizeAttr sizeOf(const TileLoop &tile);
  std::string uniqueName(llvm::StringRef wanted);

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  mlir::Value mapped(mlir::Value value) const { return mapping.lookup(value); }
  void map(mlir::Value value, mlir::Value made) { mapping[value] = made; }
  mlir::Value number(mlir::TypedAttr value) {
    return mlir::arith::ConstantOp::create(b, value);
  }
  mlir::Value form(const IndexForm &form);
  mlir::Value index(mlir::Value value) { return form(indexFormOf(value)); }
  /// Of one term of a form.
  mlir::Value termIndex(mlir::Value value);
  /// Whether `value` becomes a block that has lanes.
  bool hasLanes(mlir::Value value) const;
  /// The sizes that `value` has here as a block: rows, lanes, or none.
  llvm::SmallVector<block::SizeAttr> sizesOf(mlir::Value value);
  mlir::Type typeOf(mlir::Value value);
  /// What `value` is made into; of a uniform vector, the number that it
  /// repeats.
  mlir::Value repeated(mlir::Value value);
  /// What has been made repeated along those of `sizes` that it has not; null
  /// stays null.
  mlir::Value adapt(mlir::Value made, bool hasLanes,
                    llvm::ArrayRef<block::SizeAttr> sizes);
  mlir::Value as(mlir::Value value, llvm::ArrayRef<block::SizeAttr> sizes);
  /// All numbers of a block, or those of each row or of each lane, as one.
  mlir::Value reduce(block::ReductionKind kind, mlir::Value made, bool isByRow);
  /// What all lanes of `vector` become together.
  mlir::Value sum(block::ReductionKind kind, mlir::Value vector);
  mlir::Value combineSums(block::ReductionKind kind, mlir::Value lhs,
                          mlir::Value rhs);
  mlir::Value whereInside(mlir::Value made, mlir::Value other);
  mlir::Value whereRows(block::ReductionKind kind, mlir::Value made);
  /// `op` with other operands and another type.
  mlir::Value rebuild(mlir::Operation *op, mlir::ValueRange operands,
                      mlir::Type type);
  /// `op`, of blocks of `sizes`, as that which `result` becomes.
  mlir::Value rebuild(mlir::Operation *op,
                      llvm::ArrayRef<block::SizeAttr> sizes,
                      mlir::Value result);

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  llvm::LogicalResult emitBlock(mlir::Block &block);
  /// Emits `op`, and gives what it becomes its name.
  llvm::LogicalResult emitNamed(mlir::Operation *op);
  llvm::LogicalResult emit(mlir::Operation *op);
  llvm::LogicalResult emitElementwise(mlir::Operation *op);
  /// A step of a sum in a block loop.
  llvm::LogicalResult emitStep(mlir::Operation *op);
  /// One of what a row loop sums up.
  llvm::LogicalResult emitRowStep(mlir::Operation *op);
  /// And one of a sum in memory, to which rows are added.
  llvm::LogicalResult emitMemoryStep(mlir::Operation *op);
  /// A vector that is known by the sum of its lanes.
  llvm::LogicalResult emitSum(mlir::Operation *op);
  mlir::Value shifted(mlir::TypedValue<block::RangeType> neighbors,
                      const IndexForm &by);
  llvm::LogicalResult emitAccess(mlir::Operation *op);
  llvm::LogicalResult emitMask(mlir::vector::CreateMaskOp mask);
  llvm::LogicalResult emitTurn(mlir::scf::ForOp loop, mlir::scf::ForOp made);
  mlir::TypedValue<block::RangeType> rangeOfTurn(mlir::scf::ForOp loop,
                                                 mlir::scf::ForOp made,
                                                 block::SizeAttr size);
  llvm::LogicalResult emitFor(mlir::scf::ForOp loop);
  llvm::LogicalResult emitBlockLoop(const BlockLoop &loop);
  llvm::LogicalResult emitRowLoop(const RowLoop &loop);
  llvm::LogicalResult emitIf(mlir::scf::IfOp branch);
  llvm::LogicalResult emitReturn(mlir::func::ReturnOp op);
  /// What a region's values, loops' variables or results are: numbers, sums or
  /// blocks.
  mlir::Value carried(mlir::Value value, mlir::Value like);
  llvm::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &what) {
    op->emitWarning("keeps its function from blocks: ") << what;
    return llvm::failure();
  }

  mlir::func::FuncOp function, kernel;
  BlockLoops loops;
  TileLoops tiles;
  Matrices matrices;
  RowLoops rowLoops;
  mlir::ImplicitLocOpBuilder b;
  llvm::DenseMap<mlir::Value, mlir::Value> mapping;
  /// Indices that loops count, and how many of a mask's lanes hold.
  llvm::DenseMap<mlir::Value, mlir::Value> counters, counts;
  /// Sums of copies, which are part of those of the first one.
  llvm::DenseSet<mlir::Value> empty;
  /// The block loop that is written now, and the range of its turn.
  const BlockLoop *current = nullptr;
  mlir::TypedValue<block::RangeType> range;
  /// The row loop around it, and its range.
  const RowLoop *row = nullptr;
  mlir::TypedValue<block::RangeType> rowRange;
  llvm::StringSet<> names;
  /// What parameters are called.
  llvm::MapVector<int64_t, std::string> widths;
  llvm::MapVector<mlir::Operation *, std::string> tileNames;
  std::string rowsName;
  llvm::SmallVector<mlir::Value> results;
  /// Of choices in choices, which are computed once for each place.
  static constexpr unsigned deepestChoice = 4;
  unsigned depth = 0;
};

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H
