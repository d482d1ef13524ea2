//===- AMX.cpp - AMX micro-kernels ----------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyWriter.h"
#include "sandwich/Support/CheckedMath.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace sandwich;

namespace {

constexpr int64_t maxTileRows = 16;
/// f32 sums or pairs of bf16 in the 64 bytes of a tile's row.
constexpr int64_t tileColumns = 16;
/// bf16 in a tile's row.
constexpr int64_t tileK = 32;

/// A function that uses two shapes of tiles spills them, so rows are shared out
/// as tiles of equal height, as few as suffice.
int64_t getTileRows(int64_t rows) {
  return divideUp(rows, divideUp(rows, maxTileRows));
}

/// Each register is a tile of sums.
class AMXWriter final : public BodyWriter {
public:
  AMXWriter(ImplicitLocOpBuilder &builder,
            const MicroKernelSpecialization &specialization,
            const MicroKernelArguments &arguments);

private:
  Value loadSum(int64_t row, int64_t column) override;
  Value createZeroSum() override;
  void storeSum(Value sum, int64_t row, int64_t column) override;
  Value loadInput(const InputPlace &place) override;
  Value loadWeight(Value panel, Value offset) override;
  Value multiply(Value sum, Value input, Value weight) override;

  Value pin(Value sum, Value /*streamed*/, bool /*usedOnce*/) override {
    return sum;
  }

  amx::TileType sumType, inputType, weightType;
};

} // namespace

AMXWriter::AMXWriter(ImplicitLocOpBuilder &builder,
                     const MicroKernelSpecialization &specialization,
                     const MicroKernelArguments &arguments)
    : BodyWriter(builder, specialization, arguments,
                 getTileRows(specialization.kernel.rows)) {
  int64_t rows = getTileRows(kernel.rows);
  Type bf16 = builder.getBF16Type();
  sumType = amx::TileType::get({rows, tileColumns}, builder.getF32Type());
  inputType = amx::TileType::get({rows, tileK}, bf16);
  weightType = amx::TileType::get({tileK / 2, 2 * tileColumns}, bf16);
}

Value AMXWriter::loadSum(int64_t row, int64_t column) {
  return amx::TileLoadOp::create(
      builder, sumType, sumsBlock,
      ValueRange{createIndex(builder, row), createIndex(builder, column)});
}

Value AMXWriter::createZeroSum() {
  return amx::TileZeroOp::create(builder, sumType);
}

void AMXWriter::storeSum(Value sum, int64_t row, int64_t column) {
  amx::TileStoreOp::create(
      builder, sumsBlock,
      ValueRange{createIndex(builder, row), createIndex(builder, column)}, sum);
}

Value AMXWriter::loadInput(const InputPlace &place) {
  return amx::TileLoadOp::create(builder, inputType, input,
                                 ValueRange{place.row, place.k});
}

Value AMXWriter::loadWeight(Value panel, Value offset) {
  Value rowStride = createIndex(builder, 2 * tileColumns);
  return amx::TileLoadOp::create(builder, weightType, panel, ValueRange{offset},
                                 rowStride);
}

Value AMXWriter::multiply(Value sum, Value input, Value weight) {
  return amx::TileMulFOp::create(builder, sumType, input, weight, sum);
}

const MicroKernelEmitter &sandwich::getAMXEmitter() {
  static const BodyWriterEmitter<AMXWriter> emitter;
  return emitter;
}
