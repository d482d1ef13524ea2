//===- X86Vector.cpp - AVX2 and AVX-512 micro-kernels ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitters.h"
#include "sandwich/Scheduling/StripPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// One accumulator register for each row and each vector of columns. A step
/// loads the weight's vectors of one packed k once, and broadcasts one element
/// (or pair of bf16) of each row in turn.
class X86VectorEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override;
};

/// The body of one micro-kernel, while it is written.
class BodyWriter {
public:
  BodyWriter(ImplicitLocOpBuilder &builder,
             const MicroKernelSpecialization &specialization,
             const MicroKernelArguments &arguments);
  void write();

private:
  using Sums = SmallVector<Value>;

  Sums loadOrZeroSums();
  void storeSums(ValueRange sums);
  /// Multiplies K from `begin` to `end`, `step` at a time.
  Sums writeLoop(Value begin, Value end, int64_t step, bool prefetches,
                 ValueRange sums);
  /// Multiplies the one packed k that begins at `k + offset`.
  void multiply(Value k, int64_t offset, MutableArrayRef<Value> sums);
  Value broadcastInput(int64_t row, Value k);
  Value loadWeight(int64_t vector, Value position);

  ImplicitLocOpBuilder &builder;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
  const MicroKernel &kernel;
  Packing packing;
  int64_t lanes, vectors;
  VectorType sumType;
  Value input, sumsBlock, prefetchOffset;
  SmallVector<Value> panels;
};

} // namespace

BodyWriter::BodyWriter(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments)
    : builder(builder), specialization(specialization), arguments(arguments),
      kernel(specialization.kernel), packing(packingOf(kernel.isa)),
      lanes(registerFileOf(kernel.isa).columns),
      vectors(kernel.columns / lanes),
      sumType(VectorType::get({lanes}, builder.getF32Type())) {}

void BodyWriter::write() {
  input = getInputBlock(builder, kernel.rows, arguments);
  sumsBlock = getSumsBlock(builder, kernel, arguments);
  for (int64_t column = 0; column < kernel.columns; column += packing.panel)
    panels.push_back(
        getPanel(builder, packing, column / packing.panel, arguments));

  Sums sums = loadOrZeroSums();
  int64_t step = loopStep(kernel.isa);
  Value zero = createIndex(builder, 0);
  Value remainder =
      arith::RemUIOp::create(builder, arguments.k, createIndex(builder, step));
  Value unrolled = arith::SubIOp::create(builder, arguments.k, remainder);
  sums =
      writeLoop(zero, unrolled, step, specialization.prefetchLines > 0, sums);
  sums = writeLoop(unrolled, arguments.k, packing.kPack, false, sums);
  storeSums(sums);
}

BodyWriter::Sums BodyWriter::loadOrZeroSums() {
  SmallVector<Type> types(kernel.rows * vectors, sumType);
  auto load = [&](OpBuilder &, Location) {
    Sums sums;
    for (int64_t row = 0; row < kernel.rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector)
        sums.push_back(vector::LoadOp::create(
            builder, sumType, sumsBlock,
            ValueRange{createIndex(builder, row),
                       createIndex(builder, vector * lanes)}));
    scf::YieldOp::create(builder, sums);
  };
  auto zero = [&](OpBuilder &, Location) {
    Value zero =
        arith::ConstantOp::create(builder, builder.getZeroAttr(sumType));
    scf::YieldOp::create(builder, Sums(types.size(), zero));
  };
  OpBuilder::InsertionGuard guard(builder);
  auto conditional = scf::IfOp::create(builder, types, arguments.accumulate,
                                       /*addThenBlock=*/true,
                                       /*addElseBlock=*/true);
  builder.setInsertionPointToStart(conditional.thenBlock());
  load(builder, builder.getLoc());
  builder.setInsertionPointToStart(conditional.elseBlock());
  zero(builder, builder.getLoc());
  return Sums(conditional.getResults());
}

void BodyWriter::storeSums(ValueRange sums) {
  for (int64_t row = 0; row < kernel.rows; ++row)
    for (int64_t vector = 0; vector < vectors; ++vector)
      vector::StoreOp::create(builder, sums[row * vectors + vector], sumsBlock,
                              ValueRange{createIndex(builder, row),
                                         createIndex(builder, vector * lanes)});
}

BodyWriter::Sums BodyWriter::writeLoop(Value begin, Value end, int64_t step,
                                       bool prefetches, ValueRange sums) {
  SmallVector<Value> carried(sums);
  if (prefetches)
    carried.push_back(arguments.prefetchOffset);
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, begin, end,
                                 createIndex(builder, step), carried);
  builder.setInsertionPointToStart(loop.getBody());
  carried.assign(loop.getRegionIterArgs().begin(),
                 loop.getRegionIterArgs().end());
  if (prefetches)
    carried.back() =
        emitPrefetches(builder, specialization, arguments, carried.back());
  MutableArrayRef<Value> carriedSums(carried);
  for (int64_t offset = 0; offset < step; offset += packing.kPack)
    multiply(loop.getInductionVar(), offset,
             carriedSums.take_front(sums.size()));
  scf::YieldOp::create(builder, carried);
  return Sums(loop.getResults().take_front(sums.size()));
}

void BodyWriter::multiply(Value k, int64_t offset,
                          MutableArrayRef<Value> sums) {
  Value position =
      arith::MulIOp::create(builder, k, createIndex(builder, packing.panel));
  position = addConstant(builder, position, offset * packing.panel);
  SmallVector<Value> weights;
  for (int64_t vector = 0; vector < vectors; ++vector)
    weights.push_back(loadWeight(vector, position));
  for (int64_t row = 0; row < kernel.rows; ++row) {
    Value element = broadcastInput(row, addConstant(builder, k, offset));
    for (int64_t vector = 0; vector < vectors; ++vector) {
      Value &sum = sums[row * vectors + vector];
      if (packing.kPack == 2)
        sum = x86vector::DotBF16Op::create(builder, sumType, sum, element,
                                           weights[vector]);
      else
        sum = vector::FMAOp::create(builder, element, weights[vector], sum);
    }
  }
}

Value BodyWriter::broadcastInput(int64_t row, Value k) {
  SmallVector<Value> position{createIndex(builder, row), k};
  if (packing.kPack == 1) {
    Value element = memref::LoadOp::create(builder, input, position);
    return vector::BroadcastOp::create(builder, sumType, element);
  }
  // A pair of bf16 is broadcast as one 32-bit integer.
  Type bf16 = builder.getBF16Type(), i32 = builder.getI32Type();
  Value pair = vector::LoadOp::create(builder, VectorType::get({2}, bf16),
                                      input, position);
  pair = vector::BitCastOp::create(builder, VectorType::get({1}, i32), pair);
  Value all =
      vector::BroadcastOp::create(builder, VectorType::get({lanes}, i32), pair);
  return vector::BitCastOp::create(builder, VectorType::get({2 * lanes}, bf16),
                                   all);
}

Value BodyWriter::loadWeight(int64_t vector, Value position) {
  int64_t column = vector * lanes;
  Value panel = panels[column / packing.panel];
  Value offset = addConstant(builder, position,
                             getColumnOffset(packing, column % packing.panel));
  Type element = cast<MemRefType>(panel.getType()).getElementType();
  Value weight = vector::LoadOp::create(
      builder, VectorType::get({lanes * packing.kPack}, element), panel,
      ValueRange{offset});
  if (specialization.widensWeights)
    weight = arith::ExtFOp::create(builder, sumType, weight);
  return weight;
}

void X86VectorEmitter::emitBody(ImplicitLocOpBuilder &builder,
                                const MicroKernelSpecialization &specialization,
                                const MicroKernelArguments &arguments) const {
  BodyWriter(builder, specialization, arguments).write();
}

const MicroKernelEmitter &sandwich::getX86VectorEmitter() {
  static const X86VectorEmitter emitter;
  return emitter;
}
