//===- RotaryTable.cpp - lm.rotary_table as loops -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LMToLoops.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// The f64 polynomial in `x` with the given coefficients, lowest power first.
static Value polynomial(LoopBuilder &builder, Value x,
                        ArrayRef<double> coefficients) {
  auto type = cast<VectorType>(x.getType());
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(type, value));
  };
  Value result = constant(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = builder.fma(result, x, constant(coefficient));
  return result;
}

/// Cosine and sine of an f32 vector of angles, rounded from f64. Angles grow
/// with the position to beyond 10^5, where a reduction in f32 leaves no digit:
/// f64 has room for the angle and its distance to a multiple of pi/2, and as
/// the table is computed once a step its cost does not matter.
static std::pair<Value, Value> cosineAndSine(LoopBuilder &builder,
                                             Value angles) {
  int64_t width = cast<VectorType>(angles.getType()).getNumElements();
  auto f64 = VectorType::get({width}, builder.getF64Type());
  auto i32 = VectorType::get({width}, builder.getI32Type());
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(f64, value));
  };
  auto integer = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(i32, value));
  };

  // angle = quarters * pi/2 + rest with |rest| <= pi/4.
  Value wide = arith::ExtFOp::create(builder, f64, angles);
  Value quarters = math::RoundEvenOp::create(
      builder, builder.mulf(wide, constant(2 / std::numbers::pi)));
  Value rest = builder.fma(quarters, constant(-std::numbers::pi / 2), wide);

  // Taylor's polynomials: on |rest| <= pi/4 the first terms left out are
  // below 1e-10.
  Value square = builder.mulf(rest, rest);
  Value cosine = polynomial(
      builder, square,
      {1, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800});
  Value sine =
      builder.mulf(rest, polynomial(builder, square,
                                    {1, -1.0 / 6, 1.0 / 120, -1.0 / 5040,
                                     1.0 / 362880, -1.0 / 39916800}));

  // A quarter turn swaps both and flips a sign.
  Value turns = arith::FPToSIOp::create(builder, i32, quarters);
  auto hasBit = [&](Value value, int32_t bit) -> Value {
    Value masked = arith::AndIOp::create(builder, value, integer(bit));
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, masked,
                                 integer(0));
  };
  auto narrow = [&](Value value) -> Value {
    return arith::TruncFOp::create(
        builder, VectorType::get({width}, builder.getF32Type()), value);
  };
  auto choose = [&](Value whole, Value quarter, Value negative) -> Value {
    Value value =
        arith::SelectOp::create(builder, hasBit(turns, 1), quarter, whole);
    Value negated = arith::NegFOp::create(builder, value);
    return narrow(arith::SelectOp::create(builder, negative, negated, value));
  };
  // cos: + - - + in the four quarters, sin: + + - -.
  Value nextTurns = arith::AddIOp::create(builder, turns, integer(1));
  return {choose(cosine, sine, hasBit(nextTurns, 2)),
          choose(sine, cosine, hasBit(turns, 2))};
}

static void lowerRotaryTable(LoopBuilder &builder,
                             const ProgramContext &program, RotaryTableOp op) {
  Value destination = op.getDestination();
  ArrayRef<float> frequencies = op.getFrequencies();
  int64_t half = frequencies.size();
  forOwnRows(builder, program, op.getPositions(), [&](Value row) {
    Value position = arith::SIToFPOp::create(
        builder, builder.getF32Type(),
        memref::LoadOp::create(builder, op.getPositions(), row));
    for (VectorPiece piece : cutIntoVectors(half)) {
      auto type = VectorType::get({piece.width}, builder.getF32Type());
      Value factors = arith::ConstantOp::create(
          builder, DenseElementsAttr::get(
                       type, frequencies.slice(piece.first, piece.width)));
      Value angles =
          builder.mulf(builder.broadcast(position, piece.width), factors);
      auto [cosine, sine] = cosineAndSine(builder, angles);
      builder.storeVector(cosine, destination,
                          {row, builder.index(piece.first)});
      builder.storeVector(sine, destination,
                          {row, builder.index(half + piece.first)});
    }
  });
}

void lm::attachRotaryTableLowering(MLIRContext &context) {
  RotaryTableOp::attachInterface<
      LoopLoweringModel<RotaryTableOp, lowerRotaryTable>>(context);
}
