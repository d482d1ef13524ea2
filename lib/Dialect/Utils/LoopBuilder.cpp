//===- LoopBuilder.cpp - Loops over vectors -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Utils/LoopBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace sandwich;

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

// Not wrapping lets LLVM move index arithmetic into addresses.
static constexpr auto noWrap =
    arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

Value LoopBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value LoopBuilder::add(Value lhs, Value rhs) {
  return createOrFold<arith::AddIOp>(lhs, rhs, noWrap);
}

Value LoopBuilder::add(Value lhs, int64_t rhs) {
  return rhs == 0 ? lhs : add(lhs, index(rhs));
}

Value LoopBuilder::sub(Value lhs, Value rhs) {
  return createOrFold<arith::SubIOp>(lhs, rhs, noWrap);
}

Value LoopBuilder::mul(Value lhs, Value rhs) {
  return createOrFold<arith::MulIOp>(lhs, rhs, noWrap);
}

Value LoopBuilder::mul(Value lhs, int64_t rhs) {
  return rhs == 1 ? lhs : mul(lhs, index(rhs));
}

Value LoopBuilder::div(Value lhs, Value rhs) {
  return createOrFold<arith::DivUIOp>(lhs, rhs);
}

Value LoopBuilder::div(Value lhs, int64_t rhs) {
  return rhs == 1 ? lhs : div(lhs, index(rhs));
}

Value LoopBuilder::rem(Value lhs, Value rhs) {
  return createOrFold<arith::RemUIOp>(lhs, rhs);
}

Value LoopBuilder::rem(Value lhs, int64_t rhs) { return rem(lhs, index(rhs)); }

Value LoopBuilder::min(Value lhs, Value rhs) {
  return createOrFold<arith::MinUIOp>(lhs, rhs);
}

Value LoopBuilder::loadIndex(Value buffer, ValueRange indices) {
  Value element = memref::LoadOp::create(*this, buffer, indices);
  return arith::IndexCastOp::create(*this, getIndexType(), element);
}

//===----------------------------------------------------------------------===//
// f32 arithmetic
//===----------------------------------------------------------------------===//

Value LoopBuilder::constant(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

Value LoopBuilder::splat(float value, int64_t width) {
  auto type = VectorType::get({width}, getF32Type());
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, value));
}

Value LoopBuilder::addf(Value lhs, Value rhs) {
  return createOrFold<arith::AddFOp>(lhs, rhs);
}

Value LoopBuilder::subf(Value lhs, Value rhs) {
  return createOrFold<arith::SubFOp>(lhs, rhs);
}

Value LoopBuilder::mulf(Value lhs, Value rhs) {
  return createOrFold<arith::MulFOp>(lhs, rhs);
}

Value LoopBuilder::maxf(Value lhs, Value rhs) {
  // The semantics of x86's maximum: one instruction without fast-math flags.
  Value larger =
      arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, lhs, rhs);
  return arith::SelectOp::create(*this, larger, lhs, rhs);
}

Value LoopBuilder::fma(Value a, Value b, Value c) {
  return vector::FMAOp::create(*this, a, b, c);
}

Value LoopBuilder::broadcast(Value scalar, int64_t width) {
  auto type = VectorType::get({width}, scalar.getType());
  return vector::BroadcastOp::create(*this, type, scalar);
}

Value LoopBuilder::siluMul(Value gate, Value up) {
  const int64_t width = cast<VectorType>(gate.getType()).getNumElements();
  Value exponential =
      math::ExpOp::create(*this, arith::NegFOp::create(*this, gate));
  Value activated =
      arith::DivFOp::create(*this, gate, addf(splat(1, width), exponential));
  return mulf(activated, up);
}

Value LoopBuilder::geluExact(Value x) {
  const int64_t width = cast<VectorType>(x.getType()).getNumElements();
  Value scaled = mulf(x, splat(std::numbers::sqrt2_v<float> / 2, width));
  Value error = math::ErfOp::create(*this, scaled);
  Value half = mulf(x, splat(0.5f, width));
  return fma(half, error, half);
}

Value LoopBuilder::geluTanh(Value x) {
  const int64_t width = cast<VectorType>(x.getType()).getNumElements();
  // (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)).
  const float linear =
      -2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
  Value square = mulf(x, x);
  Value factor =
      fma(square, splat(0.044715f * linear, width), splat(linear, width));
  Value exponential = math::ExpOp::create(*this, mulf(x, factor));
  return arith::DivFOp::create(*this, x, addf(splat(1, width), exponential));
}

Value LoopBuilder::reduceAdd(Value vector) {
  return vector::ReductionOp::create(*this, vector::CombiningKind::ADD, vector,
                                     arith::FastMathFlags::reassoc);
}

Value LoopBuilder::reduceMax(Value vector) {
  // In halves: LLVM's sequence for the target compares one by one.
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  SmallVector<int64_t> lanes(width);
  for (int64_t distance = width / 2; distance > 0; distance /= 2) {
    for (int64_t i = 0; i < width; ++i)
      lanes[i] = i ^ distance;
    vector =
        maxf(vector, vector::ShuffleOp::create(*this, vector, vector, lanes));
  }
  return vector::ExtractOp::create(*this, vector, 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Type elementTypeOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getElementType();
}

Value LoopBuilder::loadVector(Value buffer, ValueRange indices, int64_t width) {
  Type element = elementTypeOf(buffer);
  Value loaded = vector::LoadOp::create(
      *this, VectorType::get({width}, element), buffer, indices);
  if (element.isF32())
    return loaded;
  auto floats = VectorType::get({width}, getF32Type());
  if (!element.isInteger(8))
    return arith::ExtFOp::create(*this, floats, loaded);
  Value integers =
      arith::ExtSIOp::create(*this, floats.clone(getI32Type()), loaded);
  return arith::SIToFPOp::create(*this, floats, integers);
}

Value LoopBuilder::loadScalar(Value buffer, ValueRange indices) {
  Value loaded = memref::LoadOp::create(*this, buffer, indices);
  if (loaded.getType().isF32())
    return loaded;
  return arith::ExtFOp::create(*this, getF32Type(), loaded);
}

void LoopBuilder::storeVector(Value vector, Value buffer, ValueRange indices,
                              bool nonTemporal) {
  Type element = elementTypeOf(buffer);
  if (!element.isF32())
    vector = arith::TruncFOp::create(
        *this, cast<VectorType>(vector.getType()).clone(element), vector);
  auto type = cast<VectorType>(vector.getType());
  llvm::MaybeAlign alignment;
  if (nonTemporal)
    alignment =
        llvm::Align(type.getNumElements() * type.getElementTypeBitWidth() / 8);
  vector::StoreOp::create(*this, vector, buffer, indices, nonTemporal,
                          alignment);
}

void LoopBuilder::storeScalar(Value scalar, Value buffer, ValueRange indices) {
  Type element = elementTypeOf(buffer);
  if (!element.isF32())
    scalar = arith::TruncFOp::create(*this, element, scalar);
  memref::StoreOp::create(*this, scalar, buffer, indices);
}

Value LoopBuilder::scratch(func::FuncOp function, ArrayRef<int64_t> shape,
                           Type elementType) {
  InsertionGuard guard(*this);
  setInsertionPointToStart(&function.front());
  return memref::AllocaOp::create(*this, MemRefType::get(shape, elementType),
                                  getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void LoopBuilder::forLoop(Value lower, Value upper, int64_t step,
                          LoopBody body) {
  auto loop = scf::ForOp::create(*this, lower, upper, index(step));
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

SmallVector<Value> LoopBuilder::forLoop(Value lower, Value upper, int64_t step,
                                        ValueRange initial,
                                        CarryingLoopBody body) {
  auto loop = scf::ForOp::create(*this, lower, upper, index(step), initial);
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return loop.getResults();
}

void LoopBuilder::ifThen(Value condition, function_ref<void()> thenBody) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  thenBody();
}

void LoopBuilder::ifThenElse(Value condition, function_ref<void()> thenBody,
                             function_ref<void()> elseBody) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  thenBody();
  setInsertionPointToStart(branch.elseBlock());
  elseBody();
}

void LoopBuilder::forVectors(
    int64_t size, function_ref<void(Value first, int64_t width)> body) {
  int64_t rest = size % vectorWidth;
  if (size >= vectorWidth)
    forLoop(index(0), index(size - rest), vectorWidth,
            [&](Value first) { body(first, vectorWidth); });
  if (rest != 0)
    body(index(size - rest), rest);
}

std::pair<Value, Value> LoopBuilder::threadRange(Value size, Value thread,
                                                 int64_t threads) {
  Value begin = div(mul(thread, size), threads);
  Value end = div(mul(add(thread, 1), size), threads);
  return {begin, end};
}

SmallVector<VectorPiece> sandwich::cutIntoVectors(int64_t size) {
  SmallVector<VectorPiece> pieces;
  for (int64_t first = 0; first < size; first += vectorWidth)
    pieces.push_back({first, std::min(vectorWidth, size - first)});
  return pieces;
}
