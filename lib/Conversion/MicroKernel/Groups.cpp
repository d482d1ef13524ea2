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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

GroupsWriter::GroupsWriter(ImplicitLocOpBuilder &builder,
                           const MicroKernelSpecialization &specialization,
                           const MicroKernelArguments &arguments)
    : VectorWriter(builder, specialization, arguments),
      storage(specialization.storage), group(specialization.group),
      numbersType(
          VectorType::get({numbersOfWord * lanes}, builder.getI8Type())),
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

Value GroupsWriter::pointerTo(Value address, int64_t offset) {
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  Value pointer = LLVM::IntToPtrOp::create(builder, pointerType, address);
  return LLVM::GEPOp::create(builder, pointerType, builder.getI8Type(), pointer,
                             LLVM::GEPArg(static_cast<int32_t>(offset)));
}

Value GroupsWriter::load(Type type, Value address, int64_t offset,
                         int64_t alignment) {
  return LLVM::LoadOp::create(builder, type, pointerTo(address, offset),
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

GroupsWriter::NumbersPlace GroupsWriter::placeOfNumbers(int64_t number,
                                                        int64_t column) const {
  NumbersPlace place{.panel = column / packing.panel,
                     .byte = (number * packing.panel + column % packing.panel) *
                             numbersOfWord};
  if (storage.number == NumberFormat::Int4) {
    place.high = place.byte / sharedLineBytes % 2 == 1;
    place.byte = place.byte / (2 * sharedLineBytes) * sharedLineBytes +
                 place.byte % sharedLineBytes;
  }
  return place;
}

GroupsWriter::Line GroupsWriter::loadLine(ArrayRef<Value> panels,
                                          int64_t number, int64_t block) {
  const NumbersPlace place = placeOfNumbers(number, block * blockColumns);
  if (!loaded || loadedPlace != std::pair(place.panel, place.byte)) {
    loadedPlace = {place.panel, place.byte};
    loaded = prepare(loadStored(panels, place));
  }
  return {loaded, place.high};
}

Value GroupsWriter::loadScales(ArrayRef<Value> panels, int64_t offset,
                               int64_t block) {
  const int64_t column = block * blockColumns;
  offset += column % packing.panel * bytesOf(storage.scale);
  Value panel = panels[column / packing.panel];
  auto type = VectorType::get({blockColumns}, builder.getF32Type());
  if (storage.scale == ScaleFormat::F32)
    return load(type, panel, offset, 1);
  Value halves = load(VectorType::get({blockColumns}, builder.getF16Type()),
                      panel, offset, 1);
  return arith::ExtFOp::create(builder, type, halves);
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

  if (specialization.prefetchLines > 0) {
    Type i64 = builder.getI64Type();
    Value distance = arith::SubIOp::create(builder, arguments.prefetchOffset,
                                           arguments.weightOffset);
    numbersAhead = arith::IndexCastOp::create(builder, i64, distance);
    scalesAhead =
        arith::IndexCastOp::create(builder, i64, arguments.prefetchStride);
  }
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, createIndex(builder, 0), arguments.k,
                                 createIndex(builder, group), carried);
  builder.setInsertionPointToStart(loop.getBody());
  carried.assign(loop.getRegionIterArgs().begin(),
                 loop.getRegionIterArgs().end());
  MutableArrayRef<Value> all(carried);
  const int64_t scales = scalesOffset(storage, packing.panel, group);
  prefetchPanels(all.take_front(panelCount), scalesAhead, scales,
                 llvm::divideCeil(bytes - scales, cacheLineBytes));
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
      sums.push_back(loadSum(row, block * blockColumns));
  return sums;
}

BodyWriter::Sums GroupsWriter::createGroupSums(Value rows, int64_t count) {
  Sums result;
  for (int64_t block = 0; block < rowBlocks(); ++block)
    result.append(count, createGroupSum(rows, block));
  return result;
}

void GroupsWriter::prefetchPanels(ArrayRef<Value> panels, Value distance,
                                  int64_t offset, int64_t lines) {
  if (!distance)
    return;
  for (Value panel : panels) {
    Value ahead = arith::AddIOp::create(builder, panel, distance);
    for (int64_t line = 0; line < lines; ++line)
      LLVM::Prefetch::create(
          builder, pointerTo(ahead, offset + line * cacheLineBytes), /*rw=*/0,
          localityOf(specialization.prefetchHint), /*cache=*/1);
  }
}

void GroupsWriter::prefetchQuads(ArrayRef<Value> panels, int64_t count) {
  const int64_t roundBytes = smallestGroup * packing.panel * storage.bits() / 8;
  const int64_t rounds = count * numbersOfWord / smallestGroup;
  for (int64_t round = 0; round < rounds; ++round)
    prefetchPanels(panels, numbersAhead, round * roundBytes,
                   specialization.prefetchLines);
}

void GroupsWriter::writeGroup(ArrayRef<Value> panels, Value rows,
                              MutableArrayRef<Value> sums) {
  Sums groupSums = createGroupSums(rows, columnBlocks);
  multiplyGroup(panels, rows, groupSums,
                [&](ArrayRef<Value> panels, Value rows, int64_t count,
                    MutableArrayRef<Value> groupSums) {
                  writeQuads(panels, rows, count, groupSums);
                });
  SmallVector<RowScales> held;
  for (int64_t row = 0; row < rowBlocks() && holdsRowScales(); ++row)
    held.push_back(loadRowScales(rows, row));
  auto scalesOf = [&](int64_t row) {
    return holdsRowScales() ? held[row] : loadRowScales(rows, row);
  };
  for (int64_t block = 0; block < columnBlocks; ++block) {
    const ColumnScales scales = loadColumnScales(panels, block);
    for (int64_t row = 0; row < rowBlocks(); ++row) {
      Value groupSum =
          finishGroupSum(groupSums[row * columnBlocks + block], rows, row);
      if (keepsSums()) {
        Value &sum = sums[row * columnBlocks + block];
        sum = addGroupSum(sum, groupSum, scales, scalesOf(row));
        continue;
      }
      const int64_t column = block * blockColumns;
      storeSum(
          addGroupSum(loadSum(row, column), groupSum, scales, scalesOf(row)),
          row, column);
    }
  }
}

void GroupsWriter::multiplyGroup(ArrayRef<Value> panels, Value rows,
                                 MutableArrayRef<Value> groupSums,
                                 QuadsWriter multiplyQuads) {
  const int64_t quads = group / numbersOfWord;
  // All quads of the usual groups; of longer ones as many at a time as share
  // no line with others.
  constexpr int64_t mostQuads = 16, fewestQuads = smallestGroup / numbersOfWord;
  const int64_t quadsOfRound =
      quads % (2 * fewestQuads) == 0 ? 2 * fewestQuads : fewestQuads;
  if (quads <= mostQuads) {
    multiplyQuads(panels, rows, quads, groupSums);
    return;
  }
  const int64_t panelBytes =
      quadsOfRound * numbersOfWord * packing.panel * storage.bits() / 8;
  SmallVector<Value> carried(panels);
  carried.push_back(rows);
  carried.append(groupSums.begin(), groupSums.end());
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, createIndex(builder, 0),
                                 createIndex(builder, quads),
                                 createIndex(builder, quadsOfRound), carried);
  builder.setInsertionPointToStart(loop.getBody());
  carried.assign(loop.getRegionIterArgs().begin(),
                 loop.getRegionIterArgs().end());
  MutableArrayRef<Value> all(carried);
  auto places = all.take_front(panels.size());
  multiplyQuads(places, all[panels.size()], quadsOfRound,
                all.drop_front(panels.size() + 1));
  for (Value &panel : places)
    panel = advance(panel, panelBytes);
  all[panels.size()] = advance(all[panels.size()], quadsOfRound * quadStride());
  scf::YieldOp::create(builder, carried);
  llvm::copy(loop.getResults().drop_front(panels.size() + 1),
             groupSums.begin());
}

void GroupsWriter::writeQuads(ArrayRef<Value> panels, Value rows, int64_t count,
                              MutableArrayRef<Value> groupSums) {
  auto multiplyInto = [&](int64_t row, int64_t block, Value input,
                          Value numbers) {
    Value &sum = groupSums[row * columnBlocks + block];
    sum = pin(multiply(sum, input, numbers), Value(), false);
  };
  prefetchQuads(panels, count);
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

GroupsWriter::ColumnScales
GroupsWriter::loadColumnScales(ArrayRef<Value> panels, int64_t block) {
  ColumnScales result;
  result.scales =
      loadScales(panels, scalesOffset(storage, packing.panel, group), block);
  if (hasMinima())
    result.minima = createMinima(panels, result.scales, block);
  return result;
}

Value GroupsWriter::addGroupSum(Value sum, Value groupSum,
                                const ColumnScales &columns,
                                const RowScales &rows) {
  Value product = scaleGroupSum(groupSum, rows);
  sum = vector::FMAOp::create(builder, product, columns.scales, sum);
  if (columns.minima)
    sum = vector::FMAOp::create(builder, rows.sums, columns.minima, sum);
  return pin(sum, Value(), false);
}
