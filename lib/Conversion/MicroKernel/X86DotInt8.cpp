//===- X86DotInt8.cpp - AVX512_VNNI micro-kernels -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Integers of a weight times integers of an input, in groups of k: products of
/// a group are summed exactly, in i32, and each such sum is scaled by both its
/// scales and added up in f32. Numbers of the weight have no sign, as vpdpbusd
/// takes them, with `storedZero` added: a group's sum begins with what makes up
/// for that.
///
//===----------------------------------------------------------------------===//

#include "Vector.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

/// Numbers of a column that lie together, and that one lane multiplies.
static constexpr int64_t quad = 4;
static constexpr int64_t wordBytes = 4;

namespace {

class DotInt8Writer final : public VectorWriter {
public:
  DotInt8Writer(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments)
      : VectorWriter(builder, specialization, arguments),
        storage(specialization.storage), group(specialization.group),
        groupSumType(VectorType::get({lanes}, builder.getI32Type())) {}

private:
  Sums multiplyAll(Sums sums) override;
  /// Adds the products of one group, whose columns' panels and rows begin at
  /// the addresses `panels` and `rows`.
  void writeGroup(ArrayRef<Value> panels, Value rows,
                  MutableArrayRef<Value> sums);
  /// What the sums of the group begin with.
  SmallVector<Value> createGroupSums(Value rows);
  /// Multiplies `count` quads from the one on that `panels` and `rows` are of.
  void writeQuads(ArrayRef<Value> panels, Value rows, int64_t count,
                  MutableArrayRef<Value> groupSums);
  void addGroupSums(ArrayRef<Value> panels, Value rows,
                    ArrayRef<Value> groupSums, MutableArrayRef<Value> sums);

  /// The numbers of quad `number` of the columns of register `block`.
  Value loadNumbers(ArrayRef<Value> panels, int64_t number, int64_t block);
  /// The scales or minima, which begin `offset` bytes into a group, of the
  /// columns of register `block`.
  Value loadScales(ArrayRef<Value> panels, int64_t offset, int64_t block);
  /// In every lane the word `offset` bytes from `address` on.
  Value broadcast(Type type, Value address, int64_t offset);

  Value load(Type type, Value address, int64_t offset, int64_t alignment);
  /// `address` as an integer, so that loops count it up.
  Value addressOf(Value buffer, Value element);
  Value advance(Value address, int64_t bytes);
  Value splat(int64_t value);

  bool hasMinima() const { return storage.offset == GroupOffset::Minimum; }
  bool sharesLines() const { return storage.number == NumberFormat::Int4; }
  /// Of a panel.
  int64_t linesOfQuad() const { return packing.panel / lanes; }
  int64_t startsOffset() const { return kernel.rows * group; }
  int64_t scalesOfRowsOffset() const {
    return startsOffset() + kernel.rows * wordBytes;
  }

  const StorageFormat storage;
  const int64_t group;
  VectorType groupSumType;
  /// The line that was loaded last, which two registers of numbers may share.
  std::pair<int64_t, int64_t> lineNumber;
  Value line;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value DotInt8Writer::addressOf(Value buffer, Value element) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, buffer);
  Value address = arith::AddIOp::create(builder, base, element);
  return arith::IndexCastOp::create(builder, builder.getI64Type(), address);
}

Value DotInt8Writer::advance(Value address, int64_t bytes) {
  Value distance = arith::ConstantIntOp::create(builder, bytes, 64);
  return arith::AddIOp::create(builder, address, distance);
}

Value DotInt8Writer::load(Type type, Value address, int64_t offset,
                          int64_t alignment) {
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  Value pointer = LLVM::IntToPtrOp::create(builder, pointerType, address);
  Value place =
      LLVM::GEPOp::create(builder, pointerType, builder.getI8Type(), pointer,
                          LLVM::GEPArg(static_cast<int32_t>(offset)));
  return LLVM::LoadOp::create(builder, type, place,
                              static_cast<unsigned>(alignment));
}

Value DotInt8Writer::broadcast(Type type, Value address, int64_t offset) {
  return vector::BroadcastOp::create(builder, VectorType::get({lanes}, type),
                                     load(type, address, offset, wordBytes));
}

Value DotInt8Writer::splat(int64_t value) {
  return arith::ConstantOp::create(
      builder,
      DenseElementsAttr::get(groupSumType, builder.getI32IntegerAttr(
                                               static_cast<int32_t>(value))));
}

Value DotInt8Writer::loadNumbers(ArrayRef<Value> panels, int64_t number,
                                 int64_t block) {
  const int64_t panel = block / linesOfQuad();
  int64_t position = number * linesOfQuad() + block % linesOfQuad();
  if (!sharesLines())
    return load(groupSumType, panels[panel], position * sharedLineBytes, 1);
  if (!line || lineNumber != std::pair(panel, position / 2)) {
    lineNumber = {panel, position / 2};
    line = load(groupSumType, panels[panel], position / 2 * sharedLineBytes, 1);
  }
  Value numbers = line;
  if (position % 2 == 1)
    numbers = arith::ShRUIOp::create(builder, numbers, splat(storage.bits()));
  return arith::AndIOp::create(builder, numbers, splat(0x0f0f0f0f));
}

Value DotInt8Writer::loadScales(ArrayRef<Value> panels, int64_t offset,
                                int64_t block) {
  const int64_t bytes = bytesOf(storage.scale);
  offset += block % linesOfQuad() * lanes * bytes;
  Value panel = panels[block / linesOfQuad()];
  if (storage.scale == ScaleFormat::F32)
    return load(sumType, panel, offset, 1);
  Value halves =
      load(VectorType::get({lanes}, builder.getF16Type()), panel, offset, 1);
  return arith::ExtFOp::create(builder, sumType, halves);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

BodyWriter::Sums DotInt8Writer::multiplyAll(Sums sums) {
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

SmallVector<Value> DotInt8Writer::createGroupSums(Value rows) {
  SmallVector<Value> result;
  for (int64_t row = 0; row < kernel.rows; ++row) {
    Value start = hasMinima() ? splat(0)
                              : broadcast(builder.getI32Type(), rows,
                                          startsOffset() + row * wordBytes);
    result.append(columnBlocks, start);
  }
  return result;
}

void DotInt8Writer::writeGroup(ArrayRef<Value> panels, Value rows,
                               MutableArrayRef<Value> sums) {
  SmallVector<Value> groupSums = createGroupSums(rows);
  const int64_t quads = group / quad;
  // All quads of the usual groups; of longer ones as many at a time as share
  // no line with others.
  constexpr int64_t mostQuads = 16, quadsOfRound = smallestGroup / quad;
  if (quads <= mostQuads) {
    writeQuads(panels, rows, quads, groupSums);
  } else {
    const int64_t lineBytes = sharedLineBytes / (sharesLines() ? 2 : 1);
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
      panel = advance(panel, quadsOfRound * linesOfQuad() * lineBytes);
    all[panels.size()] = advance(all[panels.size()], quadsOfRound * quad);
    scf::YieldOp::create(builder, carried);
    groupSums.assign(loop.getResults().begin() + panels.size() + 1,
                     loop.getResults().end());
  }
  addGroupSums(panels, rows, groupSums, sums);
}

void DotInt8Writer::writeQuads(ArrayRef<Value> panels, Value rows,
                               int64_t count,
                               MutableArrayRef<Value> groupSums) {
  auto bytes = VectorType::get({quad * lanes}, builder.getI8Type());
  auto multiply = [&](int64_t row, int64_t block, Value numbers, Value input) {
    Value &sum = groupSums[row * columnBlocks + block];
    Value operands[] = {sum, vector::BitCastOp::create(builder, bytes, numbers),
                        vector::BitCastOp::create(builder, bytes, input)};
    sum = LLVM::CallIntrinsicOp::create(
              builder, groupSumType,
              builder.getStringAttr("llvm.x86.avx512.vpdpbusd.512"), operands)
              .getResults();
    sum = pinRegisters(sum, "v");
  };
  auto loadRow = [&](int64_t row, int64_t number) {
    return broadcast(builder.getI32Type(), rows, row * group + number * quad);
  };
  line = Value();
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<Value> held;
    if (streamsInput()) {
      for (int64_t block = 0; block < columnBlocks; ++block)
        held.push_back(loadNumbers(panels, number, block));
      for (int64_t row = 0; row < kernel.rows; ++row) {
        Value input = loadRow(row, number);
        for (int64_t block = 0; block < columnBlocks; ++block)
          multiply(row, block, held[block], input);
      }
      continue;
    }
    for (int64_t row = 0; row < kernel.rows; ++row)
      held.push_back(loadRow(row, number));
    for (int64_t block = 0; block < columnBlocks; ++block) {
      Value numbers = loadNumbers(panels, number, block);
      for (int64_t row = 0; row < kernel.rows; ++row)
        multiply(row, block, numbers, held[row]);
    }
  }
}

void DotInt8Writer::addGroupSums(ArrayRef<Value> panels, Value rows,
                                 ArrayRef<Value> groupSums,
                                 MutableArrayRef<Value> sums) {
  Type f32 = builder.getF32Type();
  for (int64_t block = 0; block < columnBlocks; ++block) {
    Value scales =
        loadScales(panels, scalesOffset(storage, packing.panel, group), block);
    Value minima;
    if (hasMinima())
      minima = loadScales(panels, minimaOffset(storage, packing.panel, group),
                          block);
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
      sum = pinRegisters(sum, "v");
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
  InputRounding(LoopBuilder &b, const InputPiece &piece)
      : b(b), piece(piece), words(VectorType::get({width}, b.getI32Type())) {}

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
  VectorType words;
};

} // namespace

Value InputRounding::findLargest(Value row, Value firstK) {
  // As integers, magnitudes are in the same order, and what is no number is
  // beyond all.
  Value magnitude = splat(0x7fffffff);
  Value largest =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value bits = vector::BitCastOp::create(
                      b, words, loadInput(row, b.add(firstK, k)));
                  bits = arith::AndIOp::create(b, bits, magnitude);
                  return {arith::MaxSIOp::create(b, carried.front(), bits)};
                })
          .front();
  Value bits =
      vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, largest);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

void InputRounding::writeGroup(Value number, Value row) {
  constexpr float mostSteps = 127;
  // Below, their inverse is infinite: all numbers are 0.
  constexpr float smallestNumber = 1e-36f;
  Value firstK = b.mul(number, piece.group);
  Value largest = findLargest(row, firstK);
  Value scale = b.mulf(largest, b.constant(1 / mostSteps));
  Value isSome = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, largest,
                                       b.constant(smallestNumber));
  Value inverse = arith::SelectOp::create(
      b, isSome, arith::DivFOp::create(b, b.constant(mostSteps), largest),
      b.constant(0));
  // The last bits of a number that is rounded so far up are an integer's, to
  // the nearest, ties to even.
  constexpr float roundingNumber = 3 << 22;
  constexpr int32_t roundingBits = 0x4b400000;
  static_assert(std::bit_cast<float>(roundingBits) == roundingNumber);
  Value factor = b.broadcast(inverse, width);
  Value addend = b.splat(roundingNumber, width);
  Value groupPlace =
      b.add(piece.place,
            b.mul(b.mul(number, piece.group + packedGroupBytes), piece.rows));
  Value rowPlace = b.add(groupPlace, b.mul(row, piece.group));
  auto bytes = VectorType::get({width}, b.getI8Type());
  Value sums =
      b.forLoop(b.index(0), b.index(piece.group), width, splat(0),
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  Value values = loadInput(row, b.add(firstK, k));
                  Value integers = vector::BitCastOp::create(
                      b, words, b.fma(values, factor, addend));
                  vector::StoreOp::create(
                      b, arith::TruncIOp::create(b, bytes, integers),
                      piece.packed, ValueRange{b.index(0), b.add(rowPlace, k)});
                  integers =
                      arith::SubIOp::create(b, integers, splat(roundingBits));
                  return {arith::AddIOp::create(b, carried.front(), integers)};
                })
          .front();
  Value sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums);
  if (piece.storage.offset == GroupOffset::Minimum) {
    sum = b.mulf(scale, arith::SIToFPOp::create(b, b.getF32Type(), sum));
  } else {
    Value zero =
        arith::ConstantIntOp::create(b, -piece.storage.storedZero(), 32);
    sum = arith::MulIOp::create(b, sum, zero);
  }
  Value startsPlace = b.add(groupPlace, b.mul(piece.rows, piece.group));
  Value startPlace = b.add(startsPlace, b.mul(row, wordBytes));
  storeWord(sum, startPlace);
  storeWord(scale, b.add(startPlace, b.mul(piece.rows, wordBytes)));
}

static void emitRounding(LoopBuilder &b, const Packing & /*packing*/,
                         const InputPiece &piece) {
  InputRounding rounding(b, piece);
  b.forLoop(b.index(0), b.div(piece.k, piece.group), 1, [&](Value number) {
    b.forLoop(b.index(0), piece.rows, 1,
              [&](Value row) { rounding.writeGroup(number, row); });
  });
}

const MicroKernelEmitter &sandwich::getX86DotInt8Emitter() {
  static const BodyWriterEmitter<DotInt8Writer, emitRounding> emitter;
  return emitter;
}
