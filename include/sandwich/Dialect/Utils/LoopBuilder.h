//===- LoopBuilder.h - Loops over vectors -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_UTILS_LOOPBUILDER_H
#define SANDWICH_DIALECT_UTILS_LOOPBUILDER_H

#include "sandwich/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sandwich {

/// Builds scalar loops around vector code that computes in f32 on f32, bf16 or
/// f16 buffers. Index and f32 arithmetic fold constants.
class LoopBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  //===--------------------------------------------------------------------===//
  // Index arithmetic: operands are indices that are not negative.
  //===--------------------------------------------------------------------===//

  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value add(mlir::Value lhs, int64_t rhs);
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, int64_t rhs);
  mlir::Value div(mlir::Value lhs, mlir::Value rhs);
  mlir::Value div(mlir::Value lhs, int64_t rhs);
  mlir::Value rem(mlir::Value lhs, mlir::Value rhs);
  mlir::Value rem(mlir::Value lhs, int64_t rhs);
  mlir::Value min(mlir::Value lhs, mlir::Value rhs);
  /// The element of an i32 buffer, which is not negative.
  mlir::Value loadIndex(mlir::Value buffer, mlir::ValueRange indices);

  //===--------------------------------------------------------------------===//
  // f32 arithmetic, on scalars or vectors of one shape.
  //===--------------------------------------------------------------------===//

  mlir::Value constant(float value);
  /// A vector of `width` times `value`.
  mlir::Value splat(float value, int64_t width = vectorWidth);
  mlir::Value addf(mlir::Value lhs, mlir::Value rhs);
  mlir::Value subf(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mulf(mlir::Value lhs, mlir::Value rhs);
  /// The larger operand; `rhs` where one is no number.
  mlir::Value maxf(mlir::Value lhs, mlir::Value rhs);
  /// `a * b + c`, rounded once.
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value broadcast(mlir::Value scalar, int64_t width = vectorWidth);
  /// `gate * sigmoid(gate) * up`, on vectors.
  mlir::Value siluMul(mlir::Value gate, mlir::Value up);
  /// `x * (1 + erf(x / sqrt(2))) / 2`, on vectors.
  mlir::Value geluExact(mlir::Value x);
  /// `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2`, on vectors.
  mlir::Value geluTanh(mlir::Value x);
  /// The sum of a vector's elements, in any order.
  mlir::Value reduceAdd(mlir::Value vector);
  /// The largest of a vector's elements, a power of two.
  mlir::Value reduceMax(mlir::Value vector);

  //===--------------------------------------------------------------------===//
  // Memory: f32, bf16 or f16 buffers whose last dimension is contiguous, f32
  // values.
  //===--------------------------------------------------------------------===//

  /// `width` elements from `indices` on; of i8, too, as the integers they are.
  mlir::Value loadVector(mlir::Value buffer, mlir::ValueRange indices,
                         int64_t width = vectorWidth);
  mlir::Value loadScalar(mlir::Value buffer, mlir::ValueRange indices);
  /// Stores an f32 vector, rounded to the nearest element (ties to even).
  /// `nonTemporal` ones go past the caches; their place is a multiple of their
  /// size.
  void storeVector(mlir::Value vector, mlir::Value buffer,
                   mlir::ValueRange indices, bool nonTemporal = false);
  void storeScalar(mlir::Value scalar, mlir::Value buffer,
                   mlir::ValueRange indices);
  /// A 64-byte aligned buffer on the thread's stack, allocated once, at the
  /// entry of `function`.
  mlir::Value scratch(mlir::func::FuncOp function,
                      llvm::ArrayRef<int64_t> shape, mlir::Type elementType);

  //===--------------------------------------------------------------------===//
  // Control
  //===--------------------------------------------------------------------===//

  using LoopBody = llvm::function_ref<void(mlir::Value index)>;
  using CarryingLoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value index, mlir::ValueRange carried)>;
  void forLoop(mlir::Value lower, mlir::Value upper, int64_t step,
               LoopBody body);
  llvm::SmallVector<mlir::Value> forLoop(mlir::Value lower, mlir::Value upper,
                                         int64_t step, mlir::ValueRange initial,
                                         CarryingLoopBody body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> thenBody);
  void ifThenElse(mlir::Value condition, llvm::function_ref<void()> thenBody,
                  llvm::function_ref<void()> elseBody);

  /// Covers `size` elements with full working vectors in a loop and one
  /// narrower vector at the end; calls `body` with the first element and the
  /// width.
  void
  forVectors(int64_t size,
             llvm::function_ref<void(mlir::Value first, int64_t width)> body);

  /// The half-open range of `size` items that is thread `thread`'s of
  /// `threads`, in order.
  std::pair<mlir::Value, mlir::Value>
  threadRange(mlir::Value size, mlir::Value thread, int64_t threads);
};

/// A piece of a statically known extent.
struct VectorPiece {
  int64_t first;
  int64_t width;
};

/// Cuts `size` elements into working vectors and one narrower rest.
llvm::SmallVector<VectorPiece> cutIntoVectors(int64_t size);

} // namespace sandwich

#endif // SANDWICH_DIALECT_UTILS_LOOPBUILDER_H
