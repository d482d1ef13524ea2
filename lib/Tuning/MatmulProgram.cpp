//===- MatmulProgram.cpp - A phase program of one matmul ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MatmulProgram.h"

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Scheduling/NestParameters.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;

namespace {

/// What the program has of a KV cache where the epilogue has none.
constexpr int64_t noHeadDim = 16;

int64_t elementBytes(bool bf16) { return bf16 ? 2 : 4; }

int64_t mostPartsOfK(const ScheduleTable &table) {
  int64_t parts = 1;
  for (const ScheduleTableEntry &entry : table)
    parts = std::max(parts, entry.schedule.threads[2]);
  return parts;
}

/// Builds one program.
class ProgramBuilder {
public:
  ProgramBuilder(ModuleOp module, const MatmulProgram &program,
                 const ScheduleTable &table)
      : b(module.getLoc(), module.getContext()), module(module),
        program(program), table(table),
        place(MatmulWorkspace::of(program, table)) {}

  void build(ScheduleNumbers numbers, std::array<int64_t, 2> tokensBetween);

private:
  Type element(bool bf16) {
    return bf16 ? Type(b.getBF16Type()) : Type(b.getF32Type());
  }
  lm::KVCacheType cacheType();
  void addWeights();
  FlatSymbolRefAttr addVector(StringRef name, int64_t size);
  Value argument(phase::ProgramArgument which) {
    return phase::getArgument(function, which);
  }
  /// Rows of `channels` channels, `stride` elements apart, at `offset` of the
  /// workspace.
  Value rowsAt(int64_t offset, int64_t channels, int64_t stride, bool bf16);
  Value bytesAt(int64_t offset, Type element, int64_t count);

  LoopBuilder b;
  ModuleOp module;
  const MatmulProgram &program;
  const ScheduleTable &table;
  const MatmulWorkspace place;
  func::FuncOp function;
  FlatSymbolRefAttr weight, bias, queryNorm, keyNorm;
  Value tokens;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int64_t MatmulProgram::storedColumns() const {
  return shape.epilogue.kind == Epilogue::SiluMul
             ? roundUp(shape.n, shape.columnUnit)
             : shape.n;
}

int64_t MatmulProgram::resultChannels() const {
  switch (shape.epilogue.kind) {
  case Epilogue::None:
  case Epilogue::AddResidual:
  case Epilogue::GeluExact:
  case Epilogue::GeluTanh:
    return shape.n;
  case Epilogue::SiluMul:
    return shape.n / 2;
  case Epilogue::RotateAppendKV:
    return shape.n - 2 * shape.epilogue.cacheHeads * shape.columnUnit;
  }
  llvm_unreachable("an epilogue without a case");
}

int64_t MatmulProgram::inputStride() const {
  return rowStride(shape.k, elementBytes(bf16Input()));
}

int64_t MatmulProgram::resultStride() const {
  return shape.epilogue.contiguousResult
             ? resultChannels()
             : rowStride(resultChannels(), elementBytes(bf16Result()));
}

int64_t MatmulProgram::rotaryStride() const {
  return rowStride(shape.columnUnit, elementBytes(/*bf16=*/false));
}

std::array<int64_t, 2> MatmulProgram::weightPlace() const {
  const int64_t matrixAlignment = getWeightAlignment(2);
  const int64_t vectorAlignment = getWeightAlignment(1);
  auto vectors = [&](int64_t size) {
    return layers * roundUp(size * 4, vectorAlignment);
  };
  int64_t before = shape.epilogue.bias ? vectors(shape.n) : 0;
  if (shape.epilogue.headNorms)
    before += 2 * vectors(shape.columnUnit);
  const int64_t bytes = sandwich::weightBytes(
      shape.storage, roundUp(storedColumns(), shape.packing->panel), shape.k);
  return {roundUp(before, matrixAlignment), roundUp(bytes, matrixAlignment)};
}

int64_t MatmulProgram::weightBytes() const {
  auto [first, layer] = weightPlace();
  return first + layers * layer;
}

int64_t MatmulProgram::cacheBytes() const {
  const MatmulEpilogue &epilogue = shape.epilogue;
  if (epilogue.kind != Epilogue::RotateAppendKV)
    return 0;
  const int64_t blocks = divideUp<int64_t>(maxRows, SANDWICH_KV_BLOCK_TOKENS);
  return blocks * SANDWICH_KV_BLOCK_TOKENS * layers * 2 * epilogue.cacheHeads *
         bytesOfHead(epilogue.cache, shape.columnUnit);
}

WeightPiece sandwich::weightPiece(const MatmulProgram &program, int64_t number,
                                  int64_t layers, int64_t columns, int64_t k) {
  const int64_t inLayers = program.layers / layers;
  const int64_t inColumns = program.storedColumns() / columns;
  const int64_t inK = program.shape.k / k;
  const int64_t pieces = inLayers * inColumns * inK;
  // Multiples of the golden ratio divide a circle as evenly as can be, however
  // many there are.
  constexpr uint64_t ratio = 0x9e3779b97f4a7c15;
  const double place =
      static_cast<double>(static_cast<uint64_t>(number) * ratio >> 11) *
      0x1p-53;
  number = static_cast<int64_t>(place * static_cast<double>(pieces));
  WeightPiece piece;
  for (int64_t i = 0; i < layers; ++i)
    piece.layers.push_back(
        static_cast<int32_t>(number % inLayers * layers + i));
  piece.column = number / inLayers % inColumns * columns;
  piece.k = number / (inLayers * inColumns) * k;
  return piece;
}

MatmulWorkspace MatmulWorkspace::of(const MatmulProgram &program,
                                    const ScheduleTable &table) {
  constexpr int64_t pageBytes = 4096;
  const int64_t partsOfK = mostPartsOfK(table);
  MatmulWorkspace place;
  auto take = [&](int64_t bytes) {
    const int64_t begin = place.bytes;
    place.bytes = roundUp(begin + bytes, pageBytes);
    return begin;
  };
  const int64_t rows = program.maxRows;
  take(rows * program.inputStride() * elementBytes(program.bf16Input()));
  if (program.shape.epilogue.kind == Epilogue::RotateAppendKV)
    place.rotaryTable = take(rows * program.rotaryStride() * 4);
  place.result =
      take(rows * program.resultStride() * elementBytes(program.bf16Result()));
  if (partsOfK > 1) {
    // As `gemm.matmul` counts them.
    const int64_t columns =
        roundUp(roundUp(program.storedColumns(), program.shape.packing->panel),
                vectorWidth);
    place.partialSumsBytes = partsOfK * rows * columns * 4 + 64;
    place.partialSums = take(place.partialSumsBytes);
  }
  place.parameters = take(numbersBeforePart(program.threads) * sizeof(int64_t));
  return place;
}

//===----------------------------------------------------------------------===//
// IR
//===----------------------------------------------------------------------===//

lm::KVCacheType ProgramBuilder::cacheType() {
  const MatmulEpilogue &epilogue = program.shape.epilogue;
  MLIRContext *context = b.getContext();
  if (epilogue.kind != Epilogue::RotateAppendKV)
    return lm::KVCacheType::get(context, 1, 1, noHeadDim, b.getF32Type());
  return lm::KVCacheType::get(context, program.layers, epilogue.cacheHeads,
                              program.shape.columnUnit,
                              lm::getType(epilogue.cache, context));
}

FlatSymbolRefAttr ProgramBuilder::addVector(StringRef name, int64_t size) {
  auto type = RankedTensorType::get({size}, b.getF32Type());
  lm::WeightOp::create(b, name, type, b.getStrArrayAttr({"{}"}),
                       program.layers);
  return FlatSymbolRefAttr::get(b.getContext(), name);
}

void ProgramBuilder::addWeights() {
  const MatmulShape &shape = program.shape;
  if (shape.epilogue.bias)
    bias = addVector("bias", shape.n);
  if (shape.epilogue.headNorms) {
    queryNorm = addVector("query_norm", shape.columnUnit);
    keyNorm = addVector("key_norm", shape.columnUnit);
  }
  const bool interleaved = shape.epilogue.kind == Epilogue::SiluMul;
  SmallVector<StringRef> sources(interleaved ? 2 : 1, "{}");
  const StorageFormat &storage = shape.storage;
  auto type = RankedTensorType::get(
      {shape.n, shape.k}, element(storage.number == NumberFormat::BF16));
  auto op = lm::WeightOp::create(b, "weight", type, b.getStrArrayAttr(sources),
                                 program.layers);
  if (interleaved)
    op.setInterleave(shape.columnUnit / 2);
  if (storage.isQuantized())
    op.setStorageAttr(lm::StorageAttr::get(b.getContext(), storage));
  op.setPackingAttr(gemm::PackingAttr::get(b.getContext(), *shape.packing));
  weight = FlatSymbolRefAttr::get(b.getContext(), op.getSymName());
}

Value ProgramBuilder::rowsAt(int64_t offset, int64_t channels, int64_t stride,
                             bool bf16) {
  Value rows = memref::ViewOp::create(
      b, MemRefType::get({ShapedType::kDynamic, stride}, element(bf16)),
      argument(phase::ProgramArgument::Workspace), b.index(offset), tokens);
  auto number = [&](int64_t value) { return b.getIndexAttr(value); };
  return memref::SubViewOp::create(
      b, rows, ArrayRef<OpFoldResult>{number(0), number(0)},
      {tokens, number(channels)}, {number(1), number(1)});
}

Value ProgramBuilder::bytesAt(int64_t offset, Type element, int64_t count) {
  return memref::ViewOp::create(b, MemRefType::get({count}, element),
                                argument(phase::ProgramArgument::Workspace),
                                b.index(offset), ValueRange());
}

void ProgramBuilder::build(ScheduleNumbers numbers,
                           std::array<int64_t, 2> tokensBetween) {
  MLIRContext *context = b.getContext();
  const MatmulShape &shape = program.shape;
  const Epilogue kind = shape.epilogue.kind;
  const bool rotates = kind == Epilogue::RotateAppendKV;
  b.setInsertionPointToEnd(module.getBody());
  if (shape.deterministic)
    module->setAttr(lm::deterministicAttributeName, b.getUnitAttr());
  addWeights();
  function = phase::createProgram(
      b, module.getLoc(), matmulProgramName, cacheType().getBufferType(),
      MemRefType::get({ShapedType::kDynamic, vectorWidth}, b.getF32Type()),
      phase::ProgramAttr::get(context, program.threads, program.maxRows,
                              phase::maxStepRows, place.bytes,
                              /*tables=*/{}));
  b.setInsertionPointToStart(&function.getBody().front());
  using enum phase::ProgramArgument;
  tokens = memref::DimOp::create(b, argument(TokenIds), b.index(0));
  Value input = rowsAt(0, shape.k, program.inputStride(), program.bf16Input());
  Value result = rowsAt(place.result, program.resultChannels(),
                        program.resultStride(), program.bf16Result());
  Value rotaryTable, partialSums, parameters;
  if (rotates)
    rotaryTable =
        rowsAt(place.rotaryTable, shape.columnUnit, program.rotaryStride(),
               /*bf16=*/false);
  if (place.partialSumsBytes > 0)
    partialSums =
        bytesAt(place.partialSums, b.getI8Type(), place.partialSumsBytes);
  if (numbers == ScheduleNumbers::Parameters)
    parameters = memref::CastOp::create(
        b, MemRefType::get({ShapedType::kDynamic}, b.getIndexType()),
        bytesAt(place.parameters, b.getIndexType(),
                numbersBeforePart(program.threads)));
  FloatAttr epsilon =
      shape.epilogue.headNorms ? b.getF32FloatAttr(1e-5f) : FloatAttr();

  Value count = memref::DimOp::create(b, argument(LogitRows), b.index(0));
  b.forLoop(b.index(0), count, 1, [&](Value number) {
    Value layer = b.loadIndex(argument(LogitRows), number);
    gemm::MatmulOp::create(b, Type(), input, weight, bias, layer,
                           gemm::EpilogueAttr::get(context, kind),
                           kind == Epilogue::AddResidual ? result : Value(),
                           /*residual_ranks=*/nullptr, rotaryTable,
                           rotates ? argument(KVCache) : Value(),
                           rotates ? argument(CacheSlots) : Value(), queryNorm,
                           keyNorm, epsilon, gemm::getTableAttr(context, table),
                           b.getDenseI64ArrayAttr(tokensBetween), partialSums,
                           parameters, result);
    // As the operation that reads the result has before it.
    phase::BarrierOp::create(b, argument(Team));
  });
  func::ReturnOp::create(b);
}

void sandwich::addMatmulProgram(ModuleOp module, const MatmulProgram &program,
                                const ScheduleTable &table,
                                ScheduleNumbers numbers,
                                std::array<int64_t, 2> tokensBetween) {
  ProgramBuilder(module, program, table).build(numbers, tokensBetween);
}
