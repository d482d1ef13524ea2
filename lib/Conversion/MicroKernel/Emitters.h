//===- Emitters.h - The families of micro-kernels ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_EMITTERS_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_EMITTERS_H

#include "sandwich/Conversion/MicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sandwich {

/// f32 vectors of any width: AVX2, AVX-512 and NEON.
const MicroKernelEmitter &getVectorEmitter();

/// f32 vectors as long as the CPU has them: SVE.
const MicroKernelEmitter &getScalableVectorEmitter();

/// AVX512_BF16.
const MicroKernelEmitter &getX86DotBF16Emitter();

/// AVX-VNNI and AVX512_VNNI.
const MicroKernelEmitter &getX86DotInt8Emitter();

/// Integers without an instruction for dot products, by AVX2.
const MicroKernelEmitter &getX86MultiplyAddInt8Emitter();

/// NEON with dot products.
const MicroKernelEmitter &getNeonDotInt8Emitter();

/// NEON with matrix multiplication of integers.
const MicroKernelEmitter &getNeonMatrixInt8Emitter();

/// Quantized weights widened in registers: `widensGroups`.
const MicroKernelEmitter &getGroupWideningEmitter();

/// AMX, bf16.
const MicroKernelEmitter &getAMXEmitter();

/// AMX, integers.
const MicroKernelEmitter &getAMXInt8Emitter();

/// NEON with bf16 matrix multiplication.
const MicroKernelEmitter &getNeonBFMMLAEmitter();

/// SVE with bf16 matrix multiplication.
const MicroKernelEmitter &getScalableBFMMLAEmitter();

/// `emitInputPacking` of some family, whose shapes are those of one strip.
using InputPacker = void (*)(LoopBuilder &builder, const Packing &packing,
                             const InputPiece &piece);

/// That of f32: `[k][rows]`, each k beside those of the strip's other rows.
void emitTransposedPacking(LoopBuilder &builder, const Packing &packing,
                           const InputPiece &piece);

/// That of instructions on pairs of rows: `[k / kPack][pairs][2][kPack]`, where
/// of an odd number of rows the last pair is the last two, or the only one
/// twice.
void emitPairPacking(LoopBuilder &builder, const Packing &packing,
                     const InputPiece &piece);

inline mlir::Value createIndex(mlir::ImplicitLocOpBuilder &builder,
                               int64_t value) {
  return mlir::arith::ConstantIndexOp::create(builder, value);
}

/// `value + constant`.
inline mlir::Value addConstant(mlir::ImplicitLocOpBuilder &builder,
                               mlir::Value value, int64_t constant) {
  if (constant == 0)
    return value;
  return mlir::arith::AddIOp::create(builder, value,
                                     createIndex(builder, constant));
}

/// The rows and k of the input that the micro-kernel reads.
mlir::Value getInputBlock(mlir::ImplicitLocOpBuilder &builder, int64_t rows,
                          const MicroKernelArguments &arguments);

/// The elements of the packed input that the micro-kernel reads, in one row.
mlir::Value getPackedInput(mlir::ImplicitLocOpBuilder &builder,
                           const MicroKernel &kernel,
                           const MicroKernelArguments &arguments);

/// The sums that the micro-kernel writes.
mlir::Value getSumsBlock(mlir::ImplicitLocOpBuilder &builder,
                         const MicroKernel &kernel,
                         const MicroKernelArguments &arguments);

/// `count` panels from panel `first` on, from the micro-kernel's first column
/// and k on, as one dimension.
mlir::Value getPanels(mlir::ImplicitLocOpBuilder &builder,
                      const Packing &packing, int64_t first, int64_t count,
                      const MicroKernelArguments &arguments);

/// The prefetches of one loop step, from the element `offset` on.
class Prefetcher {
public:
  Prefetcher(mlir::ImplicitLocOpBuilder &builder,
             const MicroKernelSpecialization &specialization,
             const MicroKernelArguments &arguments, mlir::Value offset);

  /// How many there are.
  int64_t count() const;
  /// Emits those before `end` that were not emitted yet.
  void emit(int64_t end);
  /// The next step's offset.
  mlir::Value next();

private:
  mlir::ImplicitLocOpBuilder &builder;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
  mlir::Value offset, panel, stream;
  int64_t emitted = 0;
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_EMITTERS_H
