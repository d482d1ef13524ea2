//===- NestLibrary.cpp - Micro-kernels for measuring ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/NestLibrary.h"
#include "MeasuredCode.h"
#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <chrono>
#include <numeric>
#include <optional>
#include <tuple>

using namespace mlir;
using namespace sandwich;

namespace {

// MLIR's own prefix of functions that take pointers to descriptors.
constexpr llvm::StringLiteral entryPrefix = "_mlir_ciface_";

/// Columns of the weights that nests are compiled for: more than any has. A
/// nest takes its columns from its arguments.
constexpr int64_t manyColumns = int64_t(1) << 30;

constexpr llvm::StringLiteral nestName = "nest";
/// More than any slice has: all of it is one chunk.
constexpr int64_t noChunkK = int64_t(1) << 40;

Error stoppedError() { return makeError("measuring was stopped"); }

} // namespace

/// What code depends on: a nest, or a micro-kernel that nests call.
struct NestLibrary::Key {
  /// Of the micro-kernel; a nest has no rows.
  MicroKernel kernel;
  Packing packing;
  int64_t k;
  bool bf16Weights;
  /// Of a nest.
  LoopOrder order = LoopOrder::RowsOuter;
  StoreKind stores = StoreKind::Cached;
  bool packsInput = false;
  /// Of a micro-kernel.
  int64_t prefetchLines = 0, prefetchStreams = 1, prefetchPanels = 1;
  PrefetchHint prefetchHint = PrefetchHint::L1;
  StreamedOperands streamed = StreamedOperands::None;
  bool operandsStay = false;

  auto tie() const {
    return std::tuple(kernel.isa, kernel.rows, kernel.columns, packing.panel,
                      packing.tile, packing.kStep, packing.kPack, k,
                      bf16Weights, order, stores, packsInput, prefetchLines,
                      prefetchStreams, prefetchPanels, prefetchHint, streamed,
                      operandsStay);
  }
  bool operator<(const Key &other) const { return tie() < other.tie(); }
  bool isNest() const { return kernel.rows == 0; }
};

/// What a schedule's nest needs compiled.
struct NestLibrary::Plan {
  struct Calls {
    PrefetchPlan prefetch;
    /// By units of a strip.
    std::map<int64_t, Key> microKernels;
  };
  Key nest;
  /// Of strips of a micro-kernel's columns, and of one panel.
  Calls wide = {}, panel = {};

  void collect(std::set<Key> &keys) const;
};

struct NestLibrary::Loaded {
  void *function;
};

/// Machine code and the name of its function.
struct NestLibrary::Compiled {
  std::string object;
  std::string name;
};

NestLibrary::NestLibrary(const Target &target, unsigned threads,
                         std::unique_ptr<measuring::CodeLoader> loader,
                         std::function<bool()> stop)
    : target(target), stop(std::move(stop)),
      compiler(std::make_unique<measuring::ParallelCompiler>(threads)),
      loader(std::move(loader)) {}
NestLibrary::~NestLibrary() = default;

Result<std::unique_ptr<NestLibrary>>
NestLibrary::create(const Target &target, unsigned threads,
                    std::function<bool()> stop) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<measuring::CodeLoader> loader,
                            measuring::CodeLoader::create(target));
  return std::unique_ptr<NestLibrary>(
      new NestLibrary(target, threads, std::move(loader), std::move(stop)));
}

/// Adds the function of a nest whose sums are stored.
static void addNest(ModuleOp module, const Schedule &schedule,
                    const MatmulShape &shape) {
  LoopBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  MLIRContext *context = module.getContext();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto bytes = MemRefType::get({dynamic}, b.getI8Type());
  SmallVector<Type> types(4, bytes);
  types.push_back(MemRefType::get({dynamic}, b.getIndexType()));
  types.append(7, b.getIndexType());
  auto function =
      func::FuncOp::create(b, nestName, b.getFunctionType(types, {}));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  ArrayRef<BlockArgument> arguments = function.getArguments();
  Value inputBytes = arguments[0], weightBytes = arguments[1],
        resultBytes = arguments[2], scratch = arguments[3],
        parameters = arguments[4], resultStride = arguments[5];
  SmallVector<Value> part(arguments.drop_front(6));
  Value rowEnd = part[1];

  bool bf16Input = multipliesBF16(schedule.microKernel.isa);
  auto element = [&](bool bf16) -> Type {
    return bf16 ? Type(b.getBF16Type()) : Type(b.getF32Type());
  };
  int64_t stride = rowStride(shape.k, bf16Input ? 2 : 4);
  Value rows = memref::ViewOp::create(
      b, MemRefType::get({dynamic, stride}, element(bf16Input)), inputBytes,
      b.index(0), rowEnd);
  auto attribute = [&](int64_t value) { return b.getIndexAttr(value); };
  Value input = memref::SubViewOp::create(
      b, rows, ArrayRef<OpFoldResult>{attribute(0), attribute(0)},
      {rowEnd, attribute(shape.k)}, {attribute(1), attribute(1)});
  auto packing = gemm::PackingAttr::get(context, *shape.packing);
  Value weight = memref::ViewOp::create(
      b, packing.getBufferType(shape.n, shape.k, element(shape.bf16Weights)),
      weightBytes, b.index(0), ValueRange());
  Value result = memref::ViewOp::create(
      b, MemRefType::get({dynamic, dynamic}, b.getF32Type()), resultBytes,
      b.index(0), ValueRange{rowEnd, resultStride});

  auto nest = gemm::NestOp::create(
      b, input, weight, part, parameters, scratch, schedule,
      columnUnitOf(shape, *shape.packing), {0, lm::maxDimension});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(nest.getBody());
    ValueRange place = nest.getPlace();
    int64_t width = std::gcd(vectorWidth, shape.packing->panel);
    bool nonTemporal = schedule.stores == StoreKind::NonTemporal;
    Value end = b.mul(b.div(b.add(place[3], width - 1), width), width);
    b.forLoop(b.index(0), place[1], 1, [&](Value row) {
      b.forLoop(b.index(0), end, width, [&](Value column) {
        Value vector = b.loadVector(nest.getSums(), {row, column}, width);
        b.storeVector(vector, result,
                      {b.add(place[0], row), b.add(place[2], column)},
                      nonTemporal);
      });
    });
    if (nonTemporal)
      LLVM::FenceOp::create(b, LLVM::AtomicOrdering::seq_cst);
  }
  func::ReturnOp::create(b);
}

/// Adds the micro-kernel; returns its name.
static std::string
addMicroKernel(ModuleOp module,
               const MicroKernelSpecialization &specialization) {
  func::FuncOp function = MicroKernelLibrary(module).get(specialization);
  function.setPublic();
  function->removeAttr("llvm.linkage");
  return function.getName().str();
}

Result<NestLibrary::Compiled>
NestLibrary::compile(const Key &key, measuring::CompileSession &session) const {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&session.context));
  std::string name;
  if (key.isNest()) {
    MatmulShape shape{.n = manyColumns / key.packing.panel * key.packing.panel,
                      .k = key.k,
                      .bf16Weights = key.bf16Weights,
                      .packing = key.packing};
    Schedule schedule{.microKernel = key.kernel};
    schedule.microKernel.rows = registerFileOf(key.kernel.isa).rows;
    schedule.slice = {1, key.kernel.columns, key.packing.kStep};
    schedule.order = key.order;
    schedule.stores = key.stores;
    schedule.packsInput = key.packsInput;
    addNest(*module, schedule, shape);
    name = (entryPrefix + nestName).str();
  } else {
    MicroKernelSpecialization specialization;
    specialization.kernel = key.kernel;
    specialization.packing = key.packing;
    bool bf16Input = multipliesBF16(key.kernel.isa);
    specialization.inputStride = rowStride(key.k, bf16Input ? 2 : 4);
    specialization.widensWeights = key.bf16Weights && !bf16Input;
    specialization.prefetchLines = key.prefetchLines;
    specialization.prefetchStreams = key.prefetchStreams;
    specialization.prefetchPanels = key.prefetchPanels;
    specialization.prefetchHint = key.prefetchHint;
    specialization.packedInput = key.packsInput;
    specialization.streamed = key.streamed;
    specialization.operandsStay = key.operandsStay;
    name = addMicroKernel(*module, specialization);
  }

  std::string prefix = key.isNest() ? entryPrefix.str() : name;
  SANDWICH_ASSIGN_OR_RETURN(
      std::string object,
      measuring::compileObject(*module, target, prefix,
                               [](OpPassManager &manager) {
                                 manager.addPass(createGemmToLoops());
                               }));
  return Compiled{std::move(object), std::move(name)};
}

Result<NestLibrary::Loaded> NestLibrary::load(const Compiled &code) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<void *> functions,
                            loader->load(code.object, {code.name}));
  return Loaded{functions.front()};
}

Status NestLibrary::compileMissing(const std::set<Key> &needed) {
  std::vector<Key> missing;
  for (const Key &key : needed)
    if (!loaded.contains(key))
      missing.push_back(key);
  if (missing.empty())
    return {};
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  std::vector<std::optional<Result<Compiled>>> results(missing.size());
  const bool stopped = compiler->run(
      missing.size(), stop, [&](size_t i, measuring::CompileSession &session) {
        results[i].emplace(compile(missing[i], session));
      });
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!results[i])
      continue;
    if (!*results[i])
      return results[i]->error();
    SANDWICH_ASSIGN_OR_RETURN(Loaded code, load(**results[i]));
    loaded.emplace(missing[i], code);
  }
  seconds += secondsSince(begin);
  if (stopped)
    return stoppedError();
  return {};
}

NestLibrary::Plan NestLibrary::plan(const MatmulShape &shape,
                                    const Schedule &schedule, int64_t minRows,
                                    int64_t maxRows) {
  const MicroKernel &kernel = schedule.microKernel;
  Packing packing = packingFor(shape, kernel.isa);
  int64_t elementBytes = shape.bf16Weights ? 2 : 4;
  Plan plan{.nest = {.kernel = {kernel.isa, 0, kernel.columns},
                     .packing = packing,
                     .k = shape.k,
                     .bf16Weights = shape.bf16Weights,
                     .order = schedule.order,
                     .stores = schedule.stores,
                     .packsInput = schedule.packsInput}};
  const int64_t unit = rowUnitOf(kernel.isa);
  std::set<int64_t> strips =
      stripRows(minRows, maxRows, schedule.slice[0], kernel);
  int64_t wide = std::max(kernel.columns, packing.panel);
  std::pair<Plan::Calls *, int64_t> kinds[] = {{&plan.wide, wide},
                                               {&plan.panel, packing.panel}};
  for (auto [calls, width] : kinds) {
    calls->prefetch = planPrefetch(schedule, packing, width, elementBytes);
    for (int64_t rows : strips) {
      Key key = plan.nest;
      key.order = Key().order;
      key.stores = Key().stores;
      key.kernel = {kernel.isa, rows, std::min(kernel.columns, width)};
      // Tiles have the distance of rows at run time.
      if (hasTiles(kernel.isa))
        key.k = 0;
      key.streamed = schedule.streamed;
      key.prefetchLines = calls->prefetch.lines;
      if (calls->prefetch.lines > 0) {
        key.prefetchStreams = calls->prefetch.streams;
        key.prefetchPanels = calls->prefetch.panels;
        key.prefetchHint = schedule.prefetchHint;
      }
      calls->microKernels.emplace(rows / unit, key);
    }
  }
  return plan;
}

void NestLibrary::Plan::collect(std::set<Key> &keys) const {
  keys.insert(nest);
  for (const Calls *calls : {&wide, &panel})
    for (const auto &[units, key] : calls->microKernels)
      keys.insert(key);
}

Status NestLibrary::compileSlices(const MatmulShape &shape,
                                  const std::vector<Schedule> &schedules) {
  if (stop && stop())
    return stoppedError();
  std::set<Key> needed;
  for (const Schedule &schedule : schedules)
    plan(shape, schedule, schedule.slice[0], schedule.slice[0]).collect(needed);
  return compileMissing(needed);
}

Result<PreparedNest> NestLibrary::prepare(const MatmulShape &shape,
                                          const Schedule &schedule,
                                          int64_t minRows, int64_t maxRows) {
  return prepare(schedule, plan(shape, schedule, minRows, maxRows));
}

Result<PreparedNest> NestLibrary::preparePeak(const MatmulShape &shape,
                                              const Schedule &schedule) {
  const int64_t rows = schedule.microKernel.rows;
  Plan plan = NestLibrary::plan(shape, schedule, rows, rows);
  for (Plan::Calls *calls : {&plan.wide, &plan.panel})
    for (auto &[units, key] : calls->microKernels)
      key.operandsStay = true;
  return prepare(schedule, plan);
}

Result<PreparedNest> NestLibrary::prepare(const Schedule &schedule,
                                          const Plan &plan) {
  if (stop && stop())
    return stoppedError();
  std::set<Key> needed;
  plan.collect(needed);
  SANDWICH_RETURN_IF_ERROR(compileMissing(needed));

  PreparedNest prepared;
  NestParameters &parameters = prepared.parameters;
  const int64_t unit = rowUnitOf(schedule.microKernel.isa);
  parameters.sliceUnits = divideUp(schedule.slice[0], unit);
  parameters.sliceColumns = schedule.slice[1];
  parameters.sliceK = schedule.slice[2];
  parameters.chunkK = schedule.chunkK > 0 ? schedule.chunkK : noChunkK;
  parameters.stripUnits = schedule.microKernel.rows / unit;
  parameters.prefetchDistance = schedule.prefetchDistance;
  auto link = [&](const Plan::Calls &planned, NestParameters::Calls &calls) {
    calls.prefetch = planned.prefetch;
    for (const auto &[units, key] : planned.microKernels)
      calls.addresses[units] =
          reinterpret_cast<int64_t>(loaded.at(key).function);
  };
  link(plan.wide, parameters.wide);
  link(plan.panel, parameters.panel);
  prepared.function =
      reinterpret_cast<PreparedNest::Function>(loaded.at(plan.nest).function);
  return prepared;
}
