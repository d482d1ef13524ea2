//===- AttentionKernel.cpp - Attention by a kernel of blocks --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "llvm/ADT/bit.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// As many registers, or tiles, of sums for channels as there are for keys.
/// Half a register is one, half a tile is none.
static int64_t columnsOfValues(const AttentionTile &tile, int64_t pairs,
                               bool hasTiles) {
  const int64_t fewest = hasTiles ? vectorWidth : vectorWidth / 2;
  int64_t columns = fewest;
  for (int64_t each = fewest; each <= vectorWidth * tile.keyBlocks;
       each += fewest)
    if (pairs % each == 0)
      columns = each;
  return columns;
}

/// How many pairs are added up at a time: those of an instruction, or as few as
/// hide what a loop costs, as the last tokens that a row sees are filled up to
/// whole steps.
static int64_t pairsOfStep(std::optional<MatrixISA> instructions,
                           const AttentionTile &tile, int64_t headDim) {
  int64_t step = instructions
                     ? std::max<int64_t>(2, packingOf(*instructions).kStep / 2)
                     : 2;
  while (headDim / 2 % step != 0 ||
         tile.chunk * KVCacheType::blockTokens / 2 % step != 0)
    step /= 2;
  return step;
}

/// What `tile` is as parameters of the kernels of attention in kernels/.
static SmallVector<KernelConstant>
parametersOf(const ProgramContext &program, const AttentionTile &tile,
             KVCacheType cache, bool streams,
             std::optional<MatrixISA> instructions) {
  const int64_t headDim = cache.getHeadDim();
  const int64_t together = cache.getKeyChannelsTogether();
  const int64_t pairs = headDim / together;
  int64_t parts = 1, channels = 1;
  if (streams) {
    parts = scoreParts(tile, headDim, program.accumulators);
    while (pairs % parts != 0)
      parts /= 2;
    // A step reads whole cache lines, to ask for each but once, and more of
    // them the less there is to do with each.
    const int64_t lineElements =
        8 * cacheLineBytes / cache.getElementType().getIntOrFloatBitWidth();
    const int64_t channelElements = KVCacheType::blockTokens * together;
    const auto fewRows =
        static_cast<int64_t>(llvm::bit_floor<uint64_t>(16 / tile.rows));
    channels =
        std::max({parts, lineElements / channelElements, fewRows / together});
    if (pairs % channels != 0)
      channels = parts;
  }
  // Passes over the values of a chunk, with equally many sums each: what is
  // left of a pass would need masks.
  const int64_t vectors = llvm::divideCeil(headDim, vectorWidth);
  const int64_t most = std::max<int64_t>(1, program.accumulators / tile.rows);
  int64_t vectorsOfPass = std::min(vectors, most);
  while (vectors % vectorsOfPass != 0)
    --vectorsOfPass;
  const int64_t lanes = vectorsOfPass * vectorWidth / together;
  constexpr int64_t mostLanes = 256;
  return {{"ROWS", tile.rows},
          {"KEYS", tile.keyBlocks},
          {"CHUNK", tile.chunk},
          {"PARTS", parts},
          {"CHANNELS", channels},
          {"LANES", std::min(lanes, mostLanes)},
          {"COLUMNS", columnsOfValues(tile, pairs,
                                      instructions && hasTiles(*instructions))},
          {"STEP", pairsOfStep(instructions, tile, headDim)},
          {"STREAMS", streams}};
}

FailureOr<AttentionKernel> AttentionKernel::make(const ProgramContext &program,
                                                 AttentionOp op,
                                                 const AttentionTile &tile,
                                                 const Purpose &purpose) {
  const KVCacheType cache = getKVCacheType(op.getKvCache().getType());
  const AttentionShape shape = op.getShape();
  SmallVector<KernelArgument> arguments = op.getKernelArguments();
  if (purpose.isPart)
    arguments.back().extents.back() = {shape.headDim + 2};
  auto given = op->getAttrOfType<KernelAttr>(kernelAttributeName);
  func::FuncOp kernel;
  if (given) {
    FailureOr<std::optional<KernelUse>> use =
        findKernelUse(op, program.symbols);
    if (failed(use))
      return failure();
    kernel = (*use)->kernel;
  } else {
    FailureOr<func::FuncOp> found = program.kernels.fromLibrary(
        purpose.instructions ? "matrix_attention" : "attention",
        kernelElementTypes(arguments), op.getContext());
    if (failed(found))
      return failure();
    kernel = *found;
  }
  // What nobody has set is as the schedule says, if the kernel has a choice of
  // that.
  Builder builder(op.getContext());
  NamedAttrList parameters(given ? given.getParameters() : DictionaryAttr());
  const std::optional<MatrixISA> instructions =
      purpose.instructions ? purpose.instructions
                           : attentionInstructions(program.target);
  SmallVector<KernelConstant> constants =
      parametersOf(program, tile, cache, purpose.streams, instructions);
  const block::ParametersAttr declared = block::parametersOf(kernel);
  for (const KernelConstant &each : constants) {
    block::ParameterAttr parameter = declared.find(each.name);
    if (parameter && llvm::is_contained(parameter.getChoices(), each.value) &&
        !parameters.get(each.name))
      parameters.set(each.name, builder.getI64IntegerAttr(each.value));
  }
  // Of a kernel's own size, whatever set it.
  const auto sizeOf = [&](StringRef name, int64_t otherwise) -> int64_t {
    auto set = dyn_cast_or_null<IntegerAttr>(parameters.get(name));
    block::ParameterAttr own = declared.find(name);
    const int64_t size = set                    ? set.getInt()
                         : own && own.isTuned() ? own.getUntuned()
                                                : otherwise;
    return std::max<int64_t>(size, 1);
  };
  const auto queries = static_cast<int64_t>(
      llvm::alignTo(purpose.tokens * shape.group, sizeOf("ROWS", tile.rows)));
  constants.append({{"HEADS", purpose.heads},
                    {"TOKENS", purpose.tokens},
                    {"QUERIES", queries},
                    {"CHANNEL_PAIRS", shape.headDim / 2},
                    {"PANELS", sizeOf("CHUNK", tile.chunk) /
                                   sizeOf("KEYS", tile.keyBlocks)}});
  llvm::append_range(constants, op.getKernelConstants());
  FailureOr<block::Bindings> bindings =
      bindKernel(op, kernel, arguments, constants,
                 parameters.getDictionary(op.getContext()));
  if (failed(bindings))
    return failure();
  return AttentionKernel(program, op, {kernel, std::move(*bindings)},
                         instructions);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Memory without a number, of `rank` dimensions.
static Value nothing(LoopBuilder &b, const ProgramContext &program,
                     size_t rank) {
  auto type = MemRefType::get(SmallVector<int64_t>(rank, 0), b.getF32Type());
  Value &memory = program.scratch[{0, type}];
  if (!memory)
    memory = b.scratch(program.function, type.getShape(), b.getF32Type());
  return memory;
}

/// Of rows whose last dimensions are all heads and their channels, as
/// `dimensions` say, `count` rows from `first` on and the heads of a piece,
/// [rows, heads, group, width].
static Value viewHeads(LoopBuilder &b, Value buffer,
                       ArrayRef<ReassociationIndices> dimensions, int64_t width,
                       OpFoldResult first, OpFoldResult count,
                       const AttentionShape &shape,
                       const AttentionPiece &piece) {
  auto type = cast<MemRefType>(buffer.getType());
  const SmallVector<int64_t> sizes = {type.getDimSize(0), shape.cacheHeads,
                                      shape.group, width};
  Value heads = memref::ExpandShapeOp::create(b, sizes, buffer, dimensions);
  const OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return memref::SubViewOp::create(
      b, heads, ArrayRef<OpFoldResult>{first, piece.firstHead, zero, zero},
      ArrayRef<OpFoldResult>{count, piece.heads, b.getIndexAttr(shape.group),
                             b.getIndexAttr(width)},
      ArrayRef<OpFoldResult>{one, one, one, one});
}

/// Of [tokens, channels] what a piece has.
static Value viewTokens(LoopBuilder &b, Value buffer,
                        const AttentionShape &shape,
                        const AttentionPiece &piece) {
  return viewHeads(b, buffer, {{0}, {1, 2, 3}}, shape.headDim, piece.firstToken,
                   piece.tokens, shape, piece);
}

/// Of a cache [blocks, layers, heads, 2, elements], of a layer and the heads of
/// a piece, `count` elements from `first` on of keys (`part` 0) or values (1),
/// [blocks, heads, count].
static Value viewCache(LoopBuilder &b, Value cache, AttentionOp op,
                       const AttentionPiece &piece, int64_t part, int64_t first,
                       int64_t count) {
  auto type = cast<MemRefType>(cache.getType());
  const OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  Value blocks = memref::DimOp::create(b, cache, 0);
  const SmallVector<OpFoldResult> offsets = {
      zero, op.getLayer(), piece.firstHead, b.getIndexAttr(part),
      b.getIndexAttr(first)};
  const SmallVector<OpFoldResult> sizes = {blocks, one, piece.heads, one,
                                           b.getIndexAttr(count)};
  const SmallVector<OpFoldResult> strides(5, one);
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, ShapedType::kDynamic, count}, type, offsets, sizes,
      strides);
  return memref::SubViewOp::create(b, view, cache, offsets, sizes, strides);
}

/// Of [blocks, heads, elements] the elements as [rows, pair, columns], where
/// those of a pair lie beside each other.
static Value viewPairs(LoopBuilder &b, Value view, int64_t rows,
                       int64_t columns, int64_t pair) {
  auto type = cast<MemRefType>(view.getType());
  const SmallVector<int64_t> sizes = {type.getDimSize(0), type.getDimSize(1),
                                      rows, columns, pair};
  Value asTheyLie = memref::ExpandShapeOp::create(
      b, sizes, view, SmallVector<ReassociationIndices>{{0}, {1}, {2, 3, 4}});
  return memref::TransposeOp::create(
      b, asTheyLie,
      AffineMapAttr::get(AffineMap::getPermutationMap(
          ArrayRef<unsigned>{0, 1, 2, 4, 3}, b.getContext())));
}

/// The cache's bytes as floats.
static Value viewFloats(LoopBuilder &b, Value cache) {
  auto type = cast<MemRefType>(cache.getType());
  ReassociationIndices all;
  for (int64_t i = 0; i < type.getRank(); ++i)
    all.push_back(i);
  Value bytes = memref::CollapseShapeOp::create(
      b, cache, SmallVector<ReassociationIndices>{all});
  SmallVector<int64_t> sizes(type.getShape());
  sizes.back() /= static_cast<int64_t>(sizeof(float));
  SmallVector<Value> dynamic;
  if (type.isDynamicDim(0))
    dynamic.push_back(memref::DimOp::create(b, cache, 0));
  return memref::ViewOp::create(b, MemRefType::get(sizes, b.getF32Type()),
                                bytes, b.index(0), dynamic);
}

Value AttentionKernel::viewPartialSums(LoopBuilder &b, AttentionOp op) {
  const AttentionShape shape = op.getShape();
  const int64_t heads = shape.cacheHeads * shape.group;
  const int64_t width = shape.headDim + 2;
  Value memory = op.getPartialSums();
  const int64_t bytes = cast<MemRefType>(memory.getType()).getDimSize(0);
  const int64_t parts =
      bytes / (heads * width * static_cast<int64_t>(sizeof(float)));
  return memref::ViewOp::create(
      b, MemRefType::get({parts, heads, width}, b.getF32Type()), memory,
      b.index(0), ValueRange());
}

/// Of that view the rows of a part, [1, heads, group, head_dim + 2].
static Value viewPart(LoopBuilder &b, Value partial,
                      const AttentionShape &shape,
                      const AttentionPiece &piece) {
  return viewHeads(b, partial, {{0}, {1, 2}, {3}}, shape.headDim + 2,
                   piece.part, b.getIndexAttr(1), shape, piece);
}

LogicalResult AttentionKernel::call(LoopBuilder &b, const AttentionPiece &piece,
                                    Value partial) {
  const KVCacheType cacheType = getKVCacheType(op.getKvCache().getType());
  const AttentionShape shape = op.getShape();
  const int64_t together = cacheType.getKeyChannelsTogether();
  const int64_t pairs = shape.headDim / together;
  constexpr int64_t block = KVCacheType::blockTokens;
  Value cache = op.getKvCache();
  const auto elements = [&](int64_t part) {
    return viewCache(b, cache, op, piece, part, 0, shape.headDim * block);
  };
  SmallVector<Value> arguments = {
      viewTokens(b, op.getQuery(), shape, piece),
      viewPairs(b, elements(0), pairs, block, together),
      viewPairs(b, elements(1), block, pairs, together)};
  if (cacheType.hasScales()) {
    Value floats = viewFloats(b, cache);
    for (int64_t part : {0, 1})
      arguments.push_back(viewCache(b, floats, op, piece, part,
                                    cacheType.getScalesOffset() /
                                        static_cast<int64_t>(sizeof(float)),
                                    block));
  } else {
    arguments.append(2, nothing(b, program, 3));
  }
  arguments.push_back(memref::SubViewOp::create(
      b, op.getBlockTables(), ArrayRef<OpFoldResult>{piece.firstBlock},
      ArrayRef<OpFoldResult>{piece.blocks},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)}));
  arguments.push_back(piece.context);
  arguments.push_back(arith::ConstantOp::create(b, op.getScaleAttr()));
  arguments.push_back(viewTokens(b, op.getDestination(), shape, piece));
  arguments.push_back(partial ? viewPart(b, partial, shape, piece)
                              : nothing(b, program, 4));
  return program.kernels.call(b, use, arguments, instructions);
}

//===----------------------------------------------------------------------===//
// Parts of contexts
//===----------------------------------------------------------------------===//

LogicalResult lm::mergeParts(LoopBuilder &b, const ProgramContext &program,
                             AttentionOp op, Value partial, Value firstPart,
                             int64_t parts, Value token, Value firstHead,
                             Value heads) {
  const AttentionShape shape = op.getShape();
  const int64_t width = shape.headDim + 2;
  auto type = cast<MemRefType>(op.getDestination().getType());
  const OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  Value own = memref::SubViewOp::create(
      b, partial, ArrayRef<OpFoldResult>{firstPart, firstHead, zero},
      ArrayRef<OpFoldResult>{b.getIndexAttr(parts), heads,
                             b.getIndexAttr(width)},
      ArrayRef<OpFoldResult>{one, one, one});
  // The token's heads, as rows.
  const int64_t queryHeads = shape.cacheHeads * shape.group;
  Value rows = memref::ExpandShapeOp::create(
      b, SmallVector<int64_t>{type.getDimSize(0), queryHeads, shape.headDim},
      op.getDestination(), SmallVector<ReassociationIndices>{{0}, {1, 2}});
  const SmallVector<OpFoldResult> offsets = {token, firstHead, zero};
  const SmallVector<OpFoldResult> sizes = {one, heads,
                                           b.getIndexAttr(shape.headDim)};
  const SmallVector<OpFoldResult> strides(3, one);
  MemRefType rowsType = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, shape.headDim}, cast<MemRefType>(rows.getType()),
      offsets, sizes, strides);
  Value result =
      memref::SubViewOp::create(b, rowsType, rows, offsets, sizes, strides);
  const SmallVector<KernelArgument> arguments = {
      {"partial results", b.getF32Type(), {"parts", "rows", width}},
      {"result", type.getElementType(), {"rows", shape.headDim}}};
  FailureOr<func::FuncOp> kernel = program.kernels.fromLibrary(
      "merge_attention", kernelElementTypes(arguments), op.getContext());
  if (failed(kernel))
    return failure();
  FailureOr<block::Bindings> bindings =
      bindKernel(op, *kernel, arguments, {}, DictionaryAttr());
  if (failed(bindings))
    return failure();
  return program.kernels.call(b, {*kernel, std::move(*bindings)}, {own, result},
                              std::nullopt);
}
