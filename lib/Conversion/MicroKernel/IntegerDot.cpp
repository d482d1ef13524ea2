//===- IntegerDot.cpp - Micro-kernels of integers -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegerDot.h"

#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace sandwich;

/// Numbers of a column that lie together, and that one lane multiplies.
static constexpr int64_t numbersOfWord = 4;
static constexpr int64_t wordBytes = 4;
static_assert(packedGroupLength(0) == 2 * wordBytes);
// The products of a group, a whole row maybe, of numbers without a sign.
static_assert(255 * 127 * largestGroup <= std::numeric_limits<int32_t>::max());

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

IntegerDotWriter::IntegerDotWriter(
    ImplicitLocOpBuilder &builder,
    const MicroKernelSpecialization &specialization,
    const MicroKernelArguments &arguments)
    : VectorWriter(builder, specialization, arguments),
      storage(specialization.storage),
      numbersType(
          VectorType::get({numbersOfWord * lanes}, builder.getI8Type())),
      groupSumType(VectorType::get({lanes}, builder.getI32Type())),
      group(specialization.group) {}

int64_t IntegerDotWriter::startsOffset() const { return kernel.rows * group; }

int64_t IntegerDotWriter::scalesOfRowsOffset() const {
  return startsOffset() + kernel.rows * wordBytes;
}

Value IntegerDotWriter::addressOf(Value buffer, Value element) {
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, buffer);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, buffer);
  Value address = arith::AddIOp::create(
      builder, base,
      arith::AddIOp::create(builder, metadata.getOffset(), element));
  return arith::IndexCastOp::create(builder, builder.getI64Type(), address);
}

Value IntegerDotWriter::advance(Value address, int64_t bytes) {
  Value distance = arith::ConstantIntOp::create(builder, bytes, 64);
  return arith::AddIOp::create(builder, address, distance);
}

Value IntegerDotWriter::load(Type type, Value address, int64_t offset,
                             int64_t alignment) {
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  Value pointer = LLVM::IntToPtrOp::create(builder, pointerType, address);
  Value place =
      LLVM::GEPOp::create(builder, pointerType, builder.getI8Type(), pointer,
                          LLVM::GEPArg(static_cast<int32_t>(offset)));
  return LLVM::LoadOp::create(builder, type, place,
                              static_cast<unsigned>(alignment));
}

Value IntegerDotWriter::broadcast(Type type, Value address, int64_t offset) {
  return vector::BroadcastOp::create(builder, VectorType::get({lanes}, type),
                                     load(type, address, offset, wordBytes));
}

Value IntegerDotWriter::splatBytes(int64_t value) {
  return arith::ConstantOp::create(
      builder,
      DenseElementsAttr::get(
          numbersType, builder.getI8IntegerAttr(static_cast<int8_t>(value))));
}

Value IntegerDotWriter::loadNumbers(ArrayRef<Value> panels, int64_t number,
                                    int64_t block) {
  const int64_t panel = block / blocksOfPanel();
  int64_t byte = (number * packing.panel + block % blocksOfPanel() * lanes) *
                 numbersOfWord;
  bool high = false;
  if (sharesLines()) {
    high = byte / sharedLineBytes % 2 == 1;
    byte =
        byte / (2 * sharedLineBytes) * sharedLineBytes + byte % sharedLineBytes;
  }
  if (!loaded || loadedPlace != std::pair(panel, byte)) {
    loadedPlace = {panel, byte};
    loaded = load(numbersType, panels[panel], byte, 1);
  }
  return extract(loaded, high);
}

Value IntegerDotWriter::loadScales(ArrayRef<Value> panels, int64_t offset,
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

Value IntegerDotWriter::call(Type type, StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, type,
                                       builder.getStringAttr(name), operands)
      .getResults();
}

Value IntegerDotWriter::extractUnsigned(Value bytes, bool high) {
  if (storage.number == NumberFormat::Int8)
    return bytes;
  if (high) {
    // There are no shifts of bytes; the mask takes away what came from others.
    Value words = vector::BitCastOp::create(builder, groupSumType, bytes);
    Value distance = arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(groupSumType, builder.getI32IntegerAttr(4)));
    words = arith::ShRUIOp::create(builder, words, distance);
    bytes = vector::BitCastOp::create(builder, numbersType, words);
  }
  return arith::AndIOp::create(builder, bytes, splatBytes(0x0f));
}

int64_t sandwich::signedOffsetOf(const StorageFormat &storage) {
  return storage.number == NumberFormat::Int8 ? storage.storedZero() : 0;
}

BodyWriter::Sums IntegerDotWriter::multiplyAll(Sums sums) {
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
  carried.push_back(addressOf(arguments.input, arguments.firstK));
  carried.append(sums);

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
  all[panelCount] = advance(
      all[panelCount], packedLength(kernel.isa, group, group) * kernel.rows);
  scf::YieldOp::create(builder, carried);
  return Sums(loop.getResults().drop_front(panelCount + 1));
}

BodyWriter::Sums IntegerDotWriter::createGroupSums(Value rows) {
  Sums result;
  Value zero =
      arith::ConstantOp::create(builder, builder.getZeroAttr(groupSumType));
  for (int64_t row = 0; row < kernel.rows; ++row) {
    Value start = hasMinima() ? zero
                              : broadcast(builder.getI32Type(), rows,
                                          startsOffset() + row * wordBytes);
    result.append(columnBlocks, start);
  }
  return result;
}

void IntegerDotWriter::writeGroup(ArrayRef<Value> panels, Value rows,
                                  MutableArrayRef<Value> sums) {
  SmallVector<Value> groupSums = createGroupSums(rows);
  const int64_t quads = group / numbersOfWord;
  // All quads of the usual groups; of longer ones as many at a time as share
  // no line with others.
  constexpr int64_t mostQuads = 16,
                    quadsOfRound = smallestGroup / numbersOfWord;
  if (quads <= mostQuads) {
    writeQuads(panels, rows, quads, groupSums);
  } else {
    const int64_t panelBytes =
        quadsOfRound * numbersOfWord * packing.panel * storage.bits() / 8;
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
        advance(all[panels.size()], quadsOfRound * numbersOfWord);
    scf::YieldOp::create(builder, carried);
    groupSums.assign(loop.getResults().begin() + panels.size() + 1,
                     loop.getResults().end());
  }
  addGroupSums(panels, rows, groupSums, sums);
}

void IntegerDotWriter::writeQuads(ArrayRef<Value> panels, Value rows,
                                  int64_t count,
                                  MutableArrayRef<Value> groupSums) {
  auto multiplyInto = [&](int64_t row, int64_t block, Value numbers,
                          Value input) {
    Value &sum = groupSums[row * columnBlocks + block];
    sum = pin(multiply(sum, input, numbers), Value(), false);
  };
  auto loadRow = [&](int64_t row, int64_t number) {
    Value word = broadcast(builder.getI32Type(), rows,
                           row * group + number * numbersOfWord);
    return vector::BitCastOp::create(builder, numbersType, word).getResult();
  };
  loaded = Value();
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<Value> held;
    if (streamsInput()) {
      for (int64_t block = 0; block < columnBlocks; ++block)
        held.push_back(loadNumbers(panels, number, block));
      for (int64_t row = 0; row < kernel.rows; ++row) {
        Value input = loadRow(row, number);
        for (int64_t block = 0; block < columnBlocks; ++block)
          multiplyInto(row, block, held[block], input);
      }
      continue;
    }
    for (int64_t row = 0; row < kernel.rows; ++row)
      held.push_back(loadRow(row, number));
    for (int64_t block = 0; block < columnBlocks; ++block) {
      Value numbers = loadNumbers(panels, number, block);
      for (int64_t row = 0; row < kernel.rows; ++row)
        multiplyInto(row, block, numbers, held[row]);
    }
  }
}

Value IntegerDotWriter::createMinima(ArrayRef<Value> panels, Value scales,
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

void IntegerDotWriter::addGroupSums(ArrayRef<Value> panels, Value rows,
                                    ArrayRef<Value> groupSums,
                                    MutableArrayRef<Value> sums) {
  Type f32 = builder.getF32Type();
  for (int64_t block = 0; block < columnBlocks; ++block) {
    Value scales =
        loadScales(panels, scalesOffset(storage, packing.panel, group), block);
    Value minima;
    if (hasMinima())
      minima = createMinima(panels, scales, block);
    for (int64_t row = 0; row < kernel.rows; ++row) {
      Value &sum = sums[row * columnBlocks + block];
      Value scaleOfRow =
          broadcast(f32, rows, scalesOfRowsOffset() + row * wordBytes);
      Value product = arith::SIToFPOp::create(
          builder, sumType, groupSums[row * columnBlocks + block]);
      product = arith::MulFOp::create(builder, product, scaleOfRow);
      sum = vector::FMAOp::create(builder, product, scales, sum);
      if (minima) {
        Value sumOfRow = broadcast(f32, rows, startsOffset() + row * wordBytes);
        sum = vector::FMAOp::create(builder, sumOfRow, minima, sum);
      }
      sum = pin(sum, Value(), false);
    }
  }
}

//===----------------------------------------------------------------------===//
// The input
//===----------------------------------------------------------------------===//

namespace {

/// Rounds the groups of rows.
class InputRounding {
public:
  InputRounding(LoopBuilder &b, const InputPiece &piece,
                int64_t extractedOffset)
      : b(b), piece(piece), extractedOffset(extractedOffset),
        words(VectorType::get({width}, b.getI32Type())) {}

  /// Group `number` of row `row`.
  void writeGroup(Value number, Value row);

private:
  static constexpr int64_t width = 16;
  static_assert(smallestGroup % width == 0);

  Value splat(int32_t value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
  }
  Value loadInput(Value row, Value k) {
    return b.loadVector(piece.input,
                        {b.add(piece.firstRow, row), b.add(piece.firstK, k)},
                        width);
  }
  /// The largest magnitude of a group; no number, or infinite, if one is.
  Value findLargest(Value row, Value firstK);
  void storeWord(Value word, Value place) {
    auto one = VectorType::get({1}, word.getType());
    auto bytes = VectorType::get({wordBytes}, b.getI8Type());
    Value vector = vector::BroadcastOp::create(b, one, word);
    vector::StoreOp::create(b, vector::BitCastOp::create(b, bytes, vector),
                            piece.packed, ValueRange{b.index(0), place});
  }

  LoopBuilder &b;
  const InputPiece &piece;
  int64_t extractedOffset;
  VectorType words;
};

} // namespace

Value InputRounding::findLargest(Value row, Value firstK) {
  Value largest =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value bits =
                      magnitudeBits(b, loadInput(row, b.add(firstK, k)));
                  return {arith::MaxSIOp::create(b, carried.front(), bits)};
                })
          .front();
  Value bits =
      vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, largest);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

void InputRounding::writeGroup(Value number, Value row) {
  Value firstK = b.mul(number, piece.group);
  auto [scale, inverse] = scaleToInt8(b, findLargest(row, firstK));
  Value factor = b.broadcast(inverse, width);
  Value groupPlace =
      b.add(piece.place,
            b.mul(b.mul(number, packedGroupLength(piece.group)), piece.rows));
  Value rowPlace = b.add(groupPlace, b.mul(row, piece.group));
  auto bytes = VectorType::get({width}, b.getI8Type());
  Value sums =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value values = loadInput(row, b.add(firstK, k));
                  Value integers = roundToIntegers(b, values, factor);
                  vector::StoreOp::create(
                      b, arith::TruncIOp::create(b, bytes, integers),
                      piece.packed, ValueRange{b.index(0), b.add(rowPlace, k)});
                  integers = arith::SubIOp::create(b, integers,
                                                   splat(integerRoundingBits));
                  return {arith::AddIOp::create(b, carried.front(), integers)};
                })
          .front();
  Value sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums);
  if (piece.storage.offset == GroupOffset::Minimum) {
    sum = b.mulf(scale, arith::SIToFPOp::create(b, b.getF32Type(), sum));
  } else {
    Value zero = arith::ConstantIntOp::create(
        b, extractedOffset - piece.storage.storedZero(), 32);
    sum = arith::MulIOp::create(b, sum, zero);
  }
  Value startsPlace = b.add(groupPlace, b.mul(piece.rows, piece.group));
  Value startPlace = b.add(startsPlace, b.mul(row, wordBytes));
  storeWord(sum, startPlace);
  storeWord(scale, b.add(startPlace, b.mul(piece.rows, wordBytes)));
}

void sandwich::emitRounding(LoopBuilder &b, const InputPiece &piece,
                            int64_t extractedOffset) {
  InputRounding rounding(b, piece, extractedOffset);
  b.forLoop(b.index(0), b.div(piece.k, piece.group), 1, [&](Value number) {
    b.forLoop(b.index(0), piece.rows, 1,
              [&](Value row) { rounding.writeGroup(number, row); });
  });
}
