//===- Vector.h - Micro-kernels of vectors ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_VECTOR_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_VECTOR_H

#include "BodyWriter.h"

namespace sandwich {

/// Each register holds a vector of one row's sums; the weight's operand is as
/// many columns, the input's one element (or pair) in every lane. Multiplies
/// f32 by FMA on any CPU.
class VectorWriter : public BodyWriter {
public:
  VectorWriter(mlir::ImplicitLocOpBuilder &builder,
               const MicroKernelSpecialization &specialization,
               const MicroKernelArguments &arguments);

protected:
  mlir::Value loadSum(int64_t row, int64_t column) override;
  mlir::Value createZeroSum() override;
  void storeSum(mlir::Value sum, int64_t row, int64_t column) override;
  void beginRound(mlir::Value k) override;
  mlir::Value loadInput(const InputPlace &place) override;
  mlir::Value loadPackedInput(int64_t row, mlir::Value begin) override;
  mlir::Value loadWeight(mlir::Value panel, mlir::Value offset) override;
  mlir::Value multiply(mlir::Value sum, mlir::Value input,
                       mlir::Value weight) override;
  mlir::Value pin(mlir::Value sum, mlir::Value streamed,
                  bool usedOnce) override;

  /// What of the input `loadInput` puts in every lane, as one `type`.
  mlir::Value loadElements(mlir::Type type, const InputPlace &place);

  /// Elements of a vector, in those without a known length for each 128 bits.
  int64_t lanes;
  mlir::VectorType sumType;

private:
  /// On x86-64, a pointer to the first row's element where the round began.
  mlir::Value roundInput;
  /// Packed input: the rows from `groupBegin` on as one vector.
  mlir::Value group;
  int64_t groupBegin = 0;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_VECTOR_H
