//===- EmulateAMX.cpp - AMX without AMX -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace sandwich;

namespace {

Value createIndex(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

/// Where row `row` of a tile at `indices` begins: `stride` elements further in
/// the innermost dimension for each row, or, without, one further in the
/// second innermost.
SmallVector<Value> getRowPosition(ImplicitLocOpBuilder &builder,
                                  ValueRange indices, Value stride,
                                  int64_t row) {
  SmallVector<Value> position(indices);
  Value &moved = stride ? position.back() : position[position.size() - 2];
  Value distance = createIndex(builder, row);
  if (stride)
    distance = arith::MulIOp::create(builder, distance, stride);
  moved = arith::AddIOp::create(builder, moved, distance);
  return position;
}

VectorType getRowType(VectorType type) {
  return VectorType::get(type.getShape().drop_front(), type.getElementType());
}

struct EmulateZero : OpConversionPattern<amx::TileZeroOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileZeroOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getTileType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "no vector for its tile");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, type,
                                                   rewriter.getZeroAttr(type));
    return success();
  }
};

struct EmulateLoad : OpConversionPattern<amx::TileLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    amx::TileType tileType = op.getTileType();
    auto type = getTypeConverter()->convertType<VectorType>(tileType);
    if (!type)
      return rewriter.notifyMatchFailure(op, "no vector for its tile");
    Value tile = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    for (int64_t row = 0; row < type.getDimSize(0); ++row) {
      Value loaded = vector::LoadOp::create(
          builder,
          VectorType::get({tileType.getDimSize(1)}, tileType.getElementType()),
          adaptor.getBase(),
          getRowPosition(builder, adaptor.getIndices(), adaptor.getStride(),
                         row));
      if (tileType.getElementType().isBF16())
        loaded = vector::BitCastOp::create(builder, getRowType(type), loaded);
      tile = vector::InsertOp::create(builder, loaded, tile, row);
    }
    rewriter.replaceOp(op, tile);
    return success();
  }
};

/// Stores the rows of `tile`, one by one, as elements of `buffer`.
void storeRows(ImplicitLocOpBuilder &builder, Value tile, Value buffer,
               ValueRange indices, Value stride) {
  auto type = cast<VectorType>(tile.getType());
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  int64_t columns = type.getDimSize(1) * type.getElementTypeBitWidth() /
                    element.getIntOrFloatBitWidth();
  for (int64_t row = 0; row < type.getDimSize(0); ++row) {
    Value value = vector::ExtractOp::create(builder, tile, row);
    value = builder.createOrFold<vector::BitCastOp>(
        VectorType::get({columns}, element), value);
    vector::StoreOp::create(builder, value, buffer,
                            getRowPosition(builder, indices, stride, row));
  }
}

struct EmulateStore : OpConversionPattern<amx::TileStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    storeRows(builder, adaptor.getVal(), adaptor.getBase(),
              adaptor.getIndices(), adaptor.getStride());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Multiplies in loops over rows and pairs of k, through memory, so that the
/// code stays small.
struct EmulateMultiply : OpConversionPattern<amx::TileMulFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(amx::TileMulFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto sumsType = cast<VectorType>(adaptor.getAcc().getType());
    auto inputType = cast<VectorType>(adaptor.getLhs().getType());
    auto weightType = cast<VectorType>(adaptor.getRhs().getType());
    auto *scope = op->getParentWithTrait<OpTrait::AutomaticAllocationScope>();
    if (!scope)
      return rewriter.notifyMatchFailure(op, "no stack for its tiles");
    Value zero = createIndex(builder, 0), one = createIndex(builder, 1);
    auto spill = [&](Value tile) {
      auto type = cast<VectorType>(tile.getType());
      Value buffer;
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(&scope->getRegion(0).front());
        buffer = memref::AllocaOp::create(
            builder, MemRefType::get(type.getShape(), type.getElementType()));
      }
      storeRows(builder, tile, buffer, {zero, zero}, Value());
      return buffer;
    };
    Value sums = spill(adaptor.getAcc());
    Value input = spill(adaptor.getLhs());
    Value weight = spill(adaptor.getRhs());

    VectorType rowType = getRowType(sumsType);
    // The bits of a bf16 are the upper half of an f32's.
    auto widen = [&](Value pairs, bool upper) -> Value {
      auto type = cast<VectorType>(pairs.getType());
      auto constant = [&](uint32_t bits) -> Value {
        return arith::ConstantOp::create(
            builder, DenseElementsAttr::get(type, APInt(32, bits)));
      };
      Value bits =
          upper ? Value(arith::AndIOp::create(builder, pairs,
                                              constant(0xffff0000)))
                : Value(arith::ShLIOp::create(builder, pairs, constant(16)));
      return arith::BitcastOp::create(builder, rowType, bits);
    };
    auto rows = scf::ForOp::create(
        builder, zero, createIndex(builder, sumsType.getDimSize(0)), one);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(rows.getBody());
      Value row = rows.getInductionVar();
      Value sum =
          vector::LoadOp::create(builder, rowType, sums, ValueRange{row, zero});
      auto pairs = scf::ForOp::create(
          builder, zero, createIndex(builder, inputType.getDimSize(1)), one,
          sum);
      {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(pairs.getBody());
        Value pair = pairs.getInductionVar();
        Value carried = pairs.getRegionIterArg(0);
        Value weights = vector::LoadOp::create(builder, getRowType(weightType),
                                               weight, ValueRange{pair, zero});
        Value element =
            memref::LoadOp::create(builder, input, ValueRange{row, pair});
        Value elements = vector::BroadcastOp::create(
            builder, getRowType(weightType), element);
        for (bool upper : {false, true})
          carried = vector::FMAOp::create(builder, widen(elements, upper),
                                          widen(weights, upper), carried);
        scf::YieldOp::create(builder, carried);
      }
      vector::StoreOp::create(builder, pairs.getResult(0), sums,
                              ValueRange{row, zero});
    }
    Value result =
        arith::ConstantOp::create(builder, builder.getZeroAttr(sumsType));
    for (int64_t row = 0; row < sumsType.getDimSize(0); ++row) {
      Value loaded = vector::LoadOp::create(
          builder, rowType, sums, ValueRange{createIndex(builder, row), zero});
      result = vector::InsertOp::create(builder, loaded, result, row);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Turns tiles into two-dimensional vectors and their operations into loads,
/// stores and multiplications of rows, so that a program for AMX can be
/// executed, slowly, where there is no AMX.
struct EmulateAMX : PassWrapper<EmulateAMX, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmulateAMX)

  StringRef getArgument() const override { return "test-emulate-amx"; }
  StringRef getDescription() const override {
    return "Replace AMX by vectors, to run it on any CPU";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    // Pairs of bf16 are integers: not every CPU moves bf16 without a library.
    converter.addConversion([](amx::TileType type) -> Type {
      int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
      if (type.getElementType().isBF16())
        return VectorType::get({rows, columns / 2},
                               IntegerType::get(type.getContext(), 32));
      if (type.getElementType().isF32())
        return VectorType::get({rows, columns}, type.getElementType());
      return Type();
    });
    ConversionTarget target(*context);
    target.addIllegalDialect<amx::AMXDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    RewritePatternSet patterns(context);
    patterns.add<EmulateZero, EmulateLoad, EmulateStore, EmulateMultiply>(
        converter, context);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> sandwich::test::createEmulateAMX() {
  return std::make_unique<EmulateAMX>();
}

void sandwich::test::registerTestPasses() { PassRegistration<EmulateAMX>(); }
