//===- MicroKernel.h - Micro-kernels as functions ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// A micro-kernel becomes a private function of its own, so that it compiles
/// once however many matmuls use it, and so that nothing around it takes its
/// registers. One emitter for each family of instructions writes the body;
/// another family is another emitter.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_MICROKERNEL_H
#define SANDWICH_CONVERSION_MICROKERNEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Scheduling/Schedule.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace sandwich {

/// How groups of a panel of a quantized weight become what micro-kernels read:
/// floats, or, of 4 bits, numbers of 8 bits in longer groups.
struct WeightUnpacking {
  StorageFormat storage;
  /// k of a group.
  int64_t group = 0;
  /// The packing of the copy; panels are those of the weight.
  Packing to;
  MatrixElement element = MatrixElement::F32;
  /// k of a group of the copy, whose scales are f32; 0: floats have none.
  int64_t groupOfCopy = 0;

  /// Distinct for distinct values, a symbol.
  std::string name() const;
  /// The element type of the copy; integers are bytes.
  mlir::Type type(mlir::MLIRContext *context) const;
};

/// What the code of one micro-kernel function depends on.
struct MicroKernelSpecialization {
  /// With the exact number of rows that it multiplies, or, of tiles, 16 for
  /// each: how many of them there are is told at run time.
  MicroKernel kernel;
  /// Elements from one row of the input to the next. Tiles have it at run time.
  int64_t inputStride = 0;
  /// bf16 weights where the instructions multiply f32: widened in registers.
  bool widensWeights = false;
  /// How the weight lies in memory, one that `kernel` reads; nothing: in the
  /// default packing of its instructions.
  std::optional<Packing> packing = std::nullopt;
  /// Of a quantized weight that is read as it is stored: how, in groups of how
  /// many k. Instructions that multiply floats widen its numbers in registers.
  StorageFormat storage = {};
  int64_t group = 0;
  /// Cache lines to prefetch in each loop step of each stream, of a quantized
  /// weight for each `smallestGroup` k; streams in each panel, and panels at
  /// once.
  int64_t prefetchLines = 0;
  int64_t prefetchStreams = 1;
  int64_t prefetchPanels = 1;
  PrefetchHint prefetchHint = PrefetchHint::L1;
  /// Whether the input lies as `emitInputPacking` leaves it.
  bool packedInput = false;
  /// Of tiles: what is loaded past the nearest cache.
  StreamedOperands streamed = StreamedOperands::None;
  /// Of tiles: how the part of the weight that comes next is unpacked between
  /// multiplications, 32 k in each round of so many steps, and how many bytes
  /// ahead of itself it is prefetched, if it is.
  std::optional<WeightUnpacking> ahead = std::nullopt;
  int64_t stepsOfRound = 1;
  int64_t aheadDistance = 0;
  /// Whether operands are loaded once, before the loop, which does nothing but
  /// multiply: how fast the instructions are at best. The result means nothing.
  bool operandsStay = false;

  /// `X86_AVX512_BF16_12x32_ld2080_prefetch4`, and so on: lines x panels,
  /// streams after an s, the hint if it is not l1; distinct for distinct
  /// values.
  std::string name() const;
  Packing weightPacking() const;
  /// The element type of the input that it reads, f32, bf16 or i8.
  mlir::Type inputType(mlir::MLIRContext *context) const;
  /// The element type of the weight, f32, bf16 or i8.
  mlir::Type weightType(mlir::MLIRContext *context) const;
};

/// Elements from the beginning of a packed panel to its column `column`.
int64_t getColumnOffset(const Packing &packing, int64_t column);

/// The arguments of a micro-kernel function, which computes
/// `sums[sumsRow + i, sumsColumn + j] (+)= sum over k of
/// input[firstRow + i, firstK + k] * weight(k, j)`. Tiles of sums follow each
/// other, and so do those of the input but for the last. Elements of integers
/// are bytes.
struct MicroKernelArguments {
  /// memref<?x?xT, strided<[inputStride, 1], offset: ?>>. Packed tiles follow
  /// each other in rows of kStep elements, so that the next tile of K is
  /// `tileRows` rows further; packed vectors, and integers, are one row.
  mlir::Value input;
  /// index; with packed vectors or integers `firstK` is the element that they
  /// begin at.
  mlir::Value firstRow, firstK;
  /// index: how many k, a multiple of the packing's kStep; of integers, of the
  /// group.
  mlir::Value k;
  /// memref<?xT>: the whole packed weight.
  mlir::Value weight;
  /// index: the element of `weight` with the first k and column.
  mlir::Value weightOffset;
  /// index: elements from one panel to the next.
  mlir::Value panelStride;
  /// memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlir::Value sums;
  /// index
  mlir::Value sumsRow, sumsColumn;
  /// i1: add to the sums, else overwrite them.
  mlir::Value accumulate;
  /// index: the element of `weight` to prefetch at first, and by how many
  /// elements that moves in each loop step; of a quantized weight, which is
  /// bytes, how far ahead of themselves scales are prefetched.
  mlir::Value prefetchOffset, prefetchStride;
  /// index: elements from one stream of a panel to the next.
  mlir::Value prefetchStreamStride;
  /// Of tiles, whose rows were configured, only. index: the rows of a tile; the
  /// row that the last tile of the input begins with, of integers the element.
  mlir::Value tileRows, lastTileRow;
  /// Where micro-kernels unpack ahead only. memref<?xi8>: the whole weight as
  /// it is stored. index: the byte that the panel begins at, the first k of the
  /// first and of the last round, beyond which that is unpacked again; the
  /// element of `weight` that the copy begins at and the k that it begins with.
  mlir::Value stored, storedPanel, aheadK, lastAheadK, aheadPlace, aheadBegin;

  /// Those that there are, in order.
  llvm::SmallVector<mlir::Value> values() const;
  static MicroKernelArguments from(mlir::ValueRange values);

private:
  static constexpr mlir::Value MicroKernelArguments::*fields[] = {
      &MicroKernelArguments::input,
      &MicroKernelArguments::firstRow,
      &MicroKernelArguments::firstK,
      &MicroKernelArguments::k,
      &MicroKernelArguments::weight,
      &MicroKernelArguments::weightOffset,
      &MicroKernelArguments::panelStride,
      &MicroKernelArguments::sums,
      &MicroKernelArguments::sumsRow,
      &MicroKernelArguments::sumsColumn,
      &MicroKernelArguments::accumulate,
      &MicroKernelArguments::prefetchOffset,
      &MicroKernelArguments::prefetchStride,
      &MicroKernelArguments::prefetchStreamStride,
      &MicroKernelArguments::tileRows,
      &MicroKernelArguments::lastTileRow,
      &MicroKernelArguments::stored,
      &MicroKernelArguments::storedPanel,
      &MicroKernelArguments::aheadK,
      &MicroKernelArguments::lastAheadK,
      &MicroKernelArguments::aheadPlace,
      &MicroKernelArguments::aheadBegin};
};

/// Rows of the input on their way to where micro-kernels with `packedInput`
/// read them: as many as one call takes, or one tile has.
struct InputPiece {
  /// memref<?x?xT, strided<[?, 1], offset: ?>>, and index each.
  mlir::Value input, firstRow, rows, firstK, k;
  /// memref<?x?xT> as the micro-kernel takes it, and the element in it that the
  /// piece begins at.
  mlir::Value packed, place;
  /// Of weights of integers; see `MicroKernelSpecialization`.
  StorageFormat storage = {};
  int64_t group = 0;
};

/// The locality that LLVM's prefetches call `hint`.
int32_t localityOf(PrefetchHint hint);

/// The rows that `rows` rows of a piece take.
int64_t packedRows(MatrixISA isa, int64_t rows);

/// Writes micro-kernel bodies for one family of instructions.
class MicroKernelEmitter {
public:
  virtual ~MicroKernelEmitter() = default;

  /// Emits the copy of `piece` to `[k / step][packedRows][step]`, `step` being
  /// kStep of tiles and kPack of vectors. Where rows are paired in a register
  /// and their number is odd, the last pair is the last two, or the only one
  /// twice. For integers, each row's group is rounded to int8, as its largest
  /// magnitude is 127, and `[rows][group]` of those, or pairs of rows by 8 k at
  /// a time, or tiles of 16 rows, lie before what else `packedGroupLength` is
  /// for, all rows' scales last. Of instructions that `canPackInput`.
  virtual void emitInputPacking(LoopBuilder &builder, const Packing &packing,
                                const InputPiece &piece) const;

  /// Emits the body at the insertion point of `builder`, without terminator.
  virtual void emitBody(mlir::ImplicitLocOpBuilder &builder,
                        const MicroKernelSpecialization &specialization,
                        const MicroKernelArguments &arguments) const = 0;
};

/// The emitter for `isa`.
const MicroKernelEmitter &getMicroKernelEmitter(MatrixISA isa);

struct UnpackingArguments {
  /// memref<?xi8>: the whole packed weight, and the byte that the first group
  /// begins at.
  mlir::Value weight, weightOffset;
  /// index: how many groups, one behind the other, and which k of each: a
  /// multiple of `smallestGroup`, all of several groups. What is copied to
  /// longer groups is a multiple of those of one, and all of each.
  mlir::Value groups, begin, end;
  /// memref<?xT>: the copy, and the element that the panel begins at.
  mlir::Value copy, place;
};

/// Emits the loops that unpack some groups.
void emitUnpacking(LoopBuilder &builder, const WeightUnpacking &unpacking,
                   const UnpackingArguments &arguments);

/// The micro-kernels of one module.
class MicroKernelLibrary {
public:
  explicit MicroKernelLibrary(mlir::ModuleOp module) : symbols(module) {}

  /// The function for `specialization`, emitted at the end of the module when
  /// first asked for. It is named after it, with a number where something else
  /// in the module has the name.
  mlir::func::FuncOp get(const MicroKernelSpecialization &specialization);

  /// Calls it; casts the buffers to the types it takes.
  void call(mlir::ImplicitLocOpBuilder &builder,
            const MicroKernelSpecialization &specialization,
            const MicroKernelArguments &arguments);

  /// Calls the function at `address`, an index, which was compiled from one
  /// that `get` returned for any specialization with the input, the weight and
  /// the instructions of this one.
  static void callAddress(mlir::ImplicitLocOpBuilder &builder,
                          mlir::Value address,
                          const MicroKernelSpecialization &specialization,
                          const MicroKernelArguments &arguments);

  /// Calls the function for `unpacking`, which is emitted when first asked for.
  void unpack(mlir::ImplicitLocOpBuilder &builder,
              const WeightUnpacking &unpacking,
              const UnpackingArguments &arguments);

private:
  /// The function called `name` of `types`, whose body `emitBody` emits when it
  /// is first asked for.
  mlir::func::FuncOp getOrEmit(
      llvm::StringRef name, mlir::TypeRange types,
      llvm::function_ref<void(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>
          emitBody);

  mlir::SymbolTable symbols;
  /// What it emitted, by the name asked for.
  llvm::StringMap<mlir::func::FuncOp> functions;
};

} // namespace sandwich

#endif // SANDWICH_CONVERSION_MICROKERNEL_H
