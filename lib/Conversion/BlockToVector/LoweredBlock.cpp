//===- LoweredBlock.cpp - Blocks as vectors -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoweredBlock.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::block;

LoweredBlock LoweredBlock::ofRows(ArrayRef<int64_t> sizes, Type element,
                                  SmallVector<Value> rows) {
  LoweredBlock block(sizes, element);
  block.rows = std::move(rows);
  if (block.width() == 1)
    block.numbers = block.rows;
  return block;
}

LoweredBlock LoweredBlock::ofNumbers(ArrayRef<int64_t> sizes, Type element,
                                     SmallVector<Value> numbers) {
  LoweredBlock block(sizes, element);
  block.numbers = std::move(numbers);
  if (block.width() == 1)
    block.rows = block.numbers;
  return block;
}

int64_t LoweredBlock::rowCount() const {
  int64_t count = 1;
  for (int64_t size : ArrayRef(sizes).drop_back())
    count *= size;
  return count;
}

Type LoweredBlock::rowType() const {
  return width() == 1 ? element : Type(VectorType::get({width()}, element));
}

SmallVector<Value> LoweredBlock::getRows(LoopBuilder &builder) const {
  if (!rows.empty())
    return rows;
  SmallVector<Value> made;
  for (int64_t row = 0; row < rowCount(); ++row)
    made.push_back(vector::FromElementsOp::create(
        builder, cast<VectorType>(rowType()),
        ArrayRef(numbers).slice(row * width(), width())));
  return made;
}

SmallVector<Value> LoweredBlock::getNumbers(LoopBuilder &builder) const {
  if (!numbers.empty())
    return numbers;
  SmallVector<Value> made;
  for (Value row : rows)
    for (int64_t i = 0; i < width(); ++i)
      made.push_back(builder.createOrFold<vector::ExtractOp>(row, i));
  return made;
}

Value block::interleaveRows(LoopBuilder &builder, Value lhs, Value rhs) {
  auto numbers = lhs.getDefiningOp<vector::DeinterleaveOp>();
  if (numbers && rhs.getDefiningOp() == numbers && lhs == numbers.getRes1() &&
      rhs == numbers.getRes2())
    return numbers.getSource();
  return vector::InterleaveOp::create(builder, lhs, rhs);
}

/// Every other number of bf16 in f32: as a bf16 is the upper half of an f32,
/// that takes a shift or a mask of both at once. Null if `row` is none of
/// those.
static Value widenEveryOther(LoopBuilder &builder, Value row) {
  auto numbers = row.getDefiningOp<vector::DeinterleaveOp>();
  if (!numbers || !getElementTypeOrSelf(row).isBF16())
    return {};
  auto bitsType = cast<VectorType>(row.getType()).clone(builder.getI32Type());
  const auto constant = [&](int32_t number) {
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(bitsType, number));
  };
  Value pairs =
      vector::BitCastOp::create(builder, bitsType, numbers.getSource());
  Value bits;
  if (row == numbers.getRes1())
    bits = arith::ShLIOp::create(builder, pairs, constant(16));
  else
    bits = arith::AndIOp::create(builder, pairs,
                                 constant(static_cast<int32_t>(0xffff0000)));
  return arith::BitcastOp::create(builder, bitsType.clone(builder.getF32Type()),
                                  bits);
}

Value block::toF32(LoopBuilder &builder, Value row) {
  if (getElementTypeOrSelf(row).isF32())
    return row;
  if (Value widened = widenEveryOther(builder, row))
    return widened;
  Type type = builder.getF32Type();
  if (auto vector = dyn_cast<VectorType>(row.getType()))
    type = vector.clone(type);
  return builder.createOrFold<arith::ExtFOp>(type, row);
}

Value block::combine(LoopBuilder &builder, ReductionKind kind, Value lhs,
                     Value rhs) {
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(lhs));
  // Of floats as `LoopBuilder::maxf`, which is one instruction of most CPUs.
  const auto choose = [&](arith::CmpFPredicate predicate) -> Value {
    Value isLeft = arith::CmpFOp::create(builder, predicate, lhs, rhs);
    return arith::SelectOp::create(builder, isLeft, lhs, rhs);
  };
  switch (kind) {
  case ReductionKind::Add:
    return isFloat ? arith::AddFOp::create(builder, lhs, rhs).getResult()
                   : arith::AddIOp::create(builder, lhs, rhs).getResult();
  case ReductionKind::Multiply:
    return isFloat ? arith::MulFOp::create(builder, lhs, rhs).getResult()
                   : arith::MulIOp::create(builder, lhs, rhs).getResult();
  case ReductionKind::Maximum:
    return isFloat ? choose(arith::CmpFPredicate::OGT)
                   : arith::MaxSIOp::create(builder, lhs, rhs).getResult();
  case ReductionKind::Minimum:
    return isFloat ? choose(arith::CmpFPredicate::OLT)
                   : arith::MinSIOp::create(builder, lhs, rhs).getResult();
  }
  llvm_unreachable("all kinds are handled");
}

Value block::reduceRow(LoopBuilder &builder, ReductionKind kind, Value row) {
  auto type = dyn_cast<VectorType>(row.getType());
  if (!type)
    return row;
  int64_t width = type.getNumElements();
  if (kind == ReductionKind::Add && type.getElementType().isF32())
    return builder.reduceAdd(row);
  // By halves; what is left of an odd number comes last.
  SmallVector<Value> left;
  while (width > 1) {
    if (width % 2 != 0)
      left.push_back(vector::ExtractOp::create(builder, row, width - 1));
    const int64_t half = width / 2;
    const auto lanes = [&](int64_t first) {
      return llvm::to_vector(llvm::seq<int64_t>(first, first + half));
    };
    Value low = vector::ShuffleOp::create(builder, row, row, lanes(0));
    Value high = vector::ShuffleOp::create(builder, row, row, lanes(half));
    row = combine(builder, kind, low, high);
    width = half;
  }
  Value result = vector::ExtractOp::create(builder, row, 0);
  for (Value number : left)
    result = combine(builder, kind, result, number);
  return result;
}

SmallVector<Value> block::reduceRows(LoopBuilder &builder, ReductionKind kind,
                                     ArrayRef<Value> rows) {
  auto type = dyn_cast<VectorType>(rows.front().getType());
  const int64_t width = type ? type.getNumElements() : 1;
  if (rows.size() < 2 || !llvm::isPowerOf2_64(width) || width < 2)
    return llvm::map_to_vector(
        rows, [&](Value row) { return reduceRow(builder, kind, row); });
  if (const size_t most = llvm::bit_floor(rows.size()); most < rows.size()) {
    SmallVector<Value> numbers =
        reduceRows(builder, kind, rows.take_front(most));
    llvm::append_range(numbers,
                       reduceRows(builder, kind, rows.drop_front(most)));
    return numbers;
  }
  SmallVector<Value> vectors(rows);
  // What is left of each row in a vector, and of how many there are in one.
  int64_t part = width, parts = 1;
  const auto step = [&](Value first, Value second, int64_t both) {
    SmallVector<int64_t> low, high;
    for (int64_t number = 0; number < both * parts; ++number)
      for (int64_t lane = 0; lane < part / 2; ++lane) {
        low.push_back(number * part + lane);
        high.push_back(number * part + part / 2 + lane);
      }
    Value lhs = vector::ShuffleOp::create(builder, first, second, low);
    Value rhs = vector::ShuffleOp::create(builder, first, second, high);
    return combine(builder, kind, lhs, rhs);
  };
  while (part > 1) {
    if (vectors.size() == 1) {
      vectors[0] = step(vectors[0], vectors[0], 1);
    } else {
      SmallVector<Value> next;
      for (size_t i = 0; i < vectors.size(); i += 2)
        next.push_back(step(vectors[i], vectors[i + 1], 2));
      vectors = std::move(next);
      parts *= 2;
    }
    part /= 2;
  }
  SmallVector<Value> numbers;
  for (Value each : vectors)
    for (int64_t lane = 0; lane < parts; ++lane)
      numbers.push_back(vector::ExtractOp::create(builder, each, lane));
  return numbers;
}
