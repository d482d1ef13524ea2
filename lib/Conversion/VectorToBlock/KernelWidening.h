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
/// sum up is one number behind them, and the size of tiles (TileLoops.h) is one,
/// too. All other vectors become blocks of as many numbers as they had lanes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H

#include "BlockLoops.h"
#include "TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringSet.h"

namespace sandwich::widening {

class KernelWidening {
public:
  /// Of `function`, in which reductions are recognized.
  explicit KernelWidening(mlir::func::FuncOp function)
      : function(function), loops(function), tiles(function, loops),
        b(function.getLoc(), function) {}

  /// The kernel, before the function; a warning says at which operation it
  /// stops.
  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  //===--------------------------------------------------------------------===//
  // Signature
  //===--------------------------------------------------------------------===//

  void makeKernel();
  /// The size of vectors of `lanes` in a block loop, so many times.
  block::SizeAttr widthOf(int64_t lanes, int64_t times);
  block::SizeAttr sizeOf(const TileLoop &tile);
  std::string uniqueName(llvm::StringRef wanted);

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  mlir::Value mapped(mlir::Value value) const { return mapping.lookup(value); }
  void map(mlir::Value value, mlir::Value made) { mapping[value] = made; }
  mlir::Value integer(mlir::TypedAttr number) {
    return mlir::arith::ConstantOp::create(b, number);
  }
  mlir::Value form(const IndexForm &form);
  mlir::Value index(mlir::Value value) { return form(indexFormOf(value)); }
  /// Of one term of a form.
  mlir::Value termIndex(mlir::Value value);
  /// The type of a block that is made of a vector here.
  mlir::Type blockType(mlir::Type vector);
  mlir::Value splat(mlir::Value number, mlir::Type block);
  /// The number that a uniform vector repeats.
  mlir::Value repeated(mlir::Value vector);
  mlir::Value block(mlir::Value vector);
  /// A number as it is, a vector as a block.
  mlir::Value operand(mlir::Value value);
  /// What all lanes of `vector` become together.
  mlir::Value sum(block::ReductionKind kind, mlir::Value vector);
  mlir::Value combineSums(block::ReductionKind kind, mlir::Value lhs,
                          mlir::Value rhs);
  /// `op` with other operands and another type.
  mlir::Value rebuild(mlir::Operation *op, mlir::ValueRange operands,
                      mlir::Type type);

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  llvm::LogicalResult emitBlock(mlir::Block &block);
  /// Emits `op`, and gives what it becomes its name.
  llvm::LogicalResult emitNamed(mlir::Operation *op);
  llvm::LogicalResult emit(mlir::Operation *op);
  llvm::LogicalResult emitElementwise(mlir::Operation *op);
  llvm::LogicalResult emitStep(mlir::Operation *op);
  llvm::LogicalResult emitSum(mlir::Operation *op);
  llvm::LogicalResult emitAccess(mlir::Operation *op);
  llvm::LogicalResult emitMask(mlir::vector::CreateMaskOp mask);
  llvm::LogicalResult emitFor(mlir::scf::ForOp loop);
  llvm::LogicalResult emitBlockLoop(const BlockLoop &loop);
  llvm::LogicalResult emitIf(mlir::scf::IfOp branch);
  llvm::LogicalResult emitReturn(mlir::func::ReturnOp op);
  /// What a region's values, loops' variables or results are: numbers, sums or
  /// blocks.
  mlir::Value carried(mlir::Value value, mlir::Value like);
  mlir::Value inside();
  llvm::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &what) {
    op->emitWarning("keeps its function from blocks: ") << what;
    return llvm::failure();
  }

  mlir::func::FuncOp function, kernel;
  BlockLoops loops;
  TileLoops tiles;
  mlir::ImplicitLocOpBuilder b;
  llvm::DenseMap<mlir::Value, mlir::Value> mapping;
  /// Indices that loops count, and how many of a mask's lanes hold.
  llvm::DenseMap<mlir::Value, mlir::Value> counters, counts;
  /// Sums of copies, which are part of those of the first one.
  llvm::DenseSet<mlir::Value> empty;
  /// The block loop that is written now, and the range of its turn.
  const BlockLoop *current = nullptr;
  mlir::Value range;
  llvm::StringSet<> names;
  /// What parameters are called.
  llvm::MapVector<int64_t, std::string> widths;
  llvm::MapVector<mlir::Operation *, std::string> tileNames;
  llvm::SmallVector<mlir::Value> results;
};

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_KERNELWIDENING_H
