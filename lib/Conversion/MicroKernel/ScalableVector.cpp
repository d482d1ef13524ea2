//===- ScalableVector.cpp - Micro-kernels of vectors of any length --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalableVector.h"
#include "Vector.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

Value sandwich::createColumnsOfVector(ImplicitLocOpBuilder &builder,
                                      MatrixISA isa) {
  constexpr int64_t shortestVectors =
      longestScalableVectorBytes / shortestScalableVectorBytes;
  return arith::MulIOp::create(
      builder, vector::VectorScaleOp::create(builder),
      createIndex(builder, registerFileOf(isa).columns / shortestVectors));
}

void sandwich::emitPasses(
    ImplicitLocOpBuilder &builder,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments,
    llvm::function_ref<void(const MicroKernelArguments &)> emitPass) {
  const MatrixISA isa = specialization.kernel.isa;
  auto passes =
      scf::ForOp::create(builder, createIndex(builder, 0),
                         createIndex(builder, registerFileOf(isa).columns),
                         createColumnsOfVector(builder, isa));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(passes.getBody());
  Value first = passes.getInductionVar();
  Value element = arith::MulIOp::create(
      builder, first,
      createIndex(builder, specialization.weightPacking().kPack));
  MicroKernelArguments pass = arguments;
  pass.weightOffset =
      arith::AddIOp::create(builder, arguments.weightOffset, element);
  pass.sumsColumn = arith::AddIOp::create(builder, arguments.sumsColumn, first);
  emitPass(pass);
}

const MicroKernelEmitter &sandwich::getScalableVectorEmitter() {
  static const BodyWriterEmitter<InPasses<VectorWriter>> emitter;
  return emitter;
}
