//===- Vector.cpp - Micro-kernels of vectors ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vector.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

VectorWriter::VectorWriter(ImplicitLocOpBuilder &builder,
                           const MicroKernelSpecialization &specialization,
                           const MicroKernelArguments &arguments)
    : BodyWriter(builder, specialization, arguments, /*blockRows=*/1),
      lanes(hasScalableVectors(kernel.isa)
                ? shortestScalableVector
                : registerFileOf(kernel.isa).columns),
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

const MicroKernelEmitter &sandwich::getVectorEmitter() {
  static const BodyWriterEmitter<VectorWriter> emitter;
  return emitter;
}
