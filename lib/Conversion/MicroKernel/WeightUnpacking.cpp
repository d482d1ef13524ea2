//===- WeightUnpacking.cpp - Copies of quantized weights ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightUnpacking.h"

#include "sandwich/Dialect/Utils/Float8.h"
#include "sandwich/Dialect/Utils/IntegerRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

std::string WeightUnpacking::name() const {
  std::string text =
      "unpack_" + storage.name() + "_group" + std::to_string(group) + "_panel" +
      std::to_string(to.panel) + "_to_" + std::string(sandwich::name(element)) +
      "x" + std::to_string(to.kPack);
  if (to.tile != to.panel)
    text += "_tiles";
  if (groupOfCopy > 0)
    text += "_group" + std::to_string(groupOfCopy);
  std::ranges::replace(text, '-', '_');
  return text;
}

/// How integers in longer groups are stored.
static StorageFormat storageOfCopy(const WeightUnpacking &unpacking) {
  return {.number = NumberFormat::Int8,
          .groupSize = unpacking.groupOfCopy,
          .scale = ScaleFormat::F32};
}

namespace {

/// Writes the body of one function that copies numbers of 4 bits to 8 bits in
/// longer groups, whose scales are those of the largest value that each column
/// can have. A number times the quotient of both scales, of 16 bits, is a
/// number of the copy and its fraction.
class RegroupingWriter : StoredGroups {
public:
  using StoredGroups::StoredGroups;

  /// The group of the copy at byte `place`, of those that begin at `from`.
  void writeGroup(Value from, Value place);

private:
  /// What numbers of the copy have behind the point, and what is added to all:
  /// their zero and a half.
  static constexpr int64_t fractionBits = 8;
  static constexpr int32_t offset = (128 << fractionBits) + 128;

  /// The byte that group `number` of those that become one begins at.
  Value groupAt(Value from, Value number) {
    return b.add(from,
                 b.mul(number, groupBytes(unpacking.storage, unpacking.to.panel,
                                          unpacking.group)));
  }
  int64_t groups() const { return unpacking.groupOfCopy / unpacking.group; }
  /// The largest magnitude of any number of 16 columns from `column` on.
  Value findLargest(Value from, int64_t column);
  /// A vector of f32, rounded, twice in each word.
  Value toHalves(Value vector);
  /// The numbers of `line`, those from bit `shift` of each byte on, as bytes.
  Value regroup(Value line, int64_t shift, Value factors, Value starts);
};

} // namespace

Value StoredGroups::splat(VectorType type, int64_t value) {
  auto element = cast<IntegerType>(type.getElementType());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, APInt(element.getWidth(),
                                            static_cast<uint64_t>(value),
                                            /*isSigned=*/true,
                                            /*implicitTrunc=*/true)));
}

Value StoredGroups::loadBytes(Value from, int64_t count) {
  return vector::LoadOp::create(b, VectorType::get({count}, b.getI8Type()),
                                weight, ValueRange{from});
}

Value StoredGroups::loadLine(Value from) {
  return vector::BitCastOp::create(
      b, VectorType::get({columnsOfLine}, b.getI32Type()),
      loadBytes(from, lineBytes));
}

Value StoredGroups::loadFloats(Value from) {
  const ScaleFormat format = unpacking.storage.scale;
  Value bytes = loadBytes(from, columnsOfLine * bytesOf(format));
  if (format == ScaleFormat::F32)
    return vector::BitCastOp::create(
        b, VectorType::get({columnsOfLine}, b.getF32Type()), bytes);
  Value halves = vector::BitCastOp::create(
      b, VectorType::get({columnsOfLine}, b.getF16Type()), bytes);
  return arith::ExtFOp::create(
      b, VectorType::get({columnsOfLine}, b.getF32Type()), halves);
}

StoredGroups::Scales StoredGroups::loadScales(Value from, int64_t column) {
  const StorageFormat &storage = unpacking.storage;
  const int64_t panel = unpacking.to.panel;
  const int64_t place = column * bytesOf(storage.scale);
  Value scale = loadFloats(
      b.add(from, scalesOffset(storage, panel, unpacking.group) + place));
  if (storage.offset == GroupOffset::Minimum)
    return {scale,
            loadFloats(b.add(
                from, minimaOffset(storage, panel, unpacking.group) + place))};
  return {scale,
          b.mulf(scale, b.splat(-static_cast<float>(storage.storedZero()),
                                columnsOfLine))};
}

Value UnpackingWriter::extract(Value line, int64_t shift, int64_t mask) {
  if (unpacking.storage.number == NumberFormat::FP8)
    return extendFloat8(b, line, shift);
  auto type = cast<VectorType>(line.getType());
  if (shift > 0)
    line = arith::ShRUIOp::create(b, line, splat(type, shift));
  line = arith::AndIOp::create(b, line, splat(type, mask));
  return arith::SIToFPOp::create(b, type.clone(b.getF32Type()), line);
}

Value UnpackingWriter::elementOf(int64_t column, Value k) {
  const Packing &to = unpacking.to;
  Value step = b.mul(b.div(k, to.kStep), to.panel * to.kStep);
  Value inStep = b.mul(b.div(b.rem(k, to.kStep), to.kPack), to.tile * to.kPack);
  return b.add(b.add(step, inStep), getColumnOffset(to, column));
}

Value UnpackingWriter::packBF16(Value low, Value high) {
  auto words = VectorType::get({columnsOfLine}, b.getI32Type());
  // To the nearest; of two that are as near, to the one farther from 0.
  auto rounded = [&](Value value) -> Value {
    return arith::AddIOp::create(b, vector::BitCastOp::create(b, words, value),
                                 splat(words, 0x8000));
  };
  Value pairs = arith::OrIOp::create(
      b, arith::AndIOp::create(b, rounded(high), splat(words, 0xffff0000)),
      arith::ShRUIOp::create(b, rounded(low), splat(words, 16)));
  return vector::BitCastOp::create(
      b, VectorType::get({2 * columnsOfLine}, b.getBF16Type()), pairs);
}

Value UnpackingWriter::takeByte(Value line, int64_t byte) {
  auto words = cast<VectorType>(line.getType());
  auto bytes = VectorType::get({lineBytes}, b.getI8Type());
  Value one = splat(words, 0x3f800000);
  SmallVector<int64_t> order;
  for (int64_t word = 0; word < columnsOfLine; ++word)
    for (int64_t i = 0; i < numbersOfColumn; ++i)
      order.push_back(word * numbersOfColumn +
                      (i == placeOfByte() ? byte : lineBytes + i));
  Value taken = vector::ShuffleOp::create(
      b, vector::BitCastOp::create(b, bytes, line),
      vector::BitCastOp::create(b, bytes, one), order);
  return vector::BitCastOp::create(b, words.clone(b.getF32Type()), taken);
}

void UnpackingWriter::storeLine(Value line, int64_t shift, int64_t columnBlock,
                                Value place, Value k) {
  const Packing &to = unpacking.to;
  const int64_t mask = (int64_t(1) << unpacking.storage.bits()) - 1;
  auto [scale, base] = scales[columnBlock];
  if (takesBytes() && mask != 0xff) {
    auto words = cast<VectorType>(line.getType());
    if (shift > 0)
      line = arith::ShRUIOp::create(b, line, splat(words, shift));
    line = arith::AndIOp::create(b, line, splat(words, mask * 0x01010101));
  }
  SmallVector<Value> values;
  for (int64_t i = 0; i < numbersOfColumn; ++i)
    values.push_back(b.fma(takesBytes() ? takeByte(line, i)
                                        : extract(line, 8 * i + shift, mask),
                           scale, base));
  if (to.kPack == 2) {
    for (int64_t i = 0; i < numbersOfColumn; i += to.kPack) {
      Value element = elementOf(columnBlock * columnsOfLine, b.add(k, i));
      vector::StoreOp::create(b, packBF16(values[i], values[i + 1]), copy,
                              ValueRange{b.add(place, element)});
    }
    return;
  }
  // Neighbors of a pack beside each other.
  if (to.kPack == 4)
    values = {
        vector::InterleaveOp::create(b, values[0], values[2]).getResult(),
        vector::InterleaveOp::create(b, values[1], values[3]).getResult()};
  if (to.kPack >= 2) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i < values.size(); i += 2)
      pairs.push_back(vector::InterleaveOp::create(b, values[i], values[i + 1])
                          .getResult());
    values = pairs;
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    Value element = elementOf(columnBlock * columnsOfLine,
                              b.add(k, static_cast<int64_t>(i) * to.kPack));
    b.storeVector(value, copy, b.add(place, element));
  }
}

void UnpackingWriter::beginGroup(Value from) {
  scales.clear();
  for (int64_t column = 0; column < unpacking.to.panel;
       column += columnsOfLine) {
    Scales loaded = loadScales(from, column);
    if (takesBytes()) {
      loaded.scale =
          b.mulf(loaded.scale, b.splat(1 / unitOfByte(), columnsOfLine));
      loaded.base =
          b.subf(loaded.base,
                 b.mulf(loaded.scale, b.splat(floatOfZero(), columnsOfLine)));
    }
    scales.push_back(loaded);
  }
}

void UnpackingWriter::writeLine(Value lines, int64_t line, Value place,
                                Value k) {
  Value numbers = loadLine(lineAt(lines, line));
  storeLine(numbers, line % together() * unpacking.storage.bits(),
            line % quadLines(), place,
            b.add(k, line / quadLines() * numbersOfColumn));
}

void UnpackingWriter::prefetchLine(Value lines, int64_t line, int64_t distance,
                                   PrefetchHint hint) {
  if (line % together() == 0)
    memref::PrefetchOp::create(
        b, weight, ValueRange{b.add(lineAt(lines, line), distance)},
        /*isWrite=*/false, localityOf(hint), /*isDataCache=*/true);
}

void UnpackingWriter::writeGroup(Value from, Value begin, Value end,
                                 Value place, Value firstK) {
  beginGroup(from);
  const int64_t quads = quadsTogether();
  Value firstQuad = b.div(begin, numbersOfColumn);
  b.forLoop(firstQuad, b.div(end, numbersOfColumn), quads, [&](Value quad) {
    Value lines = b.add(from, b.mul(quad, bytesOfQuad()));
    Value k = b.add(firstK, b.mul(b.sub(quad, firstQuad), numbersOfColumn));
    for (int64_t line = 0; line < quads * quadLines(); ++line)
      writeLine(lines, line, place, k);
  });
}

Value RegroupingWriter::findLargest(Value from, int64_t column) {
  constexpr float mostSteps = 15;
  auto words = VectorType::get({columnsOfLine}, b.getI32Type());
  Value bits =
      b.forLoop(
           b.index(0), b.index(groups()), 1, splat(words, 0),
           [&](Value number, ValueRange carried) -> SmallVector<Value> {
             auto [scale, base] = loadScales(groupAt(from, number), column);
             Value last = b.fma(scale, b.splat(mostSteps, columnsOfLine), base);
             // Among bits, as of rounded inputs: what is no number stays.
             Value largest = carried.front();
             for (Value end : {base, last})
               largest =
                   arith::MaxSIOp::create(b, largest, magnitudeBits(b, end));
             return {largest};
           })
          .front();
  return vector::BitCastOp::create(
      b, VectorType::get({columnsOfLine}, b.getF32Type()), bits);
}

Value RegroupingWriter::toHalves(Value vector) {
  constexpr int64_t halfBits = 16;
  auto words = VectorType::get({columnsOfLine}, b.getI32Type());
  Value low = arith::AndIOp::create(
      b,
      arith::FPToSIOp::create(b, words, math::RoundEvenOp::create(b, vector)),
      splat(words, (1 << halfBits) - 1));
  Value high = arith::ShLIOp::create(b, low, splat(words, halfBits));
  return vector::BitCastOp::create(
      b, VectorType::get({2 * columnsOfLine}, b.getI16Type()),
      arith::OrIOp::create(b, low, high));
}

Value RegroupingWriter::regroup(Value line, int64_t shift, Value factors,
                                Value starts) {
  auto words = cast<VectorType>(line.getType());
  auto halves = cast<VectorType>(factors.getType());
  constexpr int64_t mask = 0x000f000f, byteBits = 8;
  // Every other number, in the low byte of a half.
  auto multiply = [&](int64_t distance) {
    Value numbers = line;
    if (distance > 0)
      numbers = arith::ShRUIOp::create(b, numbers, splat(words, distance));
    numbers = arith::AndIOp::create(b, numbers, splat(words, mask));
    numbers = vector::BitCastOp::create(b, halves, numbers);
    return arith::AddIOp::create(b, arith::MulIOp::create(b, numbers, factors),
                                 starts);
  };
  Value even =
      arith::ShRUIOp::create(b, multiply(shift), splat(halves, fractionBits));
  Value odd = arith::AndIOp::create(b, multiply(shift + byteBits),
                                    splat(halves, -(int64_t(1) << byteBits)));
  return vector::BitCastOp::create(b,
                                   VectorType::get({lineBytes}, b.getI8Type()),
                                   arith::OrIOp::create(b, even, odd));
}

void RegroupingWriter::writeGroup(Value from, Value place) {
  const StorageFormat copied = storageOfCopy(unpacking);
  const int64_t panel = unpacking.to.panel;
  SmallVector<Value> inverses;
  for (int64_t column = 0; column < panel; column += columnsOfLine) {
    auto [scale, inverse] = scaleToInt8(b, findLargest(from, column));
    const int64_t scaleBytes = bytesOf(copied.scale);
    auto bytes = VectorType::get({columnsOfLine * scaleBytes}, b.getI8Type());
    const int64_t scales = scalesOffset(copied, panel, unpacking.groupOfCopy) +
                           column * scaleBytes;
    vector::StoreOp::create(b, vector::BitCastOp::create(b, bytes, scale), copy,
                            ValueRange{b.add(place, scales)});
    inverses.push_back(inverse);
  }
  // Two lines share one, those of two blocks of columns or of two quads.
  const int64_t quadLines = panel / columnsOfLine;
  const int64_t quads = quadLines % 2 == 0 ? 1 : 2;
  b.forLoop(b.index(0), b.index(groups()), 1, [&](Value number) {
    Value group = groupAt(from, number);
    SmallVector<Value> factors, starts;
    for (auto [block, inverse] : llvm::enumerate(inverses)) {
      auto [scale, base] =
          loadScales(group, static_cast<int64_t>(block) * columnsOfLine);
      // The inverse of a very small scale leaves no room for the fraction.
      Value fraction = b.splat(1 << fractionBits, columnsOfLine);
      factors.push_back(toHalves(b.mulf(b.mulf(scale, inverse), fraction)));
      starts.push_back(toHalves(b.fma(b.mulf(base, inverse), fraction,
                                      b.splat(offset, columnsOfLine))));
    }
    Value firstQuad = b.mul(number, unpacking.group / numbersOfColumn);
    b.forLoop(b.index(0), b.index(unpacking.group / numbersOfColumn), quads,
              [&](Value quad) {
                Value lines =
                    b.add(group, b.mul(quad, quadLines * lineBytes / 2));
                Value copies = b.add(place, b.mul(b.add(firstQuad, quad),
                                                  panel * numbersOfColumn));
                for (int64_t line = 0; line < quads * quadLines; line += 2) {
                  Value shared = loadLine(b.add(lines, line / 2 * lineBytes));
                  for (int64_t i : {0, 1}) {
                    const int64_t block = (line + i) % quadLines;
                    Value bytes = regroup(shared, i * unpacking.storage.bits(),
                                          factors[block], starts[block]);
                    vector::StoreOp::create(
                        b, bytes, copy,
                        ValueRange{b.add(copies, (line + i) * lineBytes)});
                  }
                }
              });
  });
}

void sandwich::emitUnpacking(LoopBuilder &b, const WeightUnpacking &unpacking,
                             const UnpackingArguments &arguments) {
  if (unpacking.groupOfCopy > 0) {
    RegroupingWriter writer(b, unpacking, arguments.weight, arguments.copy);
    const StorageFormat copied = storageOfCopy(unpacking);
    const int64_t together = unpacking.groupOfCopy / unpacking.group;
    const int64_t from =
        together *
        groupBytes(unpacking.storage, unpacking.to.panel, unpacking.group);
    const int64_t to =
        groupBytes(copied, unpacking.to.panel, unpacking.groupOfCopy);
    b.forLoop(
        b.index(0), b.div(arguments.groups, together), 1, [&](Value group) {
          writer.writeGroup(b.add(arguments.weightOffset, b.mul(group, from)),
                            b.add(arguments.place, b.mul(group, to)));
        });
    return;
  }
  UnpackingWriter writer(b, unpacking, arguments.weight, arguments.copy);
  const int64_t bytes =
      groupBytes(unpacking.storage, unpacking.to.panel, unpacking.group);
  Value size = b.sub(arguments.end, arguments.begin);
  b.forLoop(b.index(0), arguments.groups, 1, [&](Value group) {
    writer.writeGroup(b.add(arguments.weightOffset, b.mul(group, bytes)),
                      arguments.begin, arguments.end, arguments.place,
                      b.mul(group, size));
  });
}
