//===- Vector.cpp - Micro-kernels of vectors ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vector.h"
#include "ScalableVector.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

VectorWriter::VectorWriter(ImplicitLocOpBuilder &builder,
                           const MicroKernelSpecialization &specialization,
                           const MicroKernelArguments &arguments)
    : BodyWriter(builder, specialization, arguments,
                 registerFileOf(specialization.kernel.isa).rows),
      lanes(hasScalableVectors(kernel.isa)
                ? shortestScalableVectorBytes / 4
                : registerFileOf(kernel.isa).rows *
                      registerFileOf(kernel.isa).columns),
      sumType(VectorType::get({lanes}, builder.getF32Type(),
                              {hasScalableVectors(kernel.isa)})) {}

Value VectorWriter::loadSum(int64_t row, int64_t column) {
  return vector::LoadOp::create(
      builder, sumType, sumsBlock,
      ValueRange{createIndex(builder, row), createIndex(builder, column)});
}

Value VectorWriter::createZeroSum() {
  return arith::ConstantOp::create(builder, builder.getZeroAttr(sumType));
}

void VectorWriter::storeSum(Value sum, int64_t row, int64_t column) {
  vector::StoreOp::create(
      builder, sum, sumsBlock,
      ValueRange{createIndex(builder, row), createIndex(builder, column)});
}

void VectorWriter::beginRound(Value k) {
  if (architectureOf(kernel.isa) != CpuArchitecture::X86_64)
    return;
  // LLVM would add the loop's counter in each of the loads, which costs a
  // hundredth of the time. Behind a pointer that it cannot see through, all are
  // displacements.
  int64_t bytes =
      cast<MemRefType>(input.getType()).getElementTypeBitWidth() / 8;
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, input);
  Value element =
      arith::AddIOp::create(builder, metadata.getOffset(), k).getResult();
  Value address = arith::AddIOp::create(
      builder, memref::ExtractAlignedPointerAsIndexOp::create(builder, input),
      arith::MulIOp::create(builder, element, createIndex(builder, bytes)));
  Value bits =
      arith::IndexCastOp::create(builder, builder.getI64Type(), hide(address));
  roundInput = LLVM::IntToPtrOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext()), bits);
}

Value VectorWriter::loadElements(Type type, const InputPlace &place) {
  if (!roundInput)
    return memref::LoadOp::create(builder, input,
                                  ValueRange{place.row, place.k});
  Type element = cast<MemRefType>(input.getType()).getElementType();
  Value displacement =
      arith::ConstantIntOp::create(builder, place.displacement, 64);
  Value address = LLVM::GEPOp::create(builder, roundInput.getType(), element,
                                      roundInput, LLVM::GEPArg(displacement));
  return LLVM::LoadOp::create(builder, type, address,
                              element.getIntOrFloatBitWidth() / 8);
}

Value VectorWriter::loadInput(const InputPlace &place) {
  return vector::BroadcastOp::create(builder, sumType,
                                     loadElements(builder.getF32Type(), place));
}

Value VectorWriter::loadPackedInput(int64_t row, Value begin) {
  // NEON multiplies by one element of a vector: four rows in one load.
  auto rowsInGroup = [&] {
    return cast<VectorType>(group.getType()).getDimSize(0);
  };
  if (row == 0 || row == groupBegin + rowsInGroup()) {
    groupBegin = row;
    int64_t rows =
        std::min<int64_t>(llvm::bit_floor<uint64_t>(kernel.rows - row), lanes);
    group = vector::LoadOp::create(
        builder, VectorType::get({rows}, builder.getF32Type()), input,
        ValueRange{createIndex(builder, 0), addConstant(builder, begin, row)});
  }
  Value element = vector::ExtractOp::create(builder, group, row - groupBegin);
  return vector::BroadcastOp::create(builder, sumType, element);
}

Value VectorWriter::loadWeight(Value panel, Value offset) {
  Type element = cast<MemRefType>(panel.getType()).getElementType();
  Value weight =
      vector::LoadOp::create(builder,
                             VectorType::get({lanes * packing.kPack}, element,
                                             sumType.getScalableDims()),
                             panel, ValueRange{offset});
  if (specialization.widensWeights)
    weight = arith::ExtFOp::create(builder, sumType, weight);
  return weight;
}

Value VectorWriter::multiply(Value sum, Value input, Value weight) {
  return vector::FMAOp::create(builder, input, weight, sum);
}

Value VectorWriter::pin(Value sum, Value streamed, bool usedOnce) {
  if (architectureOf(kernel.isa) == CpuArchitecture::AArch64)
    return pinRegisters(sum, "w");
  // FMA of x86 may write over any of its operands. An operand that it does not
  // read from memory gets a use after it, so that it writes over the sum. AVX2
  // does not broadcast in FMA.
  bool readsMemory = isa<vector::BroadcastOp>(streamed.getDefiningOp())
                         ? kernel.isa == MatrixISA::X86_AVX512_F32
                         : !specialization.widensWeights;
  if (usedOnce && readsMemory)
    return pinRegisters(sum, "v");
  return pinRegisters({sum, streamed}, "v");
}

/// Transposes 4 x 4 elements at a time, and copies what is left one by one.
void sandwich::emitTransposedPacking(LoopBuilder &b,
                                     const Packing & /*packing*/,
                                     const InputPiece &piece) {
  constexpr int64_t size = 4;
  auto type = VectorType::get({size}, b.getF32Type());
  Value zero = b.index(0);
  Value groupedRows = b.sub(piece.rows, b.rem(piece.rows, size));
  Value groupedK = b.sub(piece.k, b.rem(piece.k, size));
  auto place = [&](Value row, Value k) {
    return b.add(piece.place, b.add(b.mul(k, piece.rows), row));
  };
  auto copy = [&](Value row, Value k) {
    Value element = memref::LoadOp::create(
        b, piece.input,
        ValueRange{b.add(piece.firstRow, row), b.add(piece.firstK, k)});
    memref::StoreOp::create(b, element, piece.packed,
                            ValueRange{zero, place(row, k)});
  };
  auto zip = [&](Value first, Value second) -> std::pair<Value, Value> {
    return {vector::ShuffleOp::create(b, first, second,
                                      ArrayRef<int64_t>{0, 4, 1, 5}),
            vector::ShuffleOp::create(b, first, second,
                                      ArrayRef<int64_t>{2, 6, 3, 7})};
  };
  auto transpose = [&](Value row, Value k) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < size; ++i)
      rows.push_back(vector::LoadOp::create(
          b, type, piece.input,
          ValueRange{b.add(piece.firstRow, b.add(row, i)),
                     b.add(piece.firstK, k)}));
    auto [evenLow, evenHigh] = zip(rows[0], rows[2]);
    auto [oddLow, oddHigh] = zip(rows[1], rows[3]);
    auto [k0, k1] = zip(evenLow, oddLow);
    auto [k2, k3] = zip(evenHigh, oddHigh);
    for (auto [i, column] : llvm::enumerate(SmallVector<Value>{k0, k1, k2, k3}))
      vector::StoreOp::create(
          b, column, piece.packed,
          ValueRange{zero, place(row, b.add(k, static_cast<int64_t>(i)))});
  };
  b.forLoop(zero, groupedRows, size, [&](Value row) {
    b.forLoop(zero, groupedK, size, [&](Value k) { transpose(row, k); });
    b.forLoop(groupedK, piece.k, 1, [&](Value k) {
      for (int64_t i = 0; i < size; ++i)
        copy(b.add(row, i), k);
    });
  });
  b.forLoop(groupedRows, piece.rows, 1, [&](Value row) {
    b.forLoop(zero, piece.k, 1, [&](Value k) { copy(row, k); });
  });
}

const MicroKernelEmitter &sandwich::getVectorEmitter() {
  static const BodyWriterEmitter<VectorWriter, emitTransposedPacking> emitter;
  return emitter;
}
