//===- LMAttributes.cpp - Attributes and types of lm ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/IR/ParseName.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static llvm::hash_code hashOf(const AttentionTile &tile) {
  return llvm::hash_combine(tile.rows, tile.keyBlocks, tile.chunk);
}

llvm::hash_code sandwich::hash_value(const AttentionSchedule &schedule) {
  return llvm::hash_combine(hashOf(schedule.decode), schedule.split,
                            hashOf(schedule.prefill), schedule.tiles,
                            schedule.instructions);
}

static llvm::hash_code hashOf(const AttentionTableEntry &entry) {
  return llvm::hash_combine(entry.maxSegments, entry.maxPositions,
                            entry.schedule);
}

llvm::hash_code sandwich::hash_value(const AttentionTable &table) {
  return llvm::hash_combine_range(llvm::map_range(
      table, [](const AttentionTableEntry &entry) { return hashOf(entry); }));
}

llvm::hash_code sandwich::hash_value(const StorageFormat &format) {
  return llvm::hash_combine(format.number, format.groupSize, format.scale,
                            format.offset);
}

#include "sandwich/Dialect/LM/IR/LMEnums.cpp.inc"
#include "sandwich/Dialect/LM/IR/LMInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"

void LMDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "sandwich/Dialect/LM/IR/LMTypes.cpp.inc"
      >();
}

void LMDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/LM/IR/LMAttributes.cpp.inc"
      >();
}

/// Constraint (C1) of `!lm.kv_cache`.
static bool areCacheSizes(int64_t layers, int64_t heads, int64_t headDim) {
  return layers > 0 && layers <= maxLayers && heads > 0 && heads <= maxHeads &&
         headDim > 0 && headDim <= maxHeadDim;
}

/// Constraint (C3).
static bool areWholeLines(int64_t headDim, Type elementType) {
  return !elementType.isInteger(8) || headDim % 4 == 0;
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ShardKind kind, int64_t ranks) {
  if (!canShareModel(ranks))
    return emitError() << "(C1) ranks must be between 2 and "
                       << maxTensorParallelRanks;
  return success();
}

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

Attribute StorageAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  StorageFormat format;
  if (parser.parseLess() ||
      parseName(parser, format.number, numberFormatNamed,
                "format of numbers: int8, int4 or fp8") ||
      parser.parseComma() || parser.parseKeyword("group") ||
      parser.parseEqual())
    return {};
  if (failed(parser.parseOptionalKeyword("row"))) {
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseInteger(format.groupSize))
      return {};
    if (format.groupSize == 0) {
      parser.emitError(location) << "a group of a whole row is 'row'";
      return {};
    }
  }
  if (parser.parseComma() || parser.parseKeyword("scale") ||
      parser.parseEqual() ||
      parseName(parser, format.scale, scaleFormatNamed,
                "format of scales: f32 or f16"))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("offset") || parser.parseEqual() ||
       parseName(parser, format.offset, groupOffsetNamed,
                 "offset of a group: none or minimum")))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<StorageAttr>(start, parser.getContext(), format);
}

void StorageAttr::print(AsmPrinter &printer) const {
  const StorageFormat &format = getFormat();
  printer << "<" << sandwich::name(format.number) << ", group = ";
  if (format.groupSize == 0)
    printer << "row";
  else
    printer << format.groupSize;
  printer << ", scale = " << sandwich::name(format.scale);
  if (format.offset != GroupOffset::None)
    printer << ", offset = " << sandwich::name(format.offset);
  printer << ">";
}

LogicalResult StorageAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StorageFormat format) {
  if (!format.isQuantized())
    return emitError() << "(C1) " << sandwich::name(format.number)
                       << " has no scales; it is the weight's element type";
  if (Status status = sandwich::verify(format); !status)
    return emitError() << "(C1) " << status.error().message;
  return success();
}

//===----------------------------------------------------------------------===//
// Schedules of attention
//===----------------------------------------------------------------------===//

static ParseResult parseTile(AsmParser &parser, StringRef keyword,
                             AttentionTile &tile) {
  return failure(parser.parseKeyword(keyword) || parser.parseEqual() ||
                 parser.parseLSquare() || parser.parseInteger(tile.rows) ||
                 parser.parseComma() || parser.parseInteger(tile.keyBlocks) ||
                 parser.parseComma() || parser.parseInteger(tile.chunk) ||
                 parser.parseRSquare());
}

static void printTile(AsmPrinter &printer, StringRef keyword,
                      const AttentionTile &tile) {
  printer << keyword << " = [" << tile.rows << ", " << tile.keyBlocks << ", "
          << tile.chunk << "]";
}

/// `, tiles = 8` and `, instructions = X86_AVX512_BF16`, each if it is there.
static ParseResult parseTiles(AsmParser &parser, AttentionSchedule &schedule) {
  if (failed(parser.parseOptionalComma()))
    return success();
  if (succeeded(parser.parseOptionalKeyword("tiles"))) {
    if (parser.parseEqual() || parser.parseInteger(schedule.tiles))
      return failure();
    if (failed(parser.parseOptionalComma()))
      return success();
  }
  StringRef name;
  SMLoc start;
  if (parser.parseKeyword("instructions") || parser.parseEqual() ||
      parser.getCurrentLocation(&start) || parser.parseKeyword(&name))
    return failure();
  for (MatrixISA isa : allMatrixISAs())
    if (sandwich::name(isa) == std::string_view(name))
      schedule.instructions = isa;
  if (!schedule.instructions)
    return parser.emitError(start, "unknown instructions ") << name;
  return success();
}

Attribute AttentionScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  AttentionSchedule schedule;
  if (parser.parseLess() || parseTile(parser, "decode", schedule.decode) ||
      parser.parseComma() || parser.parseKeyword("split") ||
      parser.parseEqual() || parser.parseInteger(schedule.split) ||
      parser.parseComma() || parseTile(parser, "prefill", schedule.prefill) ||
      parseTiles(parser, schedule) || parser.parseGreater())
    return {};
  return parser.getChecked<AttentionScheduleAttr>(start, parser.getContext(),
                                                  schedule);
}

void AttentionScheduleAttr::print(AsmPrinter &printer) const {
  const AttentionSchedule &schedule = getSchedule();
  printer << "<";
  printTile(printer, "decode", schedule.decode);
  printer << ", split = " << schedule.split << ", ";
  printTile(printer, "prefill", schedule.prefill);
  if (schedule.tiles != 1)
    printer << ", tiles = " << schedule.tiles;
  if (schedule.instructions)
    printer << ", instructions = " << sandwich::name(*schedule.instructions);
  printer << ">";
}

LogicalResult
AttentionScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              AttentionSchedule schedule) {
  if (Status status = sandwich::verify(schedule); !status)
    return emitError() << "(C1) " << status.error().message;
  return success();
}

/// A number, or `?` for any.
static ParseResult parseLimit(AsmParser &parser, int64_t &limit) {
  if (succeeded(parser.parseOptionalQuestion()))
    return success();
  return parser.parseInteger(limit);
}

static void printLimit(AsmPrinter &printer, int64_t limit) {
  if (limit == AttentionTableEntry::unlimited)
    printer << "?";
  else
    printer << limit;
}

Attribute AttentionTableAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  AttentionTable table;
  auto parseEntry = [&]() -> ParseResult {
    AttentionTableEntry &entry = table.emplace_back();
    AttentionScheduleAttr schedule;
    if (parser.parseLSquare() || parseLimit(parser, entry.maxSegments) ||
        parser.parseComma() || parseLimit(parser, entry.maxPositions) ||
        parser.parseRSquare() || parser.parseColon() ||
        parser.parseCustomAttributeWithFallback(schedule))
      return failure();
    entry.schedule = schedule.getSchedule();
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry))
    return {};
  return parser.getChecked<AttentionTableAttr>(start, parser.getContext(),
                                               table);
}

void AttentionTableAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(
      getTable(), printer, [&](const AttentionTableEntry &entry) {
        printer << "[";
        printLimit(printer, entry.maxSegments);
        printer << ", ";
        printLimit(printer, entry.maxPositions);
        printer << "] : ";
        printer.printStrippedAttrOrType(
            AttentionScheduleAttr::get(getContext(), entry.schedule));
      });
  printer << ">";
}

LogicalResult
AttentionTableAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           AttentionTable table) {
  if (Status status = sandwich::verify(table); !status)
    return emitError() << "(C1) " << status.error().message;
  return success();
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

LogicalResult KVCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t layers, int64_t heads,
                                  int64_t headDim, Type elementType) {
  if (!areCacheSizes(layers, heads, headDim))
    return emitError() << "(C1) layers must be between 1 and " << maxLayers
                       << ", heads between 1 and " << maxHeads
                       << ", head_dim between 1 and " << maxHeadDim;
  if (!isa<Float32Type, BFloat16Type, Float16Type>(elementType) &&
      !elementType.isSignlessInteger(8))
    return emitError() << "(C2) elements must be f32, bf16, f16 or i8";
  if (!areWholeLines(headDim, elementType))
    return emitError() << "(C3) head_dim must be a multiple of 4 beside i8";
  return success();
}

/// Elements that a token has in the keys, or the values, of a head.
static int64_t elementsOfToken(int64_t headDim, Type elementType) {
  return elementType.isInteger(8) ? headDim + KVCacheType::scaleBytes : headDim;
}

MemRefType KVCacheType::getBufferType() const {
  return MemRefType::get(
      {ShapedType::kDynamic, getLayers(), getHeads(), 2,
       elementsOfToken(getHeadDim(), getElementType()) * blockTokens},
      getElementType());
}

bool KVCacheType::hasScales() const { return getElementType().isInteger(8); }

int64_t KVCacheType::getKeyChannelsTogether() const {
  // Rotation writes the halves of a head apart.
  return getElementType().isBF16() && getHeadDim() % 4 == 0 ? 2 : 1;
}

KVCacheType lm::getKVCacheType(Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return cache;
  auto buffer = cast<MemRefType>(type);
  int64_t layers = buffer.getDimSize(1), heads = buffer.getDimSize(2);
  Type element = buffer.getElementType();
  int64_t headDim = buffer.getDimSize(4) / KVCacheType::blockTokens -
                    elementsOfToken(0, element);
  if (!areCacheSizes(layers, heads, headDim) ||
      !areWholeLines(headDim, element))
    return {};
  auto cache =
      KVCacheType::get(type.getContext(), layers, heads, headDim, element);
  bool fits = buffer.getShape().drop_front() ==
              cache.getBufferType().getShape().drop_front();
  return fits ? cache : KVCacheType();
}
