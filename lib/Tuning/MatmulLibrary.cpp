//===- MatmulLibrary.cpp - Matmuls for measuring --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/MatmulLibrary.h"
#include "sandwich/Conversion/MicroKernel.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Tuning/MeasuredCode.h"

#include <chrono>
#include <compare>
#include <cstring>
#include <numeric>
#include <variant>

using namespace mlir;
using namespace sandwich;

namespace {

/// More than any slice has: all of it is one chunk.
constexpr int64_t noChunkK = int64_t(1) << 40;

Error stoppedError() { return makeError("measuring was stopped"); }

} // namespace

void MatmulCode::writeParameters(std::byte *workspaceBegin,
                                 const std::vector<ThreadPart> &parts) const {
  std::byte *place = workspaceBegin + workspace.parameters;
  std::memcpy(place, &*parameters, sizeof(NestParameters));
  std::memcpy(place + sizeof(NestParameters), parts.data(),
              parts.size() * sizeof(ThreadPart));
}

/// What the code of a micro-kernel depends on.
struct MatmulLibrary::MicroKernelKey {
  MicroKernel kernel;
  Packing packing;
  /// Elements between rows of the input; 0 where they are known at run time.
  int64_t inputStride = 0;
  bool widensWeights = false;
  /// See `MicroKernelSpecialization`.
  StorageFormat storage = {};
  int64_t group = 0;
  bool packsInput = false;
  StreamedOperands streamed = StreamedOperands::None;
  int64_t prefetchLines = 0, prefetchStreams = 1, prefetchPanels = 1;
  PrefetchHint prefetchHint = PrefetchHint::L1;
  bool operandsStay = false;

  auto operator<=>(const MicroKernelKey &) const = default;
};

/// What the code of a program depends on.
struct MatmulLibrary::ProgramKey {
  MatmulProgram program;
  /// One schedule without its numbers, where they are parameters.
  ScheduleTable table;
  ScheduleNumbers numbers;
  std::array<int64_t, 2> tokensBetween;

  auto operator<=>(const ProgramKey &) const = default;
};

struct MatmulLibrary::Key {
  std::variant<MicroKernelKey, ProgramKey> code;

  auto operator<=>(const Key &) const = default;
};

/// What a schedule whose numbers are parameters needs compiled.
struct MatmulLibrary::Plan {
  struct Calls {
    PrefetchPlan prefetch;
    /// By units of a strip.
    std::map<int64_t, MicroKernelKey> microKernels;
  };
  ProgramKey program;
  /// Of strips of a micro-kernel's columns, and of one panel.
  Calls wide = {}, panel = {};

  void collect(std::set<Key> &keys) const;
};

/// A function, and of a program the bytes of its workspace.
struct MatmulLibrary::Loaded {
  void *function;
  int64_t workspaceBytes;
};

/// Machine code and the name of its function.
struct MatmulLibrary::Compiled {
  std::string object;
  std::string name;
};

MatmulLibrary::MatmulLibrary(const Target &target, unsigned threads,
                             std::unique_ptr<measuring::CodeLoader> loader,
                             std::function<bool()> stop)
    : target(target), stop(std::move(stop)),
      compiler(std::make_unique<measuring::ParallelCompiler>(threads)),
      loader(std::move(loader)) {}
MatmulLibrary::~MatmulLibrary() = default;

Result<std::unique_ptr<MatmulLibrary>>
MatmulLibrary::create(const Target &target, unsigned threads,
                      std::function<bool()> stop) {
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<measuring::CodeLoader> loader,
                            measuring::CodeLoader::create(target));
  return std::unique_ptr<MatmulLibrary>(
      new MatmulLibrary(target, threads, std::move(loader), std::move(stop)));
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// Adds the micro-kernel; returns its name.
static std::string
addMicroKernel(ModuleOp module,
               const MicroKernelSpecialization &specialization) {
  func::FuncOp function = MicroKernelLibrary(module).get(specialization);
  function.setPublic();
  function->removeAttr("llvm.linkage");
  return function.getName().str();
}

Result<MatmulLibrary::Compiled>
MatmulLibrary::compile(const Key &key,
                       measuring::CompileSession &session) const {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&session.context));
  std::string name = matmulProgramSymbol.str();
  const bool isProgram = std::holds_alternative<ProgramKey>(key.code);
  if (isProgram) {
    const auto &[program, table, numbers, tokensBetween] =
        std::get<ProgramKey>(key.code);
    addMatmulProgram(*module, program, table, numbers, tokensBetween);
  } else {
    const auto &own = std::get<MicroKernelKey>(key.code);
    MicroKernelSpecialization specialization;
    specialization.kernel = own.kernel;
    specialization.packing = own.packing;
    specialization.inputStride = own.inputStride;
    specialization.widensWeights = own.widensWeights;
    specialization.storage = own.storage;
    specialization.group = own.group;
    specialization.prefetchLines = own.prefetchLines;
    specialization.prefetchStreams = own.prefetchStreams;
    specialization.prefetchPanels = own.prefetchPanels;
    specialization.prefetchHint = own.prefetchHint;
    specialization.packedInput = own.packsInput;
    specialization.streamed = own.streamed;
    specialization.operandsStay = own.operandsStay;
    name = addMicroKernel(*module, specialization);
  }
  SANDWICH_ASSIGN_OR_RETURN(
      std::string object,
      measuring::compileCode(session, *module, target, name,
                             isProgram ? "program" : "micro-kernel",
                             [&](OpPassManager &manager) {
                               if (!isProgram)
                                 return;
                               ScheduleToLoopsOptions options;
                               options.target = target.name;
                               buildScheduleToLoopsPipeline(manager, options);
                             }));
  return Compiled{std::move(object), std::move(name)};
}

Result<MatmulLibrary::Loaded> MatmulLibrary::load(const Key &key,
                                                  const Compiled &code) {
  std::vector<std::string> names = {code.name};
  const bool isProgram = std::holds_alternative<ProgramKey>(key.code);
  if (isProgram)
    names.push_back(code.name + SANDWICH_PLAN_SYMBOL_SUFFIX);
  SANDWICH_ASSIGN_OR_RETURN(std::vector<void *> symbols,
                            loader->load(code.object, names));
  Loaded loaded{symbols.front(), 0};
  if (isProgram)
    loaded.workspaceBytes =
        static_cast<const SandwichPlan *>(symbols.back())->workspace_bytes;
  return loaded;
}

Status MatmulLibrary::compileMissing(const std::set<Key> &needed) {
  if (stop && stop())
    return stoppedError();
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
    SANDWICH_ASSIGN_OR_RETURN(Loaded code, load(missing[i], **results[i]));
    loaded.emplace(missing[i], code);
  }
  seconds += secondsSince(begin);
  if (stopped)
    return stoppedError();
  return {};
}

//===----------------------------------------------------------------------===//
// Schedules as parameters
//===----------------------------------------------------------------------===//

/// The least K of a slice of `schedule`.
static int64_t leastSliceK(const MatmulShape &shape, const Schedule &schedule) {
  const MatrixISA isa = schedule.microKernel.isa;
  const int64_t kStep = packingOf(isa).kStep;
  if (multipliesIntegers(isa) || widensGroups(schedule, shape))
    return multipliedStorage(schedule, shape.storage).groupOf(shape.k);
  return unpacksWeights(isa, shape.storage) ? std::max(kStep, smallestGroup)
                                            : kStep;
}

/// `schedule` without what parameters say.
static Schedule withoutNumbers(const Schedule &schedule,
                               const MatmulShape &shape) {
  const MicroKernel &kernel = schedule.microKernel;
  const Packing packing = packingFor(shape, kernel.isa);
  Schedule fixed;
  fixed.microKernel = {kernel.isa, registerFileOf(kernel.isa).rows,
                       kernel.columns};
  // More rows than the micro-kernel has where the weight is unpacked.
  const bool unpacks = unpacksWeights(schedule, shape);
  fixed.slice = {unpacks ? fixed.microKernel.rows + 1 : 1,
                 std::lcm(columnUnitOf(shape, packing), kernel.columns),
                 leastSliceK(shape, schedule)};
  fixed.threads = {1, 1, schedule.threads[2]};
  fixed.order = schedule.order;
  fixed.stores = schedule.stores;
  fixed.packsInput = schedule.packsInput;
  fixed.groupK = schedule.groupK;
  if (unpacks) {
    fixed.prefetchLines = schedule.prefetchLines;
    fixed.prefetchHint = schedule.prefetchHint;
  }
  return fixed;
}

MatmulLibrary::Plan MatmulLibrary::plan(const MatmulProgram &program,
                                        const Schedule &schedule,
                                        int64_t minRows, int64_t maxRows) {
  const MicroKernel &kernel = schedule.microKernel;
  const MatmulShape &shape = program.shape;
  const Packing stored = packingFor(shape, kernel.isa);
  const bool widens = widensGroups(schedule, shape);
  const Packing packing =
      widens ? stored : multipliedPacking(kernel.isa, stored, shape.storage);
  Plan plan{.program = {program,
                        {{INT64_MAX, withoutNumbers(schedule, shape)}},
                        ScheduleNumbers::Parameters,
                        {0, program.maxRows}}};
  const int64_t unit = rowUnitOf(kernel.isa);
  std::set<int64_t> strips =
      stripRows(minRows, maxRows, schedule.slice[0], kernel);
  int64_t wide = std::max(kernel.columns, packing.panel);
  std::pair<Plan::Calls *, int64_t> kinds[] = {{&plan.wide, wide},
                                               {&plan.panel, packing.panel}};
  for (auto [calls, width] : kinds) {
    if (!unpacksWeights(schedule, shape))
      calls->prefetch = planPrefetch(schedule, packing, width, shape.storage);
    for (int64_t rows : strips) {
      MicroKernelKey key{
          .kernel = {kernel.isa, rows, std::min(kernel.columns, width)},
          .packing = packing,
          .widensWeights = widensWeights(kernel.isa, shape.storage),
          .packsInput = schedule.packsInput,
          .streamed = schedule.streamed,
          .prefetchLines = calls->prefetch.lines};
      if (multipliesIntegers(kernel.isa) || widens) {
        key.storage = multipliedStorage(schedule, shape.storage);
        key.group = key.storage.groupOf(shape.k);
      }
      // Tiles have the distance of rows at run time, and packed ones none.
      if (!hasTiles(kernel.isa) && !schedule.packsInput)
        key.inputStride = program.inputStride();
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

void MatmulLibrary::Plan::collect(std::set<Key> &keys) const {
  keys.insert(Key{program});
  for (const Calls *calls : {&wide, &panel})
    for (const auto &[units, key] : calls->microKernels)
      keys.insert(Key{key});
}

Status MatmulLibrary::compileSlices(const MatmulProgram &program,
                                    const std::vector<Schedule> &schedules) {
  std::set<Key> needed;
  for (const Schedule &schedule : schedules)
    plan(program, schedule, schedule.slice[0], schedule.slice[0])
        .collect(needed);
  return compileMissing(needed);
}

Result<MatmulCode> MatmulLibrary::prepare(const MatmulProgram &program,
                                          const Schedule &schedule,
                                          int64_t minRows, int64_t maxRows) {
  return prepare(program, schedule, plan(program, schedule, minRows, maxRows));
}

Result<MatmulCode> MatmulLibrary::preparePeak(const MatmulProgram &program,
                                              const Schedule &schedule) {
  const int64_t rows = schedule.microKernel.rows;
  Plan plan = MatmulLibrary::plan(program, schedule, rows, rows);
  for (Plan::Calls *calls : {&plan.wide, &plan.panel})
    for (auto &[units, key] : calls->microKernels)
      key.operandsStay = true;
  return prepare(program, schedule, plan);
}

/// What is known of a program that is loaded.
MatmulCode MatmulLibrary::codeOf(const Key &key) const {
  const Loaded &code = loaded.at(key);
  const auto &own = std::get<ProgramKey>(key.code);
  return {.function = reinterpret_cast<SandwichPhaseFunction>(code.function),
          .workspace = MatmulWorkspace::of(own.program, own.table),
          .workspaceBytes = code.workspaceBytes};
}

Result<MatmulCode> MatmulLibrary::prepare(const MatmulProgram &program,
                                          const Schedule &schedule,
                                          const Plan &plan) {
  std::set<Key> needed;
  plan.collect(needed);
  SANDWICH_RETURN_IF_ERROR(compileMissing(needed));

  MatmulCode code = codeOf(Key{plan.program});
  NestParameters &parameters = code.parameters.emplace();
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
          reinterpret_cast<int64_t>(loaded.at(Key{key}).function);
  };
  link(plan.wide, parameters.wide);
  link(plan.panel, parameters.panel);
  return code;
}

//===----------------------------------------------------------------------===//
// Schedules as they ship
//===----------------------------------------------------------------------===//

Result<std::vector<MatmulCode>>
MatmulLibrary::prepareAsShipped(const MatmulProgram &program,
                                const std::vector<ScheduleTable> &tables,
                                std::array<int64_t, 2> tokensBetween) {
  std::vector<Key> keys;
  for (const ScheduleTable &table : tables)
    keys.push_back(Key{
        ProgramKey{program, table, ScheduleNumbers::Constants, tokensBetween}});
  SANDWICH_RETURN_IF_ERROR(
      compileMissing(std::set<Key>(keys.begin(), keys.end())));
  std::vector<MatmulCode> codes;
  for (const Key &key : keys)
    codes.push_back(codeOf(key));
  return codes;
}
