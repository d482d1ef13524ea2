//===- ThreadPart.cpp - What a thread does of a matmul --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPart.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"
#include "sandwich/Scheduling/NestParameters.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"

using namespace mlir;
using namespace sandwich;

/// Whether the rows of `buffer` are contiguous and at a static distance, or an
/// error on `op`.
static LogicalResult checkRows(gemm::MatmulOp op, Value buffer,
                               StringRef name) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(buffer.getType());
  if (failed(type.getStridesAndOffset(strides, offset)) || strides[1] != 1 ||
      ShapedType::isDynamic(strides[0]))
    return op.emitOpError("needs ")
           << name << " with contiguous rows at a static distance, not "
           << type;
  return success();
}

FailureOr<phase::ProgramAttr>
sandwich::getLowerableProgram(gemm::MatmulOp op,
                              SymbolTableCollection &symbols) {
  if (!op.getDestination())
    return op.emitOpError("must be in buffer form to become loops");
  auto function = op->getParentOfType<func::FuncOp>();
  phase::ProgramAttr program =
      function ? phase::getProgram(function) : phase::ProgramAttr();
  if (!program)
    return op.emitOpError("must be inside a phase program to become loops");
  if (!op.getSchedules())
    return op.emitOpError("needs schedules to become loops");
  lm::WeightOp weight = lm::lookupWeight(symbols, op, op.getWeightAttr());
  if (!weight.getPackingAttr() || !weight.getOffset())
    return op.emitOpError("needs a weight with a packing and a place: ")
           << op.getWeightAttr();
  for (FlatSymbolRefAttr name :
       {op.getBiasAttr(), op.getQueryNormAttr(), op.getKeyNormAttr()}) {
    if (name && !lm::lookupWeight(symbols, op, name).getOffset())
      return op.emitOpError("needs the place of weight ")
             << name << " in the artifact";
  }
  if (failed(checkRows(op, op.getInput(), "an input")) ||
      failed(checkRows(op, op.getDestination(), "a destination")) ||
      (op.getResidual() &&
       failed(checkRows(op, op.getResidual(), "a residual"))))
    return failure();
  for (gemm::ScheduleAttr schedule : op.getSchedules()->getSchedules()) {
    auto [tM, tN, tK] = schedule.getSchedule().threads;
    if (tM * tN * tK > program.getThreads())
      return op.emitOpError("has a schedule for ")
             << tM * tN * tK << " threads, the program has "
             << program.getThreads();
  }
  if (Value parameters = op.getParameters()) {
    auto type = cast<MemRefType>(parameters.getType());
    const int64_t needed = numbersBeforePart(program.getThreads());
    if (type.hasStaticShape() && type.getDimSize(0) < needed)
      return op.emitOpError("needs ")
             << needed << " parameters for " << program.getThreads()
             << " threads, not " << type.getDimSize(0);
  }
  return program;
}

FailureOr<Schedule> sandwich::getOnlySchedule(gemm::MatmulOp op) {
  ArrayRef<gemm::ScheduleAttr> schedules = op.getSchedules()->getSchedules();
  if (schedules.size() != 1)
    return op.emitOpError("has several schedules; run gemm-dispatch first");
  return schedules.front().getSchedule();
}

PartBuilder::PartBuilder(gemm::MatmulOp op, phase::ProgramAttr program,
                         SymbolTableCollection &symbols)
    : builder(op.getLoc(), op), op(op), program(program), symbols(symbols),
      shape(gemm::getShape(op, symbols)) {
  columns = lm::lookupWeight(symbols, op, op.getWeightAttr()).getStoredRows();
  unit = columnUnitOf(shape, *shape.packing);
  tokens = memref::DimOp::create(builder, op.getInput(), builder.index(0));
}

FailureOr<Schedule> PartBuilder::clipSlice() const {
  FailureOr<Schedule> only = getOnlySchedule(op);
  if (failed(only))
    return failure();
  Result<Schedule> fitting =
      fitSlice(*only, shape, columns, program.getMaxTokens());
  if (!fitting)
    return op->emitOpError("cannot be divided: ") << fitting.error().message;
  return *fitting;
}

Part<Value> PartBuilder::loadPart(Value thread) {
  static_assert(sizeof(ThreadPart) == 7 * sizeof(int64_t));
  constexpr int64_t begin = numbersBeforePart(0);
  Value first =
      builder.add(builder.mul(thread, numbersBeforePart(1) - begin), begin);
  auto load = [&](size_t offset) -> Value {
    return memref::LoadOp::create(
        builder, op.getParameters(),
        builder.add(first, static_cast<int64_t>(offset / sizeof(int64_t))));
  };
  return {load(offsetof(ThreadPart, rowBegin)),
          load(offsetof(ThreadPart, rowEnd)),
          load(offsetof(ThreadPart, columnBegin)),
          load(offsetof(ThreadPart, columnEnd)),
          load(offsetof(ThreadPart, kBegin)),
          load(offsetof(ThreadPart, kEnd)),
          load(offsetof(ThreadPart, partOfK))};
}

FailureOr<gemm::NestOp> PartBuilder::createNest() {
  FailureOr<Schedule> schedule = clipSlice();
  if (failed(schedule))
    return failure();
  int64_t tM = schedule->threads[0];
  auto function = op->getParentOfType<func::FuncOp>();
  Value thread = phase::getArgument(function, phase::ProgramArgument::Thread);

  Part<Value> part = op.getParameters()
                         ? loadPart(thread)
                         : partOfThread(builder,
                                        divisionOf(shape, *shape.packing,
                                                   schedule->threads, columns),
                                        tokens, thread);
  partOfK = part.partOfK;

  std::array<int64_t, 2> rowsBetween = {0, program.getMaxTokens()};
  if (std::optional<ArrayRef<int64_t>> between = op.getTokensBetween())
    rowsBetween = {(*between)[0],
                   std::min((*between)[1], program.getMaxTokens())};
  rowsBetween[0] /= tM;
  rowsBetween[1] = divideUp(rowsBetween[1], tM);

  Value weight =
      getWeightSlice(builder, symbols, op, op.getWeightAttr(), op.getLayer());
  // Of floats, the type tells both.
  lm::StorageAttr storage =
      lm::lookupWeight(symbols, op, op.getWeightAttr()).getStorageAttr();
  gemm::PackingAttr packing;
  if (storage)
    packing = gemm::PackingAttr::get(op.getContext(), *shape.packing);
  auto nest = gemm::NestOp::create(
      builder, op.getInput(), weight,
      {part.rowBegin, part.rowEnd, part.columnBegin, part.columnEnd,
       part.kBegin, part.kEnd},
      op.getParameters(), *schedule, unit, rowsBetween, storage, packing);
  builder.setInsertionPointToStart(nest.getBody());
  return nest;
}
