//===- ApproximateMath.cpp - Mathematics without a library ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sandwich {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// erf(x) as x P(x^2) / Q(x^2), the same for all x: upstream's has polynomials
/// for parts of the line, and each vector evaluates all of them and picks, four
/// times the instructions. P and Q are the fit of lowest largest error over
/// [0, 3.9], 1.5e-8, found by weighted least squares with weights that grow
/// where the error is large (Lawson's algorithm); rounding in f32 adds 3e-7, so
/// that below the edge it may exceed 1 by so much. Beyond the edge the function
/// is 1 to the last bit, and so is the quotient there.
struct ExpandErf : public OpRewritePattern<math::ErfOp> {
  explicit ExpandErf(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &rewriter) const override {
    static constexpr float edge = 3.925f;
    static constexpr float numerator[] = {1.128379032e+00f, 1.919405191e-01f,
                                          5.296686017e-02f, 3.836857928e-03f,
                                          2.874573090e-04f, 2.050396302e-06f};
    static constexpr float denominator[] = {1.0f,
                                            5.034346342e-01f,
                                            1.147580052e-01f,
                                            1.510916616e-02f,
                                            1.181730979e-03f,
                                            3.823084020e-05f};
    Type type = op.getType();
    if (!isa<FloatType, VectorType>(type) ||
        !getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32 or vectors of it");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](float value) -> Value {
      TypedAttr attribute = b.getF32FloatAttr(value);
      if (auto vector = dyn_cast<VectorType>(type))
        attribute = DenseElementsAttr::get(vector, value);
      return arith::ConstantOp::create(b, attribute);
    };
    // Of what is no number, the comparison is false and `x` remains.
    auto bound = [&](arith::CmpFPredicate beyond, Value limit, Value x) {
      Value isBeyond = arith::CmpFOp::create(b, beyond, limit, x);
      return arith::SelectOp::create(b, isBeyond, limit, x).getResult();
    };
    Value x =
        bound(arith::CmpFPredicate::OGT, constant(-edge), op.getOperand());
    x = bound(arith::CmpFPredicate::OLT, constant(edge), x);
    Value square = arith::MulFOp::create(b, x, x);
    auto polynomial = [&](ArrayRef<float> coefficients) {
      Value sum = constant(coefficients.back());
      for (float coefficient : llvm::reverse(coefficients.drop_back()))
        sum = math::FmaOp::create(b, sum, square, constant(coefficient));
      return sum;
    };
    Value product = arith::MulFOp::create(b, x, polynomial(numerator));
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, product,
                                               polynomial(denominator));
    return success();
  }
};

/// exp2(x) as exp of what is left of x beside the nearest integer, times two to
/// that: two factors, as one alone has no exponent for the smallest results.
struct ExpandExp2 : public OpRewritePattern<math::Exp2Op> {
  explicit ExpandExp2(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!isa<FloatType, VectorType>(type) ||
        !getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32 or vectors of it");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type bits = b.getI32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      bits = vector.clone(bits);
    auto constant = [&](Type of, TypedAttr number) -> Value {
      if (auto vector = dyn_cast<VectorType>(of))
        number = DenseElementsAttr::get(vector, Attribute(number));
      return arith::ConstantOp::create(b, number);
    };
    auto number = [&](float value) {
      return constant(type, b.getF32FloatAttr(value));
    };
    auto integer = [&](int32_t value) {
      return constant(bits, b.getI32IntegerAttr(value));
    };
    // Beyond, the result is zero or infinite.
    constexpr float largest = 160;
    Value x = op.getOperand();
    Value nearest = math::RoundEvenOp::create(
        b, arith::MinNumFOp::create(
               b, arith::MaxNumFOp::create(b, x, number(-largest)),
               number(largest)));
    Value rest = arith::SubFOp::create(b, x, nearest);
    Value result = math::ExpOp::create(
        b, arith::MulFOp::create(b, rest, number(0.693147180559945309F)));
    Value exponent = arith::FPToSIOp::create(b, bits, nearest);
    Value half = arith::ShRSIOp::create(b, exponent, integer(1));
    for (Value each :
         {half, arith::SubIOp::create(b, exponent, half).getResult()}) {
      Value biased = arith::AddIOp::create(b, each, integer(127));
      Value factor = arith::BitcastOp::create(
          b, type, arith::ShLIOp::create(b, biased, integer(23)));
      result = arith::MulFOp::create(b, result, factor);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ApproximateMath
    : public sandwich::impl::ApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns);
    patterns.add<ExpandErf, ExpandExp2>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
