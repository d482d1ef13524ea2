//===- BodyWriter.cpp - What all micro-kernels have in common -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyWriter.h"
#include "sandwich/Scheduling/StripPlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;

/// Whether the loop can keep `pointers` into the input or the weight in
/// registers, beside all else that it counts with.
static bool holdsPointers(MatrixISA isa, int64_t pointers) {
  if (architectureOf(isa) == CpuArchitecture::X86_64)
    return pointers <= 8;
  if (!hasScalableVectors(isa))
    return pointers <= 24;
  // A pair of rows takes two beside what loads of sums take.
  return pointers <= (registerFileOf(isa).rows == 2 ? 4 : 16);
}

BodyWriter::BodyWriter(ImplicitLocOpBuilder &builder,
                       const MicroKernelSpecialization &specialization,
                       const MicroKernelArguments &arguments, int64_t blockRows)
    : builder(builder), specialization(specialization), arguments(arguments),
      kernel(specialization.kernel), packing(specialization.weightPacking()),
      blockColumns(registerFileOf(kernel.isa).columns),
      columnBlocks(kernel.columns / blockColumns), blockRows(blockRows) {
  for (int64_t row = 0; row < kernel.rows; row += blockRows)
    firstRows.push_back(
        std::max<int64_t>(std::min(row, kernel.rows - blockRows), 0));
}

void BodyWriter::write() {
  sumsBlock = getSumsBlock(builder, kernel, arguments);
  storeSums(multiplyAll(loadOrZeroSums()));
}

BodyWriter::Sums BodyWriter::multiplyAll(Sums sums) {
  input = specialization.packedInput
              ? getPackedInput(builder, kernel, arguments)
              : getInputBlock(builder, kernel.rows, arguments);
  int64_t count = divideUp(kernel.columns, packing.panel);
  if (holdsPointers(kernel.isa, count))
    for (int64_t number = 0; number < count; ++number)
      panels.push_back(getPanels(builder, packing, number, 1, arguments));
  else
    allPanels = getPanels(builder, packing, 0, count, arguments);

  if (specialization.operandsStay)
    loadStayingOperands();
  int64_t step = loopStep(kernel.isa);
  bool prefetches = specialization.prefetchLines > 0;
  Value begin = createIndex(builder, 0);
  if (step > packing.kStep) {
    Value remainder = arith::RemUIOp::create(builder, arguments.k,
                                             createIndex(builder, step));
    Value unrolled = arith::SubIOp::create(builder, arguments.k, remainder);
    sums = writeLoop(begin, unrolled, step, prefetches, sums);
    begin = unrolled;
    step = packing.kStep;
    prefetches = false;
  }
  return writeLoop(begin, arguments.k, step, prefetches, sums);
}

void BodyWriter::loadStayingOperands() {
  Value zero = createIndex(builder, 0);
  beginRound(zero);
  if (streamsInput()) {
    for (int64_t column = 0; column < columnBlocks; ++column)
      stayingHeld.push_back(loadColumn(column, zero));
    stayingStreamed = loadRow(0, zero, 0);
  } else {
    for (int64_t row = 0; row < rowBlocks(); ++row)
      stayingHeld.push_back(loadRow(row, zero, 0));
    stayingStreamed = loadColumn(0, zero);
  }
}

BodyWriter::Sums BodyWriter::loadOrZeroSums() {
  OpBuilder::InsertionGuard guard(builder);
  Value zero = createZeroSum();
  Sums zeros(firstRows.size() * columnBlocks, zero), loaded;
  auto conditional = scf::IfOp::create(
      builder, SmallVector<Type>(zeros.size(), zero.getType()),
      arguments.accumulate, /*addThenBlock=*/true, /*addElseBlock=*/true);
  builder.setInsertionPointToStart(conditional.thenBlock());
  for (int64_t row : firstRows)
    for (int64_t block = 0; block < columnBlocks; ++block)
      loaded.push_back(loadSum(row, block * blockColumns));
  scf::YieldOp::create(builder, loaded);
  builder.setInsertionPointToStart(conditional.elseBlock());
  scf::YieldOp::create(builder, zeros);
  return Sums(conditional.getResults());
}

void BodyWriter::storeSums(ValueRange sums) {
  for (auto [i, row] : llvm::enumerate(firstRows))
    for (int64_t block = 0; block < columnBlocks; ++block)
      storeSum(sums[i * columnBlocks + block], row, block * blockColumns);
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
  if (prefetches) {
    Prefetcher prefetcher(builder, specialization, arguments, carried.back());
    prefetcher.emit(prefetcher.count());
    carried.back() = prefetcher.next();
  }
  MutableArrayRef<Value> carriedSums(carried);
  beginRound(loop.getInductionVar());
  for (int64_t offset = 0; offset < step; offset += packing.kStep)
    writeStep(loop.getInductionVar(), offset,
              carriedSums.take_front(sums.size()));
  scf::YieldOp::create(builder, carried);
  return Sums(loop.getResults().take_front(sums.size()));
}

void BodyWriter::writeStep(Value k, int64_t offset,
                           MutableArrayRef<Value> sums) {
  Value position =
      arith::MulIOp::create(builder, k, createIndex(builder, packing.panel));
  position = addConstant(builder, position, offset * packing.panel);
  // Loads of scalable vectors take displacements in vectors only: LLVM would
  // keep a pointer to each panel for each step of the loop.
  if (hasScalableVectors(kernel.isa))
    position = hide(position);
  bool usedOnce = std::min(rowBlocks(), columnBlocks) == 1;
  bool stay = specialization.operandsStay;
  auto multiplyInto = [&](int64_t row, int64_t column, Value rowOperand,
                          Value weight) {
    Value &sum = sums[row * columnBlocks + column];
    sum = pin(multiply(sum, rowOperand, weight),
              streamsInput() ? rowOperand : weight, usedOnce);
  };
  SmallVector<Value> held = stayingHeld;
  if (streamsInput()) {
    for (int64_t column = 0; column < columnBlocks && !stay; ++column)
      held.push_back(loadColumn(column, position));
    for (int64_t row = 0; row < rowBlocks(); ++row) {
      Value operand = stay ? stayingStreamed : loadRow(row, k, offset);
      for (int64_t column = 0; column < columnBlocks; ++column)
        multiplyInto(row, column, operand, held[column]);
    }
  } else {
    for (int64_t row = 0; row < rowBlocks() && !stay; ++row)
      held.push_back(loadRow(row, k, offset));
    for (int64_t column = 0; column < columnBlocks; ++column) {
      Value weight = stay ? stayingStreamed : loadColumn(column, position);
      for (int64_t row = 0; row < rowBlocks(); ++row)
        multiplyInto(row, column, held[row], weight);
    }
  }
}

Value BodyWriter::loadRow(int64_t block, Value k, int64_t offset) {
  if (specialization.packedInput) {
    const int64_t rows = packedRows(kernel.isa, kernel.rows);
    Value begin = arith::MulIOp::create(builder, k, createIndex(builder, rows));
    return loadPackedInput(block * blockRows,
                           addConstant(builder, begin, offset * rows));
  }
  return loadInput({getRow(block), addConstant(builder, k, offset),
                    firstRows[block] * specialization.inputStride + offset});
}

Value BodyWriter::getRow(int64_t block) {
  Value row = createIndex(builder, firstRows[block]);
  // On x86-64 a row is a displacement from the first.
  if (architectureOf(kernel.isa) == CpuArchitecture::X86_64 ||
      holdsPointers(kernel.isa, kernel.rows))
    return row;
  return hide(row);
}

Value BodyWriter::loadColumn(int64_t block, Value position) {
  int64_t column = block * blockColumns;
  int64_t inPanel = column % packing.panel;
  int64_t offset = getColumnOffset(packing, inPanel);
  if (!panels.empty())
    return loadWeight(panels[column / packing.panel],
                      addConstant(builder, position, offset));
  // One pointer goes from panel to panel.
  if (column == 0)
    panelPosition = position;
  else if (inPanel == 0)
    panelPosition = hide(
        arith::AddIOp::create(builder, panelPosition, arguments.panelStride));
  return loadWeight(allPanels, addConstant(builder, panelPosition, offset));
}

/// A statement of no instructions that the compiler must not move, nor look
/// into: `value`, first of `operands`, may be another after it.
static Value createOpaque(ImplicitLocOpBuilder &builder, ValueRange operands,
                          StringRef constraint, StringRef clobbers) {
  std::string constraints = ("=" + constraint + ",0").str();
  for (size_t i = 1; i < operands.size(); ++i)
    constraints += ("," + constraint).str();
  constraints += clobbers;
  return LLVM::InlineAsmOp::create(
             builder, operands.front().getType(), operands, /*asm_string=*/"",
             constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
             ArrayAttr())
      .getResult(0);
}

Value BodyWriter::pinRegisters(ValueRange operands, StringRef constraint) {
  return createOpaque(builder, operands, constraint, ",~{memory}");
}

Value BodyWriter::hide(Value index) {
  Type i64 = builder.getI64Type();
  Value number = arith::IndexCastOp::create(builder, i64, index);
  number = createOpaque(builder, number, "r", "");
  return arith::IndexCastOp::create(builder, builder.getIndexType(), number);
}
