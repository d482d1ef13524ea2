//===- KernelLowering.h - One kernel for known parameters -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_KERNELLOWERING_H
#define SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_KERNELLOWERING_H

#include "LoweredBlock.h"

#include "sandwich/Conversion/BlockToVector.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <tuple>

namespace sandwich::block {

/// Computes the operations of a kernel by vectors, one after the other.
class KernelLowering {
public:
  KernelLowering(mlir::func::FuncOp kernel, Bindings bindings,
                 const FunctionOptions &options)
      : kernel(kernel), bindings(std::move(bindings)),
        instructions(options.instructions), checks(options.checks),
        b(kernel.getLoc(), kernel) {}

  mlir::FailureOr<mlir::func::FuncOp>
  run(llvm::StringRef name, llvm::ArrayRef<mlir::Type> argumentTypes);

private:
  //===--------------------------------------------------------------------===//
  // Sizes (KernelLowering.cpp)
  //===--------------------------------------------------------------------===//

  /// The size, which must be known.
  mlir::FailureOr<int64_t> blockSize(mlir::Operation *op, SizeAttr size) const;
  mlir::FailureOr<llvm::SmallVector<int64_t>>
  blockSizes(mlir::Operation *op, llvm::ArrayRef<SizeAttr> sizes) const;
  mlir::Value sizeValue(SizeAttr size);
  /// The memory that has `sizes`, static where they are known.
  mlir::MemRefType memoryType(llvm::ArrayRef<SizeAttr> sizes,
                              mlir::Type element) const;

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  const Lowered &lookup(mlir::Value value) const {
    return lowered.find(value)->second;
  }
  mlir::Value numberOf(mlir::Value value) const {
    return std::get<mlir::Value>(lookup(value));
  }
  const LoweredBlock &blockOf(mlir::Value value) const {
    return std::get<LoweredBlock>(lookup(value));
  }
  const LoweredRange &rangeOf(mlir::Value value) const {
    return std::get<LoweredRange>(lookup(value));
  }
  void set(mlir::Value value, Lowered result) {
    lowered.insert_or_assign(value, std::move(result));
  }

  /// Counts what is made; too much of it is an error.
  llvm::LogicalResult countMade(mlir::Operation *op, int64_t rows);
  /// Checks that operands are what their types say, and counts what is made.
  llvm::LogicalResult verifyOperation(mlir::Operation *op);
  llvm::LogicalResult lowerBlock(mlir::Block &block);
  llvm::LogicalResult lower(mlir::Operation *op);
  llvm::LogicalResult lowerRange(RangeOp op);
  void lowerPositions(PositionsOp op);
  void lowerInside(InsideOp op);
  llvm::LogicalResult lowerSplat(SplatOp op);
  llvm::LogicalResult lowerExpand(ExpandOp op);
  llvm::LogicalResult lowerBroadcast(BroadcastOp op);
  void lowerInterleave(InterleaveOp op);
  llvm::LogicalResult checkAssertion(AssertOp op);
  llvm::LogicalResult lowerReduce(ReduceOp op);
  mlir::Value sumProducts(const LoweredBlock &lhs, const LoweredBlock &rhs,
                          int64_t first, int64_t stride, int64_t count);
  /// One that computes each number of its result of those at the same place.
  llvm::LogicalResult lowerElementwise(mlir::Operation *op);

  //===--------------------------------------------------------------------===//
  // Memory (Memory.cpp)
  //===--------------------------------------------------------------------===//

  /// Memory of the kernel's own; null, with an error emitted, if that would be
  /// too much.
  mlir::Value allocate(mlir::Operation *op, llvm::ArrayRef<int64_t> shape,
                       mlir::Type element);
  llvm::LogicalResult lowerScratch(ScratchOp op);
  /// A part of a block in memory that is neighbors there.
  struct Piece {
    llvm::SmallVector<mlir::Value> indices;
    /// How many of its numbers are there; null where all are.
    mlir::Value count;
  };
  /// Calls `visit` for the rows of a block at `indices`, or for its numbers,
  /// where those of a row are no neighbors.
  /// Where `isInside` is not null, and does not hold, nothing is there.
  void forPieces(mlir::ValueRange indices, bool areNumbers,
                 mlir::Value isInside,
                 llvm::function_ref<void(const Piece &)> visit);
  bool areNeighbors(mlir::ValueRange indices) const;
  /// Whether memory is accessed by the numbers of `block`, or by what is
  /// computed of them: single ones are wanted then, no vectors.
  bool arePlaces(mlir::Value block);
  /// The numbers of a block of indices.
  llvm::SmallVector<mlir::Value> placesOf(mlir::Value indices);
  mlir::Value startOf(mlir::Value index);
  llvm::LogicalResult lowerLoad(LoadOp op);
  /// Loads neighbors that lie two apart, both of each pair at once; false if
  /// nobody knows which of them are meant.
  bool lowerPairs(LoadOp op, mlir::Value isInside);
  /// And stores them.
  bool storePairs(StoreOp op, mlir::Value isInside);
  /// Whether `index` is of both of each pair.
  bool areBothOfPairs(mlir::Value index) const;
  llvm::LogicalResult lowerPrefetch(PrefetchOp op);
  llvm::LogicalResult lowerStore(StoreOp op);
  void lowerNumber(mlir::memref::LoadOp load);
  void lowerNumber(mlir::memref::StoreOp store);
  /// Which of `width` numbers are the first `count`.
  mlir::Value maskOf(mlir::Value count, int64_t width);

  //===--------------------------------------------------------------------===//
  // Products (Products.cpp)
  //===--------------------------------------------------------------------===//

  /// Where a matrix lies in memory, whose columns are contiguous.
  struct Matrix {
    mlir::Value memory;
    /// Of its first row and column.
    llvm::SmallVector<mlir::Value> indices;
    /// The dimension of its rows, and how many elements these are apart.
    unsigned rows = 0;
    int64_t stride = 0;
  };
  /// How sums are cut into tiles, and how many k are multiplied.
  struct Tiling {
    int64_t rowTiles = 0, columnTiles = 0;
    /// Of each tile.
    int64_t rows = 0;
    int64_t depth = 0;
  };
  enum class TileOperand { Input, Weight, Sums };

  llvm::LogicalResult lowerMatmul(MatmulOp op);
  /// Whether what is loaded is nothing but multiplied, from where it lies.
  bool staysInMemory(LoadOp op);
  /// What an access means by `indices`; nothing if it is no matrix, or not all
  /// of it is there.
  std::optional<Matrix> matrixAt(mlir::Value buffer, mlir::ValueRange indices);
  /// The same of memory in pairs, each of which is in one row.
  std::optional<Matrix> matrixOfPairs(LoadOp op);
  llvm::SmallVector<mlir::Value> placeOf(const Matrix &matrix, int64_t row,
                                         mlir::Value column);
  /// Adds to the rows `sums` by instructions for pairs of bf16.
  void multiplyPairs(MatmulOp op, llvm::SmallVector<mlir::Value> &sums);
  /// And by FMA.
  void multiplyNumbers(MatmulOp op, llvm::SmallVector<mlir::Value> &sums);

  /// Nothing if there are no tiles, or `matmul` does not fit them.
  std::optional<Tiling> tilingOf(MatmulOp matmul) const;
  /// The number of the value that a loop carries, and does nothing with but add
  /// products to it, which tiles hold meanwhile.
  std::optional<unsigned> carriedInTiles(mlir::scf::ForOp loop) const;
  void
  forTiles(const Tiling &tiling,
           llvm::function_ref<void(int64_t number, int64_t row, int64_t column)>
               visit);
  /// Memory that tiles are loaded from, or stored to, on their way from or to
  /// vectors. Errors are emitted, here as below.
  mlir::FailureOr<mlir::Value> memoryOfTiles(mlir::Operation *op,
                                             TileOperand which, int64_t rows,
                                             mlir::VectorType row);
  mlir::FailureOr<Matrix> spill(mlir::Operation *op, TileOperand which,
                                llvm::ArrayRef<mlir::Value> rows);
  /// Tiles get the numbers of `sums`.
  llvm::LogicalResult loadTiles(mlir::Operation *op, const Tiling &tiling,
                                mlir::Value sums);
  void storeTiles(const Tiling &tiling, const Matrix &matrix);
  llvm::LogicalResult multiplyTiles(MatmulOp op, const Tiling &tiling);
  /// `result` gets what tiles hold, as vectors.
  llvm::LogicalResult readTiles(mlir::Operation *op, const Tiling &tiling,
                                mlir::Value result);
  /// The same, unless it is stored next: then it stays in tiles until then.
  llvm::LogicalResult finishTiles(const Tiling &tiling, mlir::Value result);
  /// Whether `op` stores what is in tiles.
  mlir::FailureOr<bool> storeFromTiles(StoreOp op);

  //===--------------------------------------------------------------------===//
  // Bounds (Bounds.cpp)
  //===--------------------------------------------------------------------===//

  /// How large dimension `number` of memory of the kernel is.
  mlir::Value extentOf(mlir::Value memory, unsigned number);
  /// Whether an access by `indices` stays within `memory`: null if that is
  /// proven, or not to be checked. Where it does not, its line is kept.
  mlir::Value checkBounds(mlir::Operation *op, mlir::Value memory,
                          mlir::ValueRange indices);
  void keepLine(mlir::Operation *op, mlir::Value isInside);
  /// Whether arguments are as large as their sizes' names say.
  mlir::Value checkArguments();

  //===--------------------------------------------------------------------===//
  // Control (Control.cpp)
  //===--------------------------------------------------------------------===//

  /// Of one value for each row of a block.
  void flatten(const Lowered &value, llvm::SmallVectorImpl<mlir::Value> &flat);
  llvm::SmallVector<mlir::Value> flatten(mlir::ValueRange values);
  /// And back: like `before`, of as many of `flat` as that takes.
  static Lowered restore(const Lowered &before, mlir::ValueRange &flat);
  llvm::LogicalResult lowerFor(mlir::scf::ForOp loop);
  llvm::LogicalResult lowerBlocks(mlir::scf::ForOp loop, RangeOp range);
  llvm::LogicalResult unroll(mlir::scf::ForOp loop);
  llvm::LogicalResult lowerIf(mlir::scf::IfOp branch);
  /// A turn of `loop`, with what is carried as it is; what it yields is what is
  /// carried then. The range `given` is that of the turn, and known.
  llvm::LogicalResult lowerTurn(mlir::scf::ForOp loop,
                                llvm::function_ref<void()> setVariable,
                                llvm::SmallVectorImpl<Lowered> &carried,
                                RangeOp given = {});
  /// A loop from `lower` to `upper` of such turns.
  llvm::LogicalResult
  lowerTurns(mlir::scf::ForOp loop, mlir::Value lower, mlir::Value upper,
             mlir::Value step,
             llvm::function_ref<void(mlir::Value index)> setVariable,
             llvm::SmallVectorImpl<Lowered> &carried, RangeOp given = {});

  mlir::func::FuncOp kernel, function;
  Bindings bindings;
  /// What multiplies matrices of bf16; nothing: FMA.
  std::optional<MatrixISA> instructions;
  /// Null if bounds are not checked.
  BoundsChecks *checks;
  /// The line that is kept.
  mlir::Value line;
  LoopBuilder b;
  llvm::DenseMap<mlir::Value, Lowered> lowered;
  /// Of operations that have been lowered before: what memory of their own
  /// holds at first is unknown every time.
  llvm::DenseMap<mlir::Operation *, mlir::Value> scratch;
  int64_t scratchBytes = 0;
  /// Of what `staysInMemory`.
  llvm::DenseMap<mlir::Value, Matrix> matrices;
  /// Sums that are carried in tiles.
  llvm::DenseSet<mlir::Value> sumsInTiles;
  llvm::DenseMap<mlir::Operation *, Tiling> storedFromTiles;
  std::map<std::tuple<TileOperand, int64_t, const void *>, mlir::Value> spilled;
  /// What `arePlaces` has found.
  llvm::DenseMap<mlir::Value, bool> foundPlaces;
  int placesDepth = 0;
  /// Rows of all operations so far.
  int64_t rowsMade = 0;
};

/// Whether numbers of the last dimension of `type` lie two apart, those of the
/// dimension before it in between.
bool liesInPairs(mlir::MemRefType type);
/// Memory that lies in pairs with both dimensions as one; null if that has no
/// form.
mlir::Value asItLies(LoopBuilder &builder, mlir::Value memory);

bool isUnrolled(mlir::scf::ForOp loop);
/// The first operation of a loop, if that is the range of its turn, from the
/// index to the loop's end; else null.
RangeOp rangeOfBlocks(mlir::scf::ForOp loop);

/// Whether what `op` asserts holds for `bindings`; nothing if they do not say.
std::optional<bool> evaluate(AssertOp op, const Bindings &bindings);

/// Leaves nothing but the side that is taken of branches that `bindings`
/// decide.
void foldBranches(mlir::func::FuncOp kernel, const Bindings &bindings);

/// The number that `value` is known to be.
std::optional<int64_t> constantOf(mlir::Value value);

} // namespace sandwich::block

#endif // SANDWICH_LIB_CONVERSION_BLOCKTOVECTOR_KERNELLOWERING_H
