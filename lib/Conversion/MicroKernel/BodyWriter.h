//===- BodyWriter.h - What all micro-kernels have in common -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_MICROKERNEL_BODYWRITER_H
#define SANDWICH_LIB_CONVERSION_MICROKERNEL_BODYWRITER_H

#include "Emitters.h"

namespace sandwich {

/// The body of one micro-kernel, while it is written: a grid of registers with
/// sums that lives through a loop over K. A family of instructions says what a
/// register holds and how two operands multiply into it.
///
/// A step loads the operands of the rows or of the columns of the grid,
/// whichever are fewer, and the others in turn; `verify(MicroKernel)` counts
/// registers that way.
class BodyWriter {
public:
  BodyWriter(mlir::ImplicitLocOpBuilder &builder,
             const MicroKernelSpecialization &specialization,
             const MicroKernelArguments &arguments, int64_t blockRows);
  virtual ~BodyWriter() = default;

  void write();

protected:
  using Sums = llvm::SmallVector<mlir::Value>;

  /// The loops over K, which add to `sums` and return them.
  virtual Sums multiplyAll(Sums sums);

  /// The sums whose first row and column in the micro-kernel these are.
  virtual mlir::Value loadSum(int64_t row, int64_t column) = 0;
  virtual mlir::Value createZeroSum() = 0;
  virtual void storeSum(mlir::Value sum, int64_t row, int64_t column) = 0;
  /// Begins a round of the loop over K, at `k`.
  virtual void beginRound(mlir::Value /*k*/) {}
  /// Where an operand of the input begins.
  struct InputPlace {
    mlir::Value row, k;
    /// In elements, from the first row and the k at which the round began.
    int64_t displacement;
  };
  virtual mlir::Value loadInput(const InputPlace &place) = 0;
  /// The operand of `row`, the first of a block, where the input is packed: in
  /// row `row` of those that begin at element `begin`. Called for one row after
  /// the other in each step.
  virtual mlir::Value loadPackedInput(int64_t /*row*/, mlir::Value /*begin*/) {
    llvm_unreachable("these micro-kernels read their input in rows");
  }
  /// The weight's operand from the element `offset` of `panel` on.
  virtual mlir::Value loadWeight(mlir::Value panel, mlir::Value offset) = 0;
  /// `sum + input * weight`.
  virtual mlir::Value multiply(mlir::Value sum, mlir::Value input,
                               mlir::Value weight) = 0;
  /// `sum`, just computed from `streamed`, pinned down by `pinRegisters` if
  /// that is needed; `usedOnce` if no other multiplication reads `streamed`.
  virtual mlir::Value pin(mlir::Value sum, mlir::Value streamed,
                          bool usedOnce) = 0;
  /// The first of `operands`, a sum, which is computed here and nowhere else,
  /// in the register it was in before; the others are in registers here.
  /// Without, LLVM moves loads and multiplications until registers do not
  /// suffice.
  mlir::Value pinRegisters(mlir::ValueRange operands,
                           llvm::StringRef constraint);

  /// `index`, but LLVM cannot see that, so that it computes what depends on it
  /// here, and keeps no register with that through the loop.
  mlir::Value hide(mlir::Value index);

  mlir::ImplicitLocOpBuilder &builder;
  const MicroKernelSpecialization &specialization;
  const MicroKernelArguments &arguments;
  const MicroKernel &kernel;
  Packing packing;
  /// Columns of a register with sums, and such registers beside each other.
  int64_t blockColumns, columnBlocks;
  /// The rows and k of the input, or its packed elements, and the sums, of this
  /// micro-kernel.
  mlir::Value input, sumsBlock;

  /// Registers with sums above each other.
  int64_t rowBlocks() const { return static_cast<int64_t>(firstRows.size()); }
  /// Whether the operands of the rows pass, those of the columns being fewer;
  /// else the other way round.
  bool streamsInput() const { return columnBlocks < rowBlocks(); }

  void storeSums(mlir::ValueRange sums);

private:
  /// Loads those that stay where operands do, and one that passes for all.
  void loadStayingOperands();
  Sums loadOrZeroSums();
  /// Multiplies K from `begin` to `end`, `step` at a time.
  Sums writeLoop(mlir::Value begin, mlir::Value end, int64_t step,
                 bool prefetches, mlir::ValueRange sums);
  /// Multiplies the k of one instruction, which begin at `k + offset`.
  void writeStep(mlir::Value k, int64_t offset,
                 llvm::MutableArrayRef<mlir::Value> sums);
  /// The first row of the grid's row `block`.
  mlir::Value getRow(int64_t block);
  /// The operand of the grid's row `block` for the k at `k + offset`.
  mlir::Value loadRow(int64_t block, mlir::Value k, int64_t offset);
  /// The operand of the grid's column `block`, `position` elements into its
  /// panel.
  mlir::Value loadColumn(int64_t block, mlir::Value position);

  /// Of a register with sums.
  int64_t blockRows;
  /// The first row of each row of registers. Where they do not divide the
  /// rows, the last begins early and computes the rows it shares with its
  /// neighbour a second time, to the same sums.
  llvm::SmallVector<int64_t> firstRows;

  /// A pointer to each panel or, if they are too many, one to all of them and
  /// where in them the step is.
  llvm::SmallVector<mlir::Value> panels;
  mlir::Value allPanels, panelPosition;

  /// Where operands stay.
  llvm::SmallVector<mlir::Value> stayingHeld;
  mlir::Value stayingStreamed;
};

/// An emitter that is nothing but `Writer`, a BodyWriter, and, if it reads
/// packed input, what packs it.
template <typename Writer, InputPacker packInput = nullptr>
class BodyWriterEmitter final : public MicroKernelEmitter {
public:
  void emitBody(mlir::ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    Writer(builder, specialization, arguments).write();
  }
  void emitInputPacking(LoopBuilder &builder, const Packing &packing,
                        const InputPiece &piece) const override {
    if constexpr (packInput != nullptr)
      packInput(builder, packing, piece);
    else
      MicroKernelEmitter::emitInputPacking(builder, packing, piece);
  }
};

} // namespace sandwich

#endif // SANDWICH_LIB_CONVERSION_MICROKERNEL_BODYWRITER_H
