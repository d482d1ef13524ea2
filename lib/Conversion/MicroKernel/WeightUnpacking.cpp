//===- WeightUnpacking.cpp - Quantized weights as floats in memory --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/MicroKernel.h"

#include "sandwich/Dialect/Utils/Float8.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sandwich;

/// Columns of a vector, which has four numbers of each.
static constexpr int64_t columnsOfLine = 16, numbersOfColumn = 4;
static constexpr int64_t lineBytes = columnsOfLine * numbersOfColumn;
static_assert(lineBytes == sharedLineBytes);

std::string WeightUnpacking::name() const {
  std::string text =
      "unpack_" + storage.name() + "_group" + std::to_string(group) + "_panel" +
      std::to_string(to.panel) + "_to_" + std::string(sandwich::name(element)) +
      "x" + std::to_string(to.kPack);
  if (to.tile != to.panel)
    text += "_tiles";
  std::ranges::replace(text, '-', '_');
  return text;
}

namespace {

/// Writes the body of one function that unpacks.
class UnpackingWriter {
public:
  UnpackingWriter(LoopBuilder &b, const WeightUnpacking &unpacking,
                  Value weight, Value copy)
      : b(b), unpacking(unpacking), weight(weight), copy(copy) {}

  /// The k from `begin` to `end` of a group that begins at byte `from`, in the
  /// copy from the k `firstK` of the panel at element `place` on.
  void writeGroup(Value from, Value begin, Value end, Value place,
                  Value firstK);

private:
  Value loadBytes(Value from, int64_t count) {
    return vector::LoadOp::create(b, VectorType::get({count}, b.getI8Type()),
                                  weight, ValueRange{from});
  }
  /// The scales, or minima, of 16 columns from byte `from` on.
  Value loadScales(Value from);
  /// The numbers in the bits of `mask` of `line >> shift`, as floats.
  Value extract(Value line, int64_t shift, int64_t mask);
  /// The numbers of four k of 16 columns, which are `line` shifted by `shift`.
  void storeLine(Value line, int64_t shift, int64_t columnBlock, Value place,
                 Value k);
  /// Where the copy of a panel has column `column` of `k`, a multiple of kPack.
  Value elementOf(int64_t column, Value k);

  LoopBuilder &b;
  const WeightUnpacking &unpacking;
  Value weight, copy;
  /// Of each 16 columns.
  SmallVector<Value> scales, bases;
};

} // namespace

Value UnpackingWriter::loadScales(Value from) {
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

Value UnpackingWriter::extract(Value line, int64_t shift, int64_t mask) {
  if (unpacking.storage.number == NumberFormat::FP8)
    return extendFloat8(b, line, shift);
  auto type = cast<VectorType>(line.getType());
  auto splat = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               type, b.getI32IntegerAttr(static_cast<int32_t>(value))));
  };
  if (shift > 0)
    line = arith::ShRUIOp::create(b, line, splat(shift));
  line = arith::AndIOp::create(b, line, splat(mask));
  return arith::SIToFPOp::create(b, type.clone(b.getF32Type()), line);
}

Value UnpackingWriter::elementOf(int64_t column, Value k) {
  const Packing &to = unpacking.to;
  Value step = b.mul(b.div(k, to.kStep), to.panel * to.kStep);
  Value inStep = b.mul(b.div(b.rem(k, to.kStep), to.kPack), to.tile * to.kPack);
  return b.add(b.add(step, inStep), getColumnOffset(to, column));
}

void UnpackingWriter::storeLine(Value line, int64_t shift, int64_t columnBlock,
                                Value place, Value k) {
  const Packing &to = unpacking.to;
  const int64_t mask = (int64_t(1) << unpacking.storage.bits()) - 1;
  SmallVector<Value> values;
  for (int64_t i = 0; i < numbersOfColumn; ++i)
    values.push_back(b.fma(extract(line, 8 * i + shift, mask),
                           scales[columnBlock], bases[columnBlock]));
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

void UnpackingWriter::writeGroup(Value from, Value begin, Value end,
                                 Value place, Value firstK) {
  const StorageFormat &storage = unpacking.storage;
  const int64_t panel = unpacking.to.panel;
  const int64_t scaleBytes = bytesOf(storage.scale);
  const int64_t firstScale = scalesOffset(storage, panel, unpacking.group);
  const int64_t firstMinimum = minimaOffset(storage, panel, unpacking.group);
  scales.clear();
  bases.clear();
  for (int64_t column = 0; column < panel; column += columnsOfLine) {
    scales.push_back(loadScales(b.add(from, firstScale + column * scaleBytes)));
    if (storage.offset == GroupOffset::Minimum)
      bases.push_back(
          loadScales(b.add(from, firstMinimum + column * scaleBytes)));
    else
      bases.push_back(b.mulf(
          scales.back(),
          b.splat(-static_cast<float>(storage.storedZero()), columnsOfLine)));
  }
  // Two lines of numbers of four bits are in one.
  const int64_t together = storage.number == NumberFormat::Int4 ? 2 : 1;
  const int64_t quadLines = panel / columnsOfLine;
  const int64_t quads = quadLines % together == 0 ? 1 : together;
  auto lineType = VectorType::get({columnsOfLine}, b.getI32Type());
  Value firstQuad = b.div(begin, numbersOfColumn);
  b.forLoop(firstQuad, b.div(end, numbersOfColumn), quads, [&](Value quad) {
    Value lines = b.add(from, b.mul(quad, quadLines * lineBytes / together));
    for (int64_t line = 0; line < quads * quadLines; ++line) {
      Value bytes =
          loadBytes(b.add(lines, line / together * lineBytes), lineBytes);
      Value numbers = vector::BitCastOp::create(b, lineType, bytes);
      Value quadOfCopy = b.add(b.sub(quad, firstQuad), line / quadLines);
      storeLine(numbers, line % together * storage.bits(), line % quadLines,
                place, b.add(firstK, b.mul(quadOfCopy, numbersOfColumn)));
    }
  });
}

void sandwich::emitUnpacking(LoopBuilder &b, const WeightUnpacking &unpacking,
                             const UnpackingArguments &arguments) {
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
