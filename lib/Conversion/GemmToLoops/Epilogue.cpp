//===- Epilogue.cpp - What a matmul does to its sums ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Writes an epilogue in vectors, and one by one where columns end in between:
/// masked accesses to bf16 would become calls of a library on CPUs without
/// AVX512_BF16.
class EpilogueWriter {
public:
  EpilogueWriter(gemm::EpilogueOp op, SymbolTableCollection &symbols)
      : b(op.getLoc(), op), op(op), symbols(symbols) {}

  /// Writes the block, past the caches where the operation says so and the
  /// destination's place allows it.
  void write();

private:
  void writeElementwise();
  /// Row `row` from the sums' row `blockRow`, to which `residual` is added if
  /// there is one.
  void writeRow(Value blockRow, Value row, Value residual);
  void writeSiluMul();
  /// Vectors over `count` elements; `body` gets each one's first element and
  /// its size.
  void forEachVector(Value count, bool hasTail,
                     function_ref<void(Value, int64_t)> body);

  LoopBuilder b;
  gemm::EpilogueOp op;
  SymbolTableCollection &symbols;
  /// Of the stores that are being written.
  bool nonTemporal = false;
};

} // namespace

void EpilogueWriter::write() {
  bool isSilu = op.getEpilogue() == Epilogue::SiluMul;
  auto writeBlock = [&] {
    if (isSilu)
      writeSiluMul();
    else
      writeElementwise();
  };
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(op.getDestination().getType());
  // All vectors are aligned where the first one is and rows, and groups in
  // them, lie whole vectors apart.
  bool alignedRows = succeeded(type.getStridesAndOffset(strides, offset)) &&
                     !ShapedType::isDynamic(strides[0]) &&
                     strides[0] % vectorWidth == 0 && offset == 0 &&
                     (!isSilu || *op.getInterleave() % vectorWidth == 0);
  if (!op.getNonTemporal() || !alignedRows)
    return writeBlock();
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, op.getDestination());
  Value column = op.getFirstColumn();
  if (isSilu)
    column = b.div(column, 2);
  Value first = b.add(address, b.mul(column, elementBytes));
  Value isAligned = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, b.rem(first, vectorWidth * elementBytes),
      b.index(0));
  b.ifThenElse(
      isAligned,
      [&] {
        nonTemporal = true;
        writeBlock();
        // Such stores are not ordered with those of a barrier by themselves.
        LLVM::FenceOp::create(b, LLVM::AtomicOrdering::seq_cst);
      },
      [&] {
        nonTemporal = false;
        writeBlock();
      });
}

void EpilogueWriter::forEachVector(Value count, bool hasTail,
                                   function_ref<void(Value, int64_t)> body) {
  Value full = hasTail ? b.sub(count, b.rem(count, vectorWidth)) : count;
  b.forLoop(b.index(0), full, vectorWidth,
            [&](Value first) { body(first, vectorWidth); });
  if (hasTail)
    b.forLoop(full, count, 1, [&](Value first) { body(first, 1); });
}

void EpilogueWriter::writeElementwise() {
  Value rank;
  if (op.getResidualRanks())
    rank = phase::RankOp::create(
        b, b.getIndexType(),
        phase::getArgument(op->getParentOfType<func::FuncOp>(),
                           phase::ProgramArgument::Team));
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value blockRow) {
    Value row = b.add(op.getFirstRow(), blockRow);
    if (!rank)
      return writeRow(blockRow, row, op.getResidual());
    // As lm.deal_rows says.
    auto ranks = static_cast<int64_t>(*op.getResidualRanks());
    Value owner = lm::isDeterministic(op) ? b.index(0) : b.rem(row, ranks);
    Value isOwn =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, owner, rank);
    b.ifThenElse(
        isOwn, [&] { writeRow(blockRow, row, op.getResidual()); },
        [&] { writeRow(blockRow, row, Value()); });
  });
}

void EpilogueWriter::writeRow(Value blockRow, Value row, Value residual) {
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(b, symbols, op, op.getBiasAttr(), op.getLayer());
  int64_t channels =
      cast<MemRefType>(op.getDestination().getType()).getDimSize(1);
  forEachVector(op.getColumns(), channels % vectorWidth != 0,
                [&](Value blockColumn, int64_t size) {
                  Value column = b.add(op.getFirstColumn(), blockColumn);
                  Value result =
                      b.loadVector(op.getSums(), {blockRow, blockColumn}, size);
                  if (bias)
                    result = b.addf(result, b.loadVector(bias, column, size));
                  if (op.getEpilogue() == Epilogue::GeluExact)
                    result = b.geluExact(result);
                  else if (op.getEpilogue() == Epilogue::GeluTanh)
                    result = b.geluTanh(result);
                  if (residual)
                    result = b.addf(b.loadVector(residual, {row, column}, size),
                                    result);
                  b.storeVector(result, op.getDestination(), {row, column},
                                nonTemporal && size == vectorWidth);
                });
}

void EpilogueWriter::writeSiluMul() {
  int64_t group = static_cast<int64_t>(*op.getInterleave());
  Value bias;
  if (op.getBiasAttr())
    bias = getWeightSlice(b, symbols, op, op.getBiasAttr(), op.getLayer());
  int64_t channels =
      cast<MemRefType>(op.getDestination().getType()).getDimSize(1);
  // A pair of groups takes twice the columns of its result.
  Value pairs = b.div(op.getColumns(), 2 * group);
  Value firstResult = b.div(op.getFirstColumn(), 2);
  bool hasTail = channels % vectorWidth != 0 || group % vectorWidth != 0;
  b.forLoop(b.index(0), op.getRows(), 1, [&](Value blockRow) {
    Value row = b.add(op.getFirstRow(), blockRow);
    b.forLoop(b.index(0), pairs, 1, [&](Value pair) {
      Value firstGate = b.mul(pair, 2 * group);
      Value resultOfPair = b.add(firstResult, b.mul(pair, group));
      // The last group is filled up, its end is no channel of the result.
      Value rest = b.sub(b.index(channels), resultOfPair);
      Value count = b.min(rest, b.index(group));
      forEachVector(count, hasTail, [&](Value first, int64_t size) {
        Value column = b.add(resultOfPair, first);
        Value gateColumn = b.add(firstGate, first);
        Value gate = b.loadVector(op.getSums(), {blockRow, gateColumn}, size);
        Value up = b.loadVector(op.getSums(),
                                {blockRow, b.add(gateColumn, group)}, size);
        if (bias) {
          gate = b.addf(gate, b.loadVector(bias, column, size));
          up = b.addf(up, b.loadVector(bias, b.add(column, channels), size));
        }
        b.storeVector(b.siluMul(gate, up), op.getDestination(), {row, column},
                      nonTemporal && size == vectorWidth);
      });
    });
  });
}

void sandwich::emitEpilogue(gemm::EpilogueOp op,
                            SymbolTableCollection &symbols) {
  switch (op.getEpilogue()) {
  case Epilogue::None:
  case Epilogue::AddResidual:
  case Epilogue::SiluMul:
  case Epilogue::GeluExact:
  case Epilogue::GeluTanh:
    EpilogueWriter(op, symbols).write();
    break;
  case Epilogue::RotateAppendKV:
    emitRotateAppendKV(op, symbols);
    break;
  }
  op.erase();
}
