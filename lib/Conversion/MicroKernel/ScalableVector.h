//===- ScalableVector.h - Micro-kernels of vectors of any length -*- C++ -*-==//
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

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_SCALABLEVECTOR_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_SCALABLEVECTOR_H

#include "Emitters.h"

namespace sandwich {

/// Vectors without a known length have a multiple of so many bytes.
inline constexpr int64_t shortestScalableVectorBytes = 16;

/// Index: the columns of sums that a vector of this CPU holds.
mlir::Value createColumnsOfVector(mlir::ImplicitLocOpBuilder &builder,
                                  MatrixISA isa);

/// Emits the loop over passes and, by `emitPass`, what one of them does; it
/// gets the arguments for the pass's columns.
void emitPasses(
    mlir::ImplicitLocOpBuilder &builder,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments,
    llvm::function_ref<void(const MicroKernelArguments &)> emitPass);

/// A BodyWriter that is written in passes.
template <typename Writer> class InPasses {
public:
  InPasses(mlir::ImplicitLocOpBuilder &builder,
           const MicroKernelSpecialization &specialization,
           const MicroKernelArguments &arguments)
      : builder(builder), specialization(specialization), arguments(arguments) {
  }
  void write() {
    emitPasses(builder, specialization, arguments,
               [&](const MicroKernelArguments &pass) {
                 Writer(builder, specialization, pass).write();
               });
  }

private:
  mlir::ImplicitLocOpBuilder &builder;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_SCALABLEVECTOR_H
