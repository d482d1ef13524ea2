//===- Products.cpp - Products of matrices --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// `block.matmul` by FMA, by vdpbf16ps, or by tiles of AMX.
///
/// Instructions want their operands as they lie in memory: a pair of bf16 is
/// broadcast, a tile is loaded row by row. So what is only read to be
/// multiplied is not read before (`staysInMemory`), and sums that a loop does
/// nothing but add to stay in tiles all the while (`carriedInTiles`).
///
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

/// Numbers of f32 in a register of AVX-512, and in a row of a tile.
static constexpr int64_t registerNumbers = 16;
/// Numbers of bf16 that an instruction multiplies and adds up, and those of a
/// tile's row.
static constexpr int64_t pair = 2;
static constexpr int64_t tileNumbers = tile::rowBytes / pair;

//===----------------------------------------------------------------------===//
// What stays where it is
//===----------------------------------------------------------------------===//

std::optional<KernelLowering::Tiling>
KernelLowering::tilingOf(MatmulOp matmul) const {
  if (instructions != MatrixISA::X86_AMX_BF16 ||
      !getElementTypeOrSelf(matmul.getLhs()).isBF16())
    return std::nullopt;
  ArrayRef<SizeAttr> lhs = sizesOf(matmul.getLhs().getType());
  const std::optional<int64_t> rows = knownSize(lhs[0], bindings),
                               depth = knownSize(lhs[1], bindings),
                               columns = knownSize(
                                   sizesOf(matmul.getSums().getType())[1],
                                   bindings);
  if (!rows || !depth || !columns || *rows < 1 || *depth < 1 || *columns < 1 ||
      *depth % tileNumbers != 0 || *columns % registerNumbers != 0)
    return std::nullopt;
  Tiling tiling;
  tiling.rowTiles = llvm::divideCeil(*rows, tile::maxRows);
  tiling.columnTiles = *columns / registerNumbers;
  if (*rows % tiling.rowTiles != 0 ||
      tiling.rowTiles > tile::firstWeightTile - tile::firstInputTile ||
      tiling.rowTiles * tiling.columnTiles > tile::firstInputTile)
    return std::nullopt;
  tiling.rows = *rows / tiling.rowTiles;
  tiling.depth = *depth;
  return tiling;
}

/// Follows what one product after the other is added to, from `sums` on, as
/// long as nothing else has a use for it. The last of them.
static Value endOfProducts(Value sums, SmallVectorImpl<MatmulOp> &products) {
  while (sums.hasOneUse()) {
    auto matmul = dyn_cast<MatmulOp>(*sums.user_begin());
    if (!matmul || matmul.getSums() != sums || matmul.getLhs() == sums ||
        matmul.getRhs() == sums)
      break;
    products.push_back(matmul);
    sums = matmul.getResult();
  }
  return sums;
}

std::optional<unsigned> KernelLowering::carriedInTiles(scf::ForOp loop) const {
  if (instructions != MatrixISA::X86_AMX_BF16 || isUnrolled(loop) ||
      rangeOfBlocks(loop))
    return std::nullopt;
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    SmallVector<MatmulOp> products;
    Value last = endOfProducts(argument, products);
    if (products.empty() || !last.hasOneUse() ||
        last != loop.getYieldedValues()[number] ||
        llvm::any_of(products, [&](MatmulOp matmul) {
          return matmul->getBlock() != loop.getBody() || !tilingOf(matmul);
        }))
      continue;
    // Whatever else is multiplied would take the same tiles.
    size_t all = 0;
    loop.walk([&](MatmulOp) { ++all; });
    if (all == products.size())
      return number;
  }
  return std::nullopt;
}

/// Whether something between two operations of one block may write memory.
static bool mayWriteBetween(Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last;
       op = op->getNextNode()) {
    if (isa<PrefetchOp, LoadOp, ScratchOp>(op))
      continue;
    if (!isMemoryEffectFree(op))
      return true;
  }
  return false;
}

/// Memory whose last dimension is contiguous, and in which what is above it is
/// a known number of elements further.
static std::optional<SmallVector<int64_t>> stridesOfRows(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return std::nullopt;
  return strides;
}

/// The only dimension of which a range is given beside the last one, of which
/// one is given, too; nothing where there are more or none.
static std::optional<unsigned> dimensionOfRows(ValueRange indices) {
  std::optional<unsigned> rows;
  for (auto [dimension, index] : llvm::enumerate(indices)) {
    if (block::isBlock(index.getType()))
      return std::nullopt;
    if (!isa<RangeType>(index.getType()) || dimension + 1 == indices.size())
      continue;
    if (rows)
      return std::nullopt;
    rows = dimension;
  }
  if (!isa<RangeType>(indices.back().getType()))
    return std::nullopt;
  return rows;
}

std::optional<KernelLowering::Matrix>
KernelLowering::matrixAt(Value buffer, ValueRange indices) {
  std::optional<unsigned> rows = dimensionOfRows(indices);
  if (checks || !rows || llvm::any_of(indices, [&](Value index) {
        return isa<RangeType>(index.getType()) && rangeOf(index).count;
      }))
    return std::nullopt;
  Value memory = numberOf(buffer);
  auto strides = stridesOfRows(cast<MemRefType>(memory.getType()));
  if (!strides)
    return std::nullopt;
  Matrix matrix{memory, {}, *rows, (*strides)[*rows]};
  for (Value index : indices)
    matrix.indices.push_back(startOf(index));
  return matrix;
}

/// In pairs, of which all are meant: a row of memory as it lies is one of
/// pairs.
std::optional<KernelLowering::Matrix> KernelLowering::matrixOfPairs(LoadOp op) {
  ValueRange indices = op.getIndices();
  const size_t rank = indices.size();
  if (checks || rank < 3 ||
      llvm::any_of(
          indices,
          [&](Value index) {
            return block::isBlock(index.getType()) ||
                   (isa<RangeType>(index.getType()) && rangeOf(index).count);
          }))
    return std::nullopt;
  Value memory = numberOf(op.getMemory());
  if (!liesInPairs(cast<MemRefType>(memory.getType())) ||
      !areBothOfPairs(indices[rank - 2]) ||
      !isa<RangeType>(indices.back().getType()))
    return std::nullopt;
  std::optional<unsigned> rows;
  for (auto [dimension, index] : llvm::enumerate(indices.drop_back(2)))
    if (isa<RangeType>(index.getType())) {
      if (rows)
        return std::nullopt;
      rows = dimension;
    }
  Value flat = rows ? asItLies(b, memory) : Value();
  auto strides =
      flat ? stridesOfRows(cast<MemRefType>(flat.getType())) : std::nullopt;
  if (!strides || ShapedType::isDynamic((*strides)[*rows]))
    return std::nullopt;
  Matrix matrix{flat, {}, *rows, (*strides)[*rows]};
  for (Value index : indices.drop_back(2))
    matrix.indices.push_back(startOf(index));
  matrix.indices.push_back(b.mul(startOf(indices.back()), pair));
  return matrix;
}

bool KernelLowering::staysInMemory(LoadOp op) {
  // Of another turn, all of which was there.
  matrices.erase(op.getResult());
  if (op.getResult().use_empty())
    return false;
  const Type element = getElementTypeOrSelf(op.getResult());
  std::optional<Matrix> matrix;
  bool arePairs = false;
  for (OpOperand &use : op.getResult().getUses()) {
    Operation *user = use.getOwner();
    if (user->getBlock() != op->getBlock() || mayWriteBetween(op, user))
      return false;
    bool isPairs = false, isTile = false;
    if (auto matmul = dyn_cast<MatmulOp>(user)) {
      isTile = tilingOf(matmul).has_value();
      isPairs = use.getOperandNumber() == 1;
      // A vector is as good as memory for all else.
      if (use.getOperandNumber() > 0 && !isTile)
        return false;
    } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
      std::optional<unsigned> number = carriedInTiles(loop);
      if (!number || loop.getInits()[*number] != op.getResult() ||
          llvm::count(loop->getOperands(), op.getResult()) != 1)
        return false;
      isTile = true;
    } else {
      return false;
    }
    // Not as one and as the other.
    if (matrix && arePairs != isPairs)
      return false;
    arePairs = isPairs;
    if (!matrix)
      matrix = isPairs ? matrixOfPairs(op)
                       : matrixAt(op.getMemory(), op.getIndices());
    if (!matrix || (isTile && ShapedType::isDynamic(matrix->stride)))
      return false;
  }
  FailureOr<SmallVector<int64_t>> sizes =
      blockSizes(op, sizesOf(op.getResult().getType()));
  if (failed(sizes))
    return false;
  matrices[op.getResult()] = *matrix;
  set(op.getResult(), LoweredBlock(*sizes, element));
  return true;
}

/// Where `row` and `column` of a matrix are.
SmallVector<Value> KernelLowering::placeOf(const Matrix &matrix, int64_t row,
                                           Value column) {
  const auto add = [&](Value lhs, Value rhs) -> Value {
    return b.createOrFold<arith::AddIOp>(lhs, rhs,
                                         arith::IntegerOverflowFlags::nsw);
  };
  SmallVector<Value> place = matrix.indices;
  place[matrix.rows] = add(place[matrix.rows], b.index(row));
  place.back() = add(place.back(), column);
  return place;
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// `count` numbers of `vector` from `first` on.
static Value sliceOf(LoopBuilder &b, Value vector, int64_t first,
                     int64_t count) {
  if (cast<VectorType>(vector.getType()).getNumElements() == count)
    return vector;
  return vector::ExtractStridedSliceOp::create(b, vector, first, count,
                                               int64_t(1));
}

void KernelLowering::multiplyPairs(MatmulOp op, SmallVector<Value> &sums) {
  const LoweredBlock &lhs = blockOf(op.getLhs());
  const int64_t depth = lhs.width();
  const int64_t rows = lhs.rowCount();
  const int64_t width = blockOf(op.getSums()).width();
  const SmallVector<Value> weights = blockOf(op.getRhs()).getRows(b);
  auto found = matrices.find(op.getLhs());
  const Matrix *matrix = found == matrices.end() ? nullptr : &found->second;
  SmallVector<Value> inputs;
  if (!matrix)
    inputs = lhs.getRows(b);

  const Type bf16 = b.getBF16Type(), i32 = b.getI32Type();
  // The pair at `k` of a row.
  const auto inputOf = [&](int64_t row, int64_t k) -> Value {
    Value word;
    if (matrix) {
      Value two = vector::LoadOp::create(b, VectorType::get({pair}, bf16),
                                         matrix->memory,
                                         placeOf(*matrix, row, b.index(k)));
      word = vector::BitCastOp::create(b, VectorType::get({1}, i32), two);
      word = vector::ExtractOp::create(b, word, 0);
    } else {
      Value words = vector::BitCastOp::create(
          b, VectorType::get({depth / pair}, i32), inputs[row]);
      word = vector::ExtractOp::create(b, words, k / pair);
    }
    return word;
  };
  const auto repeat = [&](Value word, int64_t count) -> Value {
    Value all =
        vector::BroadcastOp::create(b, VectorType::get({count}, i32), word);
    return vector::BitCastOp::create(b, VectorType::get({pair * count}, bf16),
                                     all);
  };

  // Whole registers, and a half.
  SmallVector<std::pair<int64_t, int64_t>> registers;
  for (int64_t i = 0; i < width; i += registerNumbers)
    registers.push_back({i, std::min(width - i, registerNumbers)});
  SmallVector<SmallVector<Value>> parts;
  for (Value row : sums) {
    parts.emplace_back();
    for (auto [first, count] : registers)
      parts.back().push_back(sliceOf(b, row, first, count));
  }
  for (int64_t k = 0; k < depth; k += pair) {
    Value both = interleaveRows(b, weights[k], weights[k + 1]);
    for (int64_t row = 0; row < rows; ++row) {
      Value input = inputOf(row, k);
      for (auto [part, place] : llvm::zip_equal(parts[row], registers)) {
        auto [first, count] = place;
        part = x86vector::DotBF16Op::create(
            b, part.getType(), part, repeat(input, count),
            sliceOf(b, both, pair * first, pair * count));
      }
    }
  }
  for (auto [row, own] : llvm::zip_equal(sums, parts)) {
    if (own.size() == 1) {
      row = own[0];
      continue;
    }
    for (auto [part, place] : llvm::zip_equal(own, registers))
      row = vector::InsertStridedSliceOp::create(b, part, row, place.first,
                                                 int64_t(1));
  }
}

void KernelLowering::multiplyNumbers(MatmulOp op, SmallVector<Value> &sums) {
  const LoweredBlock &lhs = blockOf(op.getLhs());
  const int64_t rows = lhs.rowCount(), depth = lhs.width();
  const int64_t width = blockOf(op.getSums()).width();
  const SmallVector<Value> weights = blockOf(op.getRhs()).getRows(b);
  auto found = matrices.find(op.getLhs());
  SmallVector<Value> inputs;
  if (found == matrices.end())
    inputs = lhs.getNumbers(b);
  for (int64_t k = 0; k < depth; ++k) {
    Value weight = toF32(b, weights[k]);
    for (int64_t row = 0; row < rows; ++row) {
      Value input =
          inputs.empty()
              ? memref::LoadOp::create(b, found->second.memory,
                                       placeOf(found->second, row, b.index(k)))
                    .getResult()
              : inputs[row * depth + k];
      input = toF32(b, input);
      if (width > 1)
        input = vector::BroadcastOp::create(b, weight.getType(), input);
      sums[row] = math::FmaOp::create(b, input, weight, sums[row]);
    }
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

FailureOr<Value> KernelLowering::memoryOfTiles(Operation *op, TileOperand which,
                                               int64_t rows, VectorType row) {
  Value &memory = spilled[{which, rows, row.getAsOpaquePointer()}];
  if (!memory)
    memory = allocate(op, {rows, row.getNumElements()}, row.getElementType());
  if (!memory)
    return failure();
  return memory;
}

FailureOr<KernelLowering::Matrix>
KernelLowering::spill(Operation *op, TileOperand which, ArrayRef<Value> rows) {
  auto type = cast<VectorType>(rows.front().getType());
  FailureOr<Value> memory =
      memoryOfTiles(op, which, static_cast<int64_t>(rows.size()), type);
  if (failed(memory))
    return failure();
  Value zero = b.index(0);
  for (auto [number, row] : llvm::enumerate(rows))
    vector::StoreOp::create(
        b, row, *memory,
        ValueRange{b.index(static_cast<int64_t>(number)), zero});
  return Matrix{*memory, {zero, zero}, 0, type.getNumElements()};
}

void KernelLowering::forTiles(
    const Tiling &tiling,
    function_ref<void(int64_t number, int64_t row, int64_t column)> visit) {
  for (int64_t row = 0; row < tiling.rowTiles; ++row)
    for (int64_t column = 0; column < tiling.columnTiles; ++column)
      visit(row * tiling.columnTiles + column, row * tiling.rows,
            column * registerNumbers);
}

LogicalResult KernelLowering::loadTiles(Operation *op, const Tiling &tiling,
                                        Value sums) {
  tile::ConfigureOp::create(b, b.index(tiling.rows));
  auto splat = sums.getDefiningOp<SplatOp>();
  if (splat && matchPattern(splat.getNumber(), m_AnyZeroFloat())) {
    forTiles(tiling, [&](int64_t number, int64_t, int64_t) {
      tile::ZeroOp::create(b, number);
    });
    return success();
  }
  auto found = matrices.find(sums);
  FailureOr<Matrix> matrix =
      found != matrices.end()
          ? found->second
          : spill(op, TileOperand::Sums, blockOf(sums).getRows(b));
  if (failed(matrix))
    return failure();
  forTiles(tiling, [&](int64_t number, int64_t row, int64_t column) {
    tile::LoadOp::create(b, number, matrix->memory,
                         placeOf(*matrix, row, b.index(column)),
                         b.index(matrix->stride), /*streaming=*/false);
  });
  return success();
}

void KernelLowering::storeTiles(const Tiling &tiling, const Matrix &matrix) {
  forTiles(tiling, [&](int64_t number, int64_t row, int64_t column) {
    tile::StoreOp::create(b, number, matrix.memory,
                          placeOf(matrix, row, b.index(column)),
                          b.index(matrix.stride));
  });
}

LogicalResult KernelLowering::multiplyTiles(MatmulOp op, const Tiling &tiling) {
  const auto inMemory =
      [&](Value operand, TileOperand which,
          function_ref<SmallVector<Value>()> rows) -> FailureOr<Matrix> {
    if (auto found = matrices.find(operand); found != matrices.end())
      return found->second;
    return spill(op, which, rows());
  };
  FailureOr<Matrix> lhs = inMemory(op.getLhs(), TileOperand::Input, [&] {
    return blockOf(op.getLhs()).getRows(b);
  });
  FailureOr<Matrix> rhs = inMemory(op.getRhs(), TileOperand::Weight, [&] {
    SmallVector<Value> rows = blockOf(op.getRhs()).getRows(b), pairs;
    for (size_t k = 0; k < rows.size(); k += pair)
      pairs.push_back(interleaveRows(b, rows[k], rows[k + 1]));
    return pairs;
  });
  if (failed(lhs) || failed(rhs))
    return failure();
  for (int64_t k = 0; k < tiling.depth; k += tileNumbers) {
    for (int64_t row = 0; row < tiling.rowTiles; ++row)
      tile::LoadOp::create(b, tile::firstInputTile + row, lhs->memory,
                           placeOf(*lhs, row * tiling.rows, b.index(k)),
                           b.index(lhs->stride), /*streaming=*/false);
    for (int64_t column = 0; column < tiling.columnTiles; ++column) {
      const int64_t weight = tile::firstWeightTile +
                             column % (tile::numTiles - tile::firstWeightTile);
      tile::LoadOp::create(
          b, weight, rhs->memory,
          placeOf(*rhs, k / pair, b.index(column * pair * registerNumbers)),
          b.index(rhs->stride), /*streaming=*/false);
      for (int64_t row = 0; row < tiling.rowTiles; ++row)
        tile::MultiplyOp::create(b, row * tiling.columnTiles + column,
                                 tile::firstInputTile + row, weight,
                                 tile::Products::BF16);
    }
  }
  return success();
}

LogicalResult KernelLowering::readTiles(Operation *op, const Tiling &tiling,
                                        Value result) {
  const int64_t rows = tiling.rows * tiling.rowTiles;
  auto type =
      VectorType::get({tiling.columnTiles * registerNumbers}, b.getF32Type());
  FailureOr<Value> memory = memoryOfTiles(op, TileOperand::Sums, rows, type);
  if (failed(memory))
    return failure();
  Value zero = b.index(0);
  storeTiles(tiling, {*memory, {zero, zero}, 0, type.getNumElements()});
  SmallVector<Value> vectors;
  for (int64_t row = 0; row < rows; ++row)
    vectors.push_back(vector::LoadOp::create(b, type, *memory,
                                             ValueRange{b.index(row), zero}));
  set(result, LoweredBlock::ofRows({rows, type.getNumElements()},
                                   b.getF32Type(), std::move(vectors)));
  return success();
}

LogicalResult KernelLowering::finishTiles(const Tiling &tiling, Value result) {
  Operation *product = result.getDefiningOp();
  auto store =
      result.hasOneUse() ? dyn_cast<StoreOp>(*result.user_begin()) : StoreOp();
  const auto isNext = [&] {
    return llvm::all_of(llvm::make_range(std::next(product->getIterator()),
                                         store->getIterator()),
                        [](Operation &op) {
                          return isMemoryEffectFree(&op) &&
                                 op.getNumRegions() == 0 && !isa<MatmulOp>(op);
                        });
  };
  if (!store || checks || store->getBlock() != product->getBlock() || !isNext())
    return readTiles(product, tiling, result);
  storedFromTiles[store] = tiling;
  set(result, LoweredBlock({tiling.rows * tiling.rowTiles,
                            tiling.columnTiles * registerNumbers},
                           b.getF32Type()));
  return success();
}

FailureOr<bool> KernelLowering::storeFromTiles(StoreOp op) {
  auto found = storedFromTiles.find(op);
  if (found == storedFromTiles.end())
    return false;
  const Tiling tiling = found->second;
  storedFromTiles.erase(found);
  std::optional<Matrix> matrix = matrixAt(op.getMemory(), op.getIndices());
  if (matrix && !ShapedType::isDynamic(matrix->stride)) {
    storeTiles(tiling, *matrix);
    return true;
  }
  if (failed(readTiles(op, tiling, op.getValue())))
    return failure();
  return false;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerMatmul(MatmulOp op) {
  const LoweredBlock &before = blockOf(op.getSums());
  SmallVector<int64_t> sizes(before.getSizes());
  const int64_t depth = blockOf(op.getLhs()).width();
  if (std::optional<Tiling> tiling = tilingOf(op)) {
    // Rows that go to memory and back, and what each step loads and multiplies.
    const int64_t multiplied = tiling->rowTiles * tiling->columnTiles;
    if (failed(countMade(
            op, 3 * sizes[0] + depth +
                    depth / tileNumbers *
                        (multiplied + tiling->rowTiles + tiling->columnTiles))))
      return failure();
    const bool areCarried = sumsInTiles.contains(op.getSums());
    if (!areCarried && failed(loadTiles(op, *tiling, op.getSums())))
      return failure();
    if (failed(multiplyTiles(op, *tiling)))
      return failure();
    if (!areCarried)
      return finishTiles(*tiling, op.getResult());
    sumsInTiles.insert(op.getResult());
    set(op.getResult(), lookup(op.getSums()));
    return success();
  }
  // An instruction for each row, k and register.
  if (failed(countMade(op, (sizes[0] + 1) * depth *
                               llvm::divideCeil(sizes[1], registerNumbers))))
    return failure();
  SmallVector<Value> sums = before.getRows(b);
  if (instructions && blockOf(op.getLhs()).getElement().isBF16() &&
      depth % pair == 0 && sizes[1] % (registerNumbers / 2) == 0)
    multiplyPairs(op, sums);
  else
    multiplyNumbers(op, sums);
  set(op.getResult(),
      LoweredBlock::ofRows(sizes, b.getF32Type(), std::move(sums)));
  return success();
}
