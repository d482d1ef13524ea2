//===- Groups.cpp - Micro-kernels of quantized weights -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

/// Numbers of a column that lie together.
static constexpr int64_t numbersOfQuad = 4;
static constexpr int64_t wordBytes = 4;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

GroupsWriter::GroupsWriter(ImplicitLocOpBuilder &builder,
                           const MicroKernelSpecialization &specialization,
                           const MicroKernelArguments &arguments)
    : VectorWriter(builder, specialization, arguments),
      storage(specialization.storage), group(specialization.group),
      numbersType(
          VectorType::get({numbersOfQuad * lanes}, builder.getI8Type())),
      wordsType(VectorType::get({lanes}, builder.getI32Type())) {}

Value GroupsWriter::addressOf(Value buffer, Value element) {
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, buffer);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, buffer);
  const int64_t bytes =
      cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8;
  element = arith::AddIOp::create(builder, metadata.getOffset(), element);
  Value address = arith::AddIOp::create(
      builder, base,
      arith::MulIOp::create(builder, element, createIndex(builder, bytes)));
  return arith::IndexCastOp::create(builder, builder.getI64Type(), address);
}

Value GroupsWriter::advance(Value address, int64_t bytes) {
  Value distance = arith::ConstantIntOp::create(builder, bytes, 64);
  return arith::AddIOp::create(builder, address, distance);
}

Value GroupsWriter::load(Type type, Value address, int64_t offset,
                         int64_t alignment) {
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  Value pointer = LLVM::IntToPtrOp::create(builder, pointerType, address);
  Value place =
      LLVM::GEPOp::create(builder, pointerType, builder.getI8Type(), pointer,
                          LLVM::GEPArg(static_cast<int32_t>(offset)));
  return LLVM::LoadOp::create(builder, type, place,
                              static_cast<unsigned>(alignment));
}

Value GroupsWriter::broadcast(Type type, Value address, int64_t offset) {
  return vector::BroadcastOp::create(builder, VectorType::get({lanes}, type),
                                     load(type, address, offset, wordBytes));
}

Value GroupsWriter::splatBytes(int64_t value) {
  return arith::ConstantOp::create(
      builder,
      DenseElementsAttr::get(
          numbersType, builder.getI8IntegerAttr(static_cast<int8_t>(value))));
}

Value GroupsWriter::splatWords(int64_t value) {
  return arith::ConstantOp::create(
      builder,
      DenseElementsAttr::get(
          wordsType, builder.getI32IntegerAttr(static_cast<int32_t>(value))));
}

GroupsWriter::Line GroupsWriter::loadLine(ArrayRef<Value> panels,
                                          int64_t number, int64_t block) {
  const int64_t panel = block / blocksOfPanel();
  int64_t byte = (number * packing.panel + block % blocksOfPanel() * lanes) *
                 numbersOfQuad;
  bool high = false;
  if (sharesLines()) {
    high = byte / sharedLineBytes % 2 == 1;
    byte =
        byte / (2 * sharedLineBytes) * sharedLineBytes + byte % sharedLineBytes;
  }
  if (!loaded || loadedPlace != std::pair(panel, byte)) {
    loadedPlace = {panel, byte};
    loaded = prepare(load(numbersType, panels[panel], byte, 1));
  }
  return {loaded, high};
}

Value GroupsWriter::loadScales(ArrayRef<Value> panels, int64_t offset,
                               int64_t block) {
  const int64_t bytes = bytesOf(storage.scale);
  offset += block % blocksOfPanel() * lanes * bytes;
  Value panel = panels[block / blocksOfPanel()];
  if (storage.scale == ScaleFormat::F32)
    return load(sumType, panel, offset, 1);
  Value halves =
      load(VectorType::get({lanes}, builder.getF16Type()), panel, offset, 1);
  return arith::ExtFOp::create(builder, sumType, halves);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

StringRef GroupsWriter::registerConstraint() const {
  return architectureOf(kernel.isa) == CpuArchitecture::X86_64 ? "v" : "w";
}

Value GroupsWriter::pin(Value sum, Value /*streamed*/, bool /*usedOnce*/) {
  return pinRegisters(sum, registerConstraint());
}

Value GroupsWriter::call(Type type, StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, type,
                                       builder.getStringAttr(name), operands)
      .getResults();
}

BodyWriter::Sums GroupsWriter::multiplyAll(Sums sums) {
  const int64_t bytes = groupBytes(storage, packing.panel, group);
  const int64_t panelCount = kernel.columns / packing.panel;
  Sums carried;
  for (int64_t panel = 0; panel < panelCount; ++panel) {
    Value distance = arith::MulIOp::create(builder, arguments.panelStride,
                                           createIndex(builder, panel));
    carried.push_back(addressOf(
        arguments.weight,
        arith::AddIOp::create(builder, arguments.weightOffset, distance)));
  }
  carried.push_back(getRows());
  if (keepsSums())
    carried.append(sums);
  else
    storeSums(sums);

  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, createIndex(builder, 0), arguments.k,
                                 createIndex(builder, group), carried);
  builder.setInsertionPointToStart(loop.getBody());
  carried.assign(loop.getRegionIterArgs().begin(),
                 loop.getRegionIterArgs().end());
  MutableArrayRef<Value> all(carried);
  writeGroup(all.take_front(panelCount), all[panelCount],
             all.drop_front(panelCount + 1));
  for (Value &panel : all.take_front(panelCount))
    panel = advance(panel, bytes);
  all[panelCount] = advance(all[panelCount], groupStride());
  scf::YieldOp::create(builder, carried);
  if (keepsSums())
    return Sums(loop.getResults().drop_front(panelCount + 1));
  builder.setInsertionPointAfter(loop);
  sums.clear();
  for (int64_t row = 0; row < kernel.rows; ++row)
    for (int64_t block = 0; block < columnBlocks; ++block)
      sums.push_back(loadSum(row, block * lanes));
  return sums;
}

BodyWriter::Sums GroupsWriter::createGroupSums(Value rows) {
  Sums result;
  for (int64_t row = 0; row < kernel.rows; ++row)
    result.append(columnBlocks, createGroupSum(rows, row));
  return result;
}

void GroupsWriter::writeGroup(ArrayRef<Value> panels, Value rows,
                              MutableArrayRef<Value> sums) {
  SmallVector<Value> groupSums = createGroupSums(rows);
  const int64_t quads = group / numbersOfQuad;
  // All quads of the usual groups; of longer ones as many at a time as share
  // no line with others.
  constexpr int64_t mostQuads = 16,
                    quadsOfRound = smallestGroup / numbersOfQuad;
  if (quads <= mostQuads) {
    writeQuads(panels, rows, quads, groupSums);
  } else {
    const int64_t panelBytes =
        quadsOfRound * numbersOfQuad * packing.panel * storage.bits() / 8;
    SmallVector<Value> carried(panels);
    carried.push_back(rows);
    carried.append(groupSums);
    OpBuilder::InsertionGuard guard(builder);
    auto loop = scf::ForOp::create(builder, createIndex(builder, 0),
                                   createIndex(builder, quads),
                                   createIndex(builder, quadsOfRound), carried);
    builder.setInsertionPointToStart(loop.getBody());
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    MutableArrayRef<Value> all(carried);
    auto places = all.take_front(panels.size());
    writeQuads(places, all[panels.size()], quadsOfRound,
               all.drop_front(panels.size() + 1));
    for (Value &panel : places)
      panel = advance(panel, panelBytes);
    all[panels.size()] =
        advance(all[panels.size()], quadsOfRound * quadStride());
    scf::YieldOp::create(builder, carried);
    groupSums.assign(loop.getResults().begin() + panels.size() + 1,
                     loop.getResults().end());
  }
  addGroupSums(panels, rows, groupSums, sums);
}

void GroupsWriter::writeQuads(ArrayRef<Value> panels, Value rows, int64_t count,
                              MutableArrayRef<Value> groupSums) {
  auto multiplyInto = [&](int64_t row, int64_t block, Value input,
                          Value numbers) {
    Value &sum = groupSums[row * columnBlocks + block];
    sum = pin(multiply(sum, input, numbers), Value(), false);
  };
  // Where a line passes for one part only, no register keeps it.
  const bool keepsLines = parts() > 1;
  loaded = Value();
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<Line> lines;
    for (int64_t block = 0; block < columnBlocks && keepsLines; ++block)
      lines.push_back(loadLine(panels, number, block));
    auto lineOf = [&](int64_t block) {
      return keepsLines ? lines[block] : loadLine(panels, number, block);
    };
    for (int64_t part = 0; part < parts(); ++part) {
      SmallVector<Value> held;
      if (streamsInput()) {
        for (int64_t block = 0; block < columnBlocks; ++block)
          for (int64_t digit = 0; digit < digits(); ++digit)
            held.push_back(extract(lineOf(block), part, digit));
        for (int64_t row = 0; row < kernel.rows; ++row) {
          Value input = loadQuad(rows, row, number, part);
          for (int64_t i = 0; i < columnBlocks * digits(); ++i)
            multiplyInto(row, i / digits(), input, held[i]);
        }
        continue;
      }
      for (int64_t row = 0; row < kernel.rows; ++row)
        held.push_back(loadQuad(rows, row, number, part));
      for (int64_t block = 0; block < columnBlocks; ++block) {
        for (int64_t digit = 0; digit < digits(); ++digit) {
          Value numbers = extract(lineOf(block), part, digit);
          for (int64_t row = 0; row < kernel.rows; ++row)
            multiplyInto(row, block, held[row], numbers);
        }
      }
    }
  }
}

Value GroupsWriter::createMinima(ArrayRef<Value> panels, Value scales,
                                 int64_t block) {
  Value minima =
      loadScales(panels, minimaOffset(storage, packing.panel, group), block);
  if (extractedOffset() == 0)
    return minima;
  Value offset = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(
                   sumType, builder.getF32FloatAttr(
                                static_cast<float>(extractedOffset()))));
  return vector::FMAOp::create(builder, scales, offset, minima);
}

void GroupsWriter::addGroupSums(ArrayRef<Value> panels, Value rows,
                                ArrayRef<Value> groupSums,
                                MutableArrayRef<Value> sums) {
  for (int64_t block = 0; block < columnBlocks; ++block) {
    Value scales =
        loadScales(panels, scalesOffset(storage, packing.panel, group), block);
    Value minima;
    if (hasMinima())
      minima = createMinima(panels, scales, block);
    for (int64_t row = 0; row < kernel.rows; ++row) {
      const int64_t place = row * columnBlocks + block;
      Value sum = keepsSums() ? sums[place] : loadSum(row, block * lanes);
      Value product = scaleGroupSum(groupSums[place], rows, row);
      sum = vector::FMAOp::create(builder, product, scales, sum);
      if (minima)
        sum = vector::FMAOp::create(builder, sumOfRow(rows, row), minima, sum);
      sum = pin(sum, Value(), false);
      if (keepsSums())
        sums[place] = sum;
      else
        storeSum(sum, row, block * lanes);
    }
  }
}
