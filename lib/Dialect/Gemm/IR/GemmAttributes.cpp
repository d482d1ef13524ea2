//===- GemmAttributes.cpp - Schedules as attributes -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/ParseName.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::gemm;

llvm::hash_code sandwich::hash_value(const Schedule &schedule) {
  return llvm::hash_combine(
      static_cast<int>(schedule.microKernel.isa), schedule.microKernel.rows,
      schedule.microKernel.columns,
      llvm::hash_combine_range(schedule.slice.begin(), schedule.slice.end()),
      llvm::hash_combine_range(schedule.threads.begin(),
                               schedule.threads.end()),
      schedule.prefetchLines, schedule.prefetchDistance,
      static_cast<int>(schedule.order), schedule.prefetchStreams,
      static_cast<int>(schedule.prefetchHint),
      static_cast<int>(schedule.stores), schedule.chunkK, schedule.packsInput,
      static_cast<int>(schedule.streamed), schedule.groupK,
      schedule.copiesAhead);
}

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Gemm/IR/GemmAttributes.cpp.inc"

void GemmDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Gemm/IR/GemmAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

LogicalResult PackingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t panel, int64_t tile, int64_t kStep,
                                  int64_t kPack) {
  constexpr int64_t maxSize = 4096;
  for (int64_t size : {panel, tile, kStep, kPack})
    if (size <= 0 || size > maxSize)
      return emitError() << "(C1) packing sizes must be between 1 and "
                         << maxSize;
  if (panel % tile != 0)
    return emitError() << "(C2) tile must divide panel";
  if (kStep % kPack != 0)
    return emitError() << "(C3) k_pack must divide k_step";
  return success();
}

PackingAttr PackingAttr::get(MLIRContext *context, const Packing &packing) {
  return get(context, packing.panel, packing.tile, packing.kStep,
             packing.kPack);
}

Packing PackingAttr::getPacking() const {
  return {getPanel(), getTile(), getKStep(), getKPack()};
}

MemRefType PackingAttr::getBufferType(int64_t n, int64_t k,
                                      const StorageFormat &storage) const {
  if (storage.isQuantized()) {
    const int64_t group = storage.groupOf(k);
    return MemRefType::get({(n + getPanel() - 1) / getPanel(), k / group,
                            groupBytes(storage, getPanel(), group)},
                           IntegerType::get(getContext(), 8));
  }
  Type elementType = Float32Type::get(getContext());
  if (storage.number == NumberFormat::BF16)
    elementType = BFloat16Type::get(getContext());
  return MemRefType::get({(n + getPanel() - 1) / getPanel(), k / getKStep(),
                          getPanel() / getTile(), getKStep() / getKPack(),
                          getTile(), getKPack()},
                         elementType);
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

static ParseResult parseSizes(AsmParser &parser, StringRef keyword,
                              MutableArrayRef<int64_t> sizes) {
  if (parser.parseKeyword(keyword) || parser.parseEqual())
    return failure();
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> parsed;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(parsed.emplace_back());
      }))
    return failure();
  if (parsed.size() != sizes.size())
    return parser.emitError(location)
           << "'" << keyword << "' has " << sizes.size() << " sizes";
  llvm::copy(parsed, sizes.begin());
  return success();
}

Attribute EpilogueAttr::parse(AsmParser &parser, Type) {
  Epilogue epilogue = Epilogue::None;
  if (parser.parseLess() ||
      parseName(parser, epilogue, epilogueNamed,
                "epilogue: none, add_residual, silu_mul, rotate_append_kv, "
                "gelu_exact or gelu_tanh") ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), epilogue);
}

void EpilogueAttr::print(AsmPrinter &printer) const {
  printer << '<' << sandwich::name(getValue()) << '>';
}

/// Which of two keywords there is: whether it is `second`.
static ParseResult parseOneOf(AsmParser &parser, StringRef what,
                              StringRef first, StringRef second,
                              bool &isSecond) {
  SMLoc location = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  isSecond = keyword == second;
  if (!isSecond && keyword != first)
    return parser.emitError(location) << "'" << keyword << "' is no " << what
                                      << ": " << first << " or " << second;
  return success();
}

/// What is printed only where it differs from the default; in this order, each
/// at most once.
static ParseResult parseWalk(AsmParser &parser, Schedule &schedule) {
  constexpr StringLiteral keywords[] = {"streams",  "hint",    "order",
                                        "stores",   "k_chunk", "input",
                                        "streamed", "k_group", "copy"};
  ArrayRef<StringLiteral> left(keywords);
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc location = parser.getCurrentLocation();
    StringRef keyword;
    while (keyword.empty() && !left.empty()) {
      if (succeeded(parser.parseOptionalKeyword(left.front())))
        keyword = left.front();
      left = left.drop_front();
    }
    if (keyword.empty())
      return parser.emitError(location)
             << "expected 'streams', 'hint', 'order', 'stores', 'k_chunk', "
                "'input', 'streamed', 'k_group' or 'copy', in this order";
    if (parser.parseEqual())
      return failure();
    ParseResult result =
        keyword == "streams"   ? parser.parseInteger(schedule.prefetchStreams)
        : keyword == "k_chunk" ? parser.parseInteger(schedule.chunkK)
        : keyword == "k_group" ? parser.parseInteger(schedule.groupK)
        : keyword == "input"   ? parseOneOf(parser, "form of input", "rows",
                                            "packed", schedule.packsInput)
        : keyword == "copy"    ? parseOneOf(parser, "time to copy", "before",
                                            "ahead", schedule.copiesAhead)
        : keyword == "streamed"
            ? parseName(parser, schedule.streamed, streamedOperandsNamed,
                        "set of operands: none, input, weight or both")
        : keyword == "hint"
            ? parseName(parser, schedule.prefetchHint, prefetchHintNamed,
                        "prefetch hint: l1, l2 or non_temporal")
        : keyword == "order"
            ? parseName(parser, schedule.order, loopOrderNamed,
                        "loop order: rows_outer or columns_outer")
            : parseName(parser, schedule.stores, storeKindNamed,
                        "kind of stores: cached or non_temporal");
    if (result)
      return failure();
  }
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  StringRef name;
  Schedule schedule;
  std::array<int64_t, 2> prefetch;
  if (parser.parseLess() || parser.parseKeyword("micro_kernel") ||
      parser.parseEqual())
    return {};
  SMLoc nameLocation = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return {};
  Result<MicroKernel> kernel = MicroKernel::parse(name.str());
  if (!kernel) {
    parser.emitError(nameLocation) << "(C1) " << kernel.error().message;
    return {};
  }
  schedule.microKernel = *kernel;
  if (parser.parseComma() || parseSizes(parser, "slice", schedule.slice) ||
      parser.parseComma() || parseSizes(parser, "threads", schedule.threads) ||
      parser.parseComma() || parseSizes(parser, "prefetch", prefetch) ||
      parseWalk(parser, schedule) || parser.parseGreater())
    return {};
  schedule.prefetchLines = prefetch[0];
  schedule.prefetchDistance = prefetch[1];
  return parser.getChecked<ScheduleAttr>(start, parser.getContext(), schedule);
}

static void printSizes(AsmPrinter &printer, StringRef keyword,
                       ArrayRef<int64_t> sizes) {
  printer << ", " << keyword << " = [";
  llvm::interleaveComma(sizes, printer);
  printer << "]";
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  const Schedule &schedule = getSchedule();
  printer << "<micro_kernel = " << schedule.microKernel.name();
  printSizes(printer, "slice", schedule.slice);
  printSizes(printer, "threads", schedule.threads);
  printSizes(printer, "prefetch",
             {schedule.prefetchLines, schedule.prefetchDistance});
  if (schedule.prefetchStreams != Schedule().prefetchStreams)
    printer << ", streams = " << schedule.prefetchStreams;
  if (schedule.prefetchHint != Schedule().prefetchHint)
    printer << ", hint = " << sandwich::name(schedule.prefetchHint);
  if (schedule.order != Schedule().order)
    printer << ", order = " << sandwich::name(schedule.order);
  if (schedule.stores != Schedule().stores)
    printer << ", stores = " << sandwich::name(schedule.stores);
  if (schedule.chunkK != Schedule().chunkK)
    printer << ", k_chunk = " << schedule.chunkK;
  if (schedule.packsInput)
    printer << ", input = packed";
  if (schedule.streamed != Schedule().streamed)
    printer << ", streamed = " << sandwich::name(schedule.streamed);
  if (schedule.groupK != Schedule().groupK)
    printer << ", k_group = " << schedule.groupK;
  if (schedule.copiesAhead)
    printer << ", copy = ahead";
  printer << ">";
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Schedule schedule) {
  if (Status status = sandwich::verify(schedule.microKernel); !status)
    return emitError() << "(C1) " << status.error().message;
  constexpr int64_t maxPrefetchLines = 1024;
  for (int64_t size : schedule.slice)
    if (size <= 0 || size > lm::maxDimension)
      return emitError() << "(C2) slice sizes must be between 1 and "
                         << lm::maxDimension;
  int64_t team = 1;
  for (int64_t size : schedule.threads) {
    if (size <= 0 || size > maxThreads / team)
      return emitError() << "(C2) thread grid must have positive sizes and at "
                            "most "
                         << maxThreads << " threads";
    team *= size;
  }
  int64_t columns = schedule.microKernel.columns;
  int64_t kStep = packingOf(schedule.microKernel.isa).kStep;
  if (schedule.slice[1] % columns != 0 || schedule.slice[2] % kStep != 0)
    return emitError() << "(C3) slice columns must be a multiple of the "
                          "micro-kernel's "
                       << columns << ", slice K a multiple of " << kStep;
  if (schedule.prefetchLines < 0 || schedule.prefetchLines > maxPrefetchLines ||
      schedule.prefetchDistance < 0 ||
      schedule.prefetchDistance > lm::maxDimension)
    return emitError() << "(C4) prefetch lines must be between 0 and "
                       << maxPrefetchLines << ", their distance between 0 and "
                       << lm::maxDimension;
  constexpr int64_t maxStreams = 64;
  if (schedule.prefetchStreams < 1 || schedule.prefetchStreams > maxStreams ||
      (schedule.prefetchStreams > 1 && schedule.prefetchDistance > 0))
    return emitError() << "(C5) prefetch streams must be between 1 and "
                       << maxStreams << ", and 1 where there is a distance";
  if (schedule.chunkK < 0 || schedule.chunkK > lm::maxDimension ||
      schedule.chunkK % kStep != 0)
    return emitError() << "(C6) K of a chunk must be a multiple of " << kStep
                       << ", at most " << lm::maxDimension;
  if (schedule.packsInput && !canPackInput(schedule.microKernel.isa))
    return emitError() << "(C7) " << schedule.microKernel.name()
                       << " does not read packed input";
  if (!schedule.packsInput && multipliesIntegers(schedule.microKernel.isa))
    return emitError() << "(C7) " << schedule.microKernel.name()
                       << " reads packed input only";
  if (!hasTiles(schedule.microKernel.isa) &&
      schedule.streamed != StreamedOperands::None)
    return emitError() << "(C8) only tiles stream operands";
  if (schedule.groupK < 0 || schedule.groupK > longestRegrouped ||
      schedule.groupK % smallestGroup != 0 ||
      (schedule.groupK > 0 && !multipliesIntegers(schedule.microKernel.isa)))
    return emitError() << "(C9) groups of k are for integers, and a multiple "
                          "of "
                       << smallestGroup << ", at most " << longestRegrouped;
  if (schedule.copiesAhead &&
      schedule.microKernel.isa != MatrixISA::X86_AMX_BF16)
    return emitError() << "(C10) copies are made ahead for "
                       << sandwich::name(MatrixISA::X86_AMX_BF16) << " only";
  return success();
}

//===----------------------------------------------------------------------===//
// Schedule table
//===----------------------------------------------------------------------===//

Attribute ScheduleTableAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  SmallVector<int64_t> maxRows;
  SmallVector<ScheduleAttr> schedules;
  auto parseEntry = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion()))
      maxRows.push_back(unlimitedRows);
    else if (parser.parseInteger(maxRows.emplace_back()))
      return failure();
    return failure(
        parser.parseColon() ||
        parser.parseCustomAttributeWithFallback(schedules.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry))
    return {};
  return parser.getChecked<ScheduleTableAttr>(start, parser.getContext(),
                                              maxRows, schedules);
}

void ScheduleTableAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip_equal(getMaxRows(), getSchedules()), printer,
                        [&](auto entry) {
                          auto [maxRows, schedule] = entry;
                          if (maxRows == unlimitedRows)
                            printer << "?";
                          else
                            printer << maxRows;
                          printer << " : ";
                          printer.printStrippedAttrOrType(schedule);
                        });
  printer << ">";
}

LogicalResult
ScheduleTableAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          ArrayRef<int64_t> maxRows,
                          ArrayRef<ScheduleAttr> schedules) {
  if (maxRows.empty() || maxRows.size() != schedules.size() ||
      maxRows.back() != unlimitedRows)
    return emitError() << "(C1) the last entry of a table must be '?'";
  for (auto [previous, next] :
       llvm::zip(maxRows.drop_back(), maxRows.drop_front()))
    if (previous <= 0 || next <= previous)
      return emitError() << "(C2) token counts must be positive and ascend";
  return success();
}
