//===- ScalableVector.cpp - Micro-kernels of vectors of any length --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// SVE's vectors have 128 bits or a multiple that the CPU chooses. A
/// micro-kernel is made for the longest ones: of each register's columns it
/// computes those that a vector has, in as many passes over K as it takes to
/// have them all. So the packing of weights does not depend on the length, and
/// an artifact runs with any.
///
//===----------------------------------------------------------------------===//

#include "Vector.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

namespace {

class ScalableVectorEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    Value lanes =
        arith::MulIOp::create(builder, vector::VectorScaleOp::create(builder),
                              createIndex(builder, shortestScalableVector));
    const int64_t columns = registerFileOf(specialization.kernel.isa).columns;
    auto passes = scf::ForOp::create(builder, createIndex(builder, 0),
                                     createIndex(builder, columns), lanes);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(passes.getBody());
    Value first = passes.getInductionVar();
    MicroKernelArguments pass = arguments;
    pass.weightOffset =
        arith::AddIOp::create(builder, arguments.weightOffset, first);
    pass.sumsColumn =
        arith::AddIOp::create(builder, arguments.sumsColumn, first);
    VectorWriter(builder, specialization, pass).write();
  }
};

} // namespace

const MicroKernelEmitter &sandwich::getScalableVectorEmitter() {
  static const ScalableVectorEmitter emitter;
  return emitter;
}
