//===- GroupWidening.cpp - Quantized weights widened in registers ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

#include "sandwich/Dialect/Utils/Float8.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// Numbers of a weight become floats in registers, exactly, and are multiplied
/// with an input of floats in rows: what a slice of few rows would read but
/// once is not unpacked to memory.
class WideningWriter : public GroupsWriter {
public:
  using GroupsWriter::GroupsWriter;

protected:
  bool keepsSums() const final { return false; }
  int64_t extractedOffset() const override { return storage.storedZero(); }
  int64_t groupStride() const final { return group * inputBytes(); }
  int64_t quadStride() const final { return numbersOfWord * inputBytes(); }
  Value getRows() final;
  Value createGroupSum(Value /*rows*/, int64_t /*row*/) final {
    return createZeroSum();
  }
  RowScales loadRowScales(Value rows, int64_t row) final;
  Value scaleGroupSum(Value sum, const RowScales & /*rows*/) override {
    return sum;
  }

  bool hasBytes() const { return storage.number == NumberFormat::Int8; }
  bool hasFloat8() const { return storage.number == NumberFormat::FP8; }
  Type inputElement() const {
    return specialization.inputType(builder.getContext());
  }
  int64_t inputBytes() const {
    return inputElement().getIntOrFloatBitWidth() / 8;
  }
  /// From the first row to `row`.
  int64_t rowOffset(int64_t row) const {
    return row * specialization.inputStride * inputBytes();
  }
  /// `line` shifted so that what begins at bit `bits` of each word, half a byte
  /// further where `line` is high, is the lowest.
  Value shiftDown(const Line &line, int64_t bits);
};

/// f32 on any CPU, a part of a quad for each of its numbers.
class FloatWideningWriter final : public WideningWriter {
public:
  using WideningWriter::WideningWriter;

private:
  int64_t parts() const override { return 4; }
  Value loadQuad(Value rows, int64_t row, int64_t number,
                 int64_t part) override {
    return broadcast(builder.getF32Type(), rows,
                     rowOffset(row) +
                         (numbersOfWord * number + part) * inputBytes());
  }
  Value prepare(Value bytes) override;
  Value extract(const Line &line, int64_t part, int64_t digit) override;
  Value scaleGroupSum(Value sum, const RowScales &rows) override;

  /// Whether numbers are looked up in a register of 16 floats.
  bool looksUp() const {
    return kernel.isa == MatrixISA::X86_AVX512_F32 &&
           storage.number == NumberFormat::Int4;
  }
};

/// bf16 on AVX-512, a part for each two numbers of a quad, its even and its odd
/// ones, which `vpermw` looks up. An integer of 8 bits has two digits of four.
/// Of E4M3 only subnormal numbers are looked up; others have the exponent and
/// mantissa of bf16, but for the exponent's bias.
class PairWideningWriter final : public WideningWriter {
public:
  using WideningWriter::WideningWriter;

private:
  int64_t parts() const override { return 2; }
  int64_t digits() const override { return hasBytes() ? 2 : 1; }
  Value loadQuad(Value rows, int64_t row, int64_t number,
                 int64_t part) override;
  Value extract(const Line &line, int64_t part, int64_t digit) override;
  Value extractFloat8(const Line &line, int64_t part);
  /// A register of bf16, `valueOf` each of its numbers.
  Value createTable(llvm::function_ref<float(int64_t)> valueOf);
  /// What `table` has at the place that the lowest five bits of each half word
  /// of `words` say.
  Value lookUp(Value table, Value words);
  VectorType pairsType() const {
    return VectorType::get({2 * lanes}, builder.getBF16Type());
  }
  VectorType halvesType() const {
    return VectorType::get({2 * lanes}, builder.getI16Type());
  }
  Value multiply(Value sum, Value input, Value weight) override {
    return x86vector::DotBF16Op::create(builder, sumType, sum, input, weight);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Any floats
//===----------------------------------------------------------------------===//

Value WideningWriter::getRows() {
  Value element =
      arith::MulIOp::create(builder, arguments.firstRow,
                            createIndex(builder, specialization.inputStride));
  element = arith::AddIOp::create(builder, element, arguments.firstK);
  return addressOf(arguments.input, element);
}

GroupsWriter::RowScales WideningWriter::loadRowScales(Value rows, int64_t row) {
  if (!hasMinima())
    return {};
  Value sum;
  for (int64_t k = 0; k < group; k += smallestGroup) {
    Value values = load(VectorType::get({smallestGroup}, inputElement()), rows,
                        rowOffset(row) + k * inputBytes(), inputBytes());
    auto type = VectorType::get({smallestGroup}, builder.getF32Type());
    if (values.getType() != type)
      values = arith::ExtFOp::create(builder, type, values);
    sum =
        sum ? arith::AddFOp::create(builder, sum, values).getResult() : values;
  }
  sum = vector::ReductionOp::create(builder, vector::CombiningKind::ADD, sum,
                                    arith::FastMathFlags::reassoc);
  return {.sums = vector::BroadcastOp::create(builder, sumType, sum)};
}

Value WideningWriter::shiftDown(const Line &line, int64_t bits) {
  if (line.high)
    bits += 4;
  Value words = vector::BitCastOp::create(builder, wordsType, line.bytes);
  return bits == 0 ? words
                   : arith::ShRUIOp::create(builder, words, splatWords(bits));
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

Value FloatWideningWriter::prepare(Value bytes) {
  if (looksUp() || hasFloat8())
    return bytes;
  // Two's complement.
  return arith::XOrIOp::create(builder, bytes,
                               splatBytes(hasBytes() ? 0x80 : 0x88));
}

Value FloatWideningWriter::extract(const Line &line, int64_t part,
                                   int64_t /*digit*/) {
  if (looksUp()) {
    SmallVector<float> values;
    for (int64_t i = 0; i < lanes; ++i)
      values.push_back(static_cast<float>(i - storage.storedZero()));
    Value table = arith::ConstantOp::create(
        builder, DenseElementsAttr::get(sumType, ArrayRef<float>(values)));
    // The lowest four bits of a word say which.
    return call(sumType, "llvm.x86.avx512.permvar.sf.512",
                {table, shiftDown(line, 8 * part)});
  }
  if (hasFloat8()) {
    LoopBuilder floats(builder.getLoc(), builder);
    return extendFloat8(
        floats, vector::BitCastOp::create(builder, wordsType, line.bytes),
        8 * part);
  }
  // The number becomes the highest bits of its word, so that the sign is there.
  Value words;
  if (hasBytes()) {
    constexpr int64_t wordBytes = 4;
    SmallVector<int64_t> places(wordBytes * lanes, wordBytes * lanes);
    for (int64_t lane = 0; lane < lanes; ++lane)
      places[wordBytes * lane + wordBytes - 1] = wordBytes * lane + part;
    words = vector::BitCastOp::create(
        builder, wordsType,
        vector::ShuffleOp::create(builder, line.bytes, splatBytes(0), places));
  } else {
    words = vector::BitCastOp::create(builder, wordsType, line.bytes);
    const int64_t up = 28 - 8 * part - (line.high ? 4 : 0);
    if (up > 0)
      words = arith::ShLIOp::create(builder, words, splatWords(up));
    words = arith::AndIOp::create(builder, words, splatWords(0xf0000000));
  }
  return arith::SIToFPOp::create(builder, sumType, words);
}

Value FloatWideningWriter::scaleGroupSum(Value sum,
                                         const RowScales & /*rows*/) {
  if (looksUp() || hasFloat8())
    return sum;
  // Numbers were the highest bits of 32. Exact, but for sums that were infinite
  // before: of inputs beyond 1e27.
  const float unit = hasBytes() ? 0x1p-24f : 0x1p-28f;
  Value factor = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(sumType, builder.getF32FloatAttr(unit)));
  return arith::MulFOp::create(builder, sum, factor);
}

//===----------------------------------------------------------------------===//
// Pairs of bf16
//===----------------------------------------------------------------------===//

Value PairWideningWriter::loadQuad(Value rows, int64_t row, int64_t number,
                                   int64_t part) {
  Type i16 = builder.getI16Type(), i32 = builder.getI32Type();
  Value quad = load(VectorType::get({4}, i16), rows,
                    rowOffset(row) + number * quadStride(), inputBytes());
  Value pair = vector::ShuffleOp::create(builder, quad, quad,
                                         ArrayRef<int64_t>{part, part + 2});
  Value word = vector::ExtractOp::create(
      builder,
      vector::BitCastOp::create(builder, VectorType::get({1}, i32), pair), 0);
  Value all = vector::BroadcastOp::create(builder, wordsType, word);
  return vector::BitCastOp::create(
      builder, VectorType::get({2 * lanes}, builder.getBF16Type()), all);
}

Value PairWideningWriter::createTable(function_ref<float(int64_t)> valueOf) {
  SmallVector<APFloat> values;
  for (int64_t i = 0; i < 2 * lanes; ++i) {
    APFloat exact(valueOf(i));
    bool losesInfo = false;
    exact.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
    values.push_back(exact);
  }
  Value table = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(pairsType(), values));
  return vector::BitCastOp::create(builder, halvesType(), table);
}

Value PairWideningWriter::lookUp(Value table, Value words) {
  return call(halvesType(), "llvm.x86.avx512.permvar.hi.512",
              {table, vector::BitCastOp::create(builder, halvesType(), words)});
}

Value PairWideningWriter::extractFloat8(const Line &line, int64_t part) {
  auto splat = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder,
        DenseElementsAttr::get(halvesType(), builder.getI16IntegerAttr(
                                                 static_cast<int16_t>(value))));
  };
  // Each number is the low byte of its half word.
  Value words = shiftDown(line, 8 * part);
  Value numbers = vector::BitCastOp::create(builder, halvesType(), words);
  // Exponents of bf16 are biased by 120 more.
  Value magnitudes = arith::AndIOp::create(
      builder, arith::ShLIOp::create(builder, numbers, splat(4)),
      splat(0x07f0));
  Value normal = arith::AddIOp::create(builder, magnitudes, splat(120 << 7));
  constexpr float subnormalUnit = 0x1p-9f;
  Value table = createTable(
      [&](int64_t i) { return static_cast<float>(i % 8) * subnormalUnit; });
  Value exponents = arith::AndIOp::create(builder, numbers, splat(0x78));
  Value isSubnormal = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                            exponents, splat(0));
  Value value = arith::SelectOp::create(builder, isSubnormal,
                                        lookUp(table, words), normal);
  Value signs = arith::AndIOp::create(
      builder, arith::ShLIOp::create(builder, numbers, splat(8)),
      splat(0x8000));
  return vector::BitCastOp::create(builder, pairsType(),
                                   arith::OrIOp::create(builder, value, signs));
}

Value PairWideningWriter::extract(const Line &line, int64_t part,
                                  int64_t digit) {
  if (hasFloat8())
    return extractFloat8(line, part);
  // The highest digit has the sign.
  const bool isHighest = digit == digits() - 1;
  const int64_t unit = digit == 0 ? 1 : 16;
  // Of the fifth bit nothing depends.
  Value table = createTable([&](int64_t i) {
    return static_cast<float>(i % 16 * unit -
                              (isHighest ? storage.storedZero() : 0));
  });
  Value numbers = lookUp(table, shiftDown(line, 8 * part + 4 * digit));
  return vector::BitCastOp::create(builder, pairsType(), numbers);
}

namespace {

class GroupWideningEmitter final : public MicroKernelEmitter {
public:
  void emitBody(ImplicitLocOpBuilder &builder,
                const MicroKernelSpecialization &specialization,
                const MicroKernelArguments &arguments) const override {
    if (multipliesBF16(specialization.kernel.isa))
      PairWideningWriter(builder, specialization, arguments).write();
    else
      FloatWideningWriter(builder, specialization, arguments).write();
  }
};

} // namespace

const MicroKernelEmitter &sandwich::getGroupWideningEmitter() {
  static const GroupWideningEmitter emitter;
  return emitter;
}
